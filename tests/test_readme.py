"""The README and the other documents: what they say is true, and what they show runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxy.domain import Event, Note, Role
from proxy.settings.load import load
from tests.running import ROOT

README = (ROOT / "README.md").read_text()
YAML = re.findall(r"```yaml\n(.*?)```", README, re.S)


@pytest.mark.parametrize("word", [*Event, *Note, *Role])
def test_every_word_of_the_headers_is_explained(word: str) -> None:
    assert f"`{word}`" in README


@pytest.mark.parametrize("recipe", YAML, ids=["any-provider"])
def test_configuration_is_accepted(tmp_path: Path, recipe: str) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(recipe)
    policy = load(file, dict.fromkeys(re.findall(r"key_env: (\w+)", recipe), "sk-x"), {})
    assert [upstream.litellm.partition("/")[0] for upstream in policy.upstreams] == [
        "anthropic",
        "ollama_chat",
        "azure",
        "",
    ]


def test_test_command_is_named() -> None:
    assert "./scripts/test" in README
