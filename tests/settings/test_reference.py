from __future__ import annotations

import pytest
from palimpsest.settings import reference
from palimpsest.settings.policy import KeyPolicy, Policy, UpstreamPolicy, settings_by_path

from tests.running import ROOT

OF_LISTS = {"upstreams": UpstreamPolicy, "keys": KeyPolicy}
PATHS = [*settings_by_path(), *(f"{of}.{name}" for of, model in OF_LISTS.items() for name in model.model_fields)]


@pytest.mark.parametrize(
    ("file", "text"),
    [("config/default.yaml", reference.as_yaml()), ("docs/settings.md", reference.as_markdown())],
    ids=["yaml", "markdown"],
)
def test_the_files_are_what_the_policy_generates(file: str, text: str) -> None:
    assert (ROOT / file).read_text() == text, "run scripts/settings"


def description(path: str) -> str:
    section, _, name = path.rpartition(".")
    model = (OF_LISTS.get(section) or Policy.model_fields[section].annotation) if section else Policy
    return reference.descriptions(model)[name]


@pytest.mark.parametrize("path", PATHS)
def test_every_setting_stands_in_both_with_its_description(path: str) -> None:
    name, about = path.rpartition(".")[2], description(path)
    assert about
    yaml = " ".join(reference.as_yaml().replace("#", " ").split())
    assert f"{name}:" in yaml and about in yaml
    markdown = reference.as_markdown()
    assert (f"\n| `{name}` | " in markdown or f"\n## {name}[]\n" in markdown) and about in markdown
