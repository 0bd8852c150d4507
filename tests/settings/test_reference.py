from __future__ import annotations

import pytest
from palimpsest.settings import reference
from palimpsest.settings.policy import KeyPolicy, UpstreamPolicy, settings_by_path

from tests.running import ROOT

FIELDS = {
    **settings_by_path(),
    **{f"upstreams.{name}": field for name, field in UpstreamPolicy.model_fields.items()},
    **{f"keys.{name}": field for name, field in KeyPolicy.model_fields.items()},
}


@pytest.mark.parametrize(
    ("file", "text"),
    [("config/default.yaml", reference.as_yaml()), ("docs/settings.md", reference.as_markdown())],
    ids=["yaml", "markdown"],
)
def test_the_files_are_what_the_policy_generates(file: str, text: str) -> None:
    assert (ROOT / file).read_text() == text, "run scripts/settings"


@pytest.mark.parametrize("path", FIELDS)
def test_every_setting_stands_in_both_with_its_description(path: str) -> None:
    name, about = path.rpartition(".")[2], FIELDS[path].description
    assert about
    yaml = " ".join(reference.as_yaml().replace("#", " ").split())
    assert f"{name}:" in yaml and about in yaml
    markdown = reference.as_markdown()
    assert (f"\n| `{name}` | " in markdown or f"\n## {name}[]\n" in markdown) and about in markdown
