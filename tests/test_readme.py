"""The README says what is true: its table of settings is read off the policy, and its recipes run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic.fields import FieldInfo

from proxy.domain import Event, Note, Role
from proxy.settings.describe import settings_by_path
from proxy.settings.load import load
from tests.running import ROOT

README = (ROOT / "README.md").read_text()
YAML = re.findall(r"```yaml\n(.*?)```", README, re.S)


def settings_table() -> str:
    """Every setting, its default and its reason, as the README shows them; sections of a list under `name[]`."""
    lines = ["| setting | default | what it means |", "|---|---|---|"]
    for path, field in settings_by_path().items():
        inner = [kind for kind in get_args(field.annotation) if hasattr(kind, "model_fields")]
        lines.append(row(path, field, "see below" if inner else None))
        lines += [row(f"{path}[].{name}", one) for kind in inner for name, one in kind.model_fields.items()]
    return "\n".join(lines)


def row(path: str, field: FieldInfo, default: str | None = None) -> str:
    if default is None:
        default = "required" if field.is_required() else f"`{readable(field.get_default(call_default_factory=True))}`"
    return f"| `{path}` | {default} | {field.description} |"


def readable(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value) if str(value) else '""'


def test_table_of_settings_is_the_policys() -> None:
    written = README.partition("<!-- settings -->\n")[2].partition("\n<!-- /settings -->")[0]
    assert written == settings_table(), f"put this between the settings marks of README.md:\n\n{settings_table()}\n"


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
