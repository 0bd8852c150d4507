"""The README and the documents in docs/: what they name exists, and what they show works."""

from __future__ import annotations

import re
from pathlib import Path

import palimpsest
import pytest
import yaml
from palimpsest.commands.cli import command_names
from palimpsest.domain import Event, Note, Rebuild, Role
from palimpsest.evaluation.command import BENCHMARKS
from palimpsest.settings.load import load
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.metrics import Metrics

from tests.running import ROOT

DOCUMENTS = {str(file.relative_to(ROOT)): file.read_text() for file in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}
OPERATING = DOCUMENTS["docs/operating.md"]
WALK = DOCUMENTS["docs/architecture.md"]
CONFIGURATIONS = [
    (name, block)
    for name, text in sorted(DOCUMENTS.items())
    for block in re.findall(r"```yaml\n(.*?)```", text, re.S)
    if "upstreams:" in block  # else it configures a client
]
MECHANISMS = [
    cells
    for line in DOCUMENTS["docs/papers.md"].partition("\n## Measured\n")[0].splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 5 and cells[0] not in ("mechanism", "---")
]
MOST_FILES = 12  # of a walk: as many as somebody keeps in mind
README_LINES = 160  # a page to read in five minutes; everything else has a page of its own


def anchors(text: str) -> set[str]:
    """What a link can name in a document: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_stays_short() -> None:
    assert len(DOCUMENTS["README.md"].splitlines()) <= README_LINES


@pytest.mark.parametrize("word", [*Event, *Note, *Role])
def test_every_word_of_the_headers_is_explained(word: str) -> None:
    assert f"`{word}`" in OPERATING


@pytest.mark.parametrize("cause", [cause for cause in Rebuild if cause is not Rebuild.NONE])
def test_every_cause_of_a_rebuild_is_explained(cause: str) -> None:
    assert f"`{cause}`" in DOCUMENTS["docs/costs.md"]


def test_every_metric_is_explained() -> None:
    names = re.findall(r"^# TYPE (palimpsest_\w+) ", Metrics().render().decode(), re.M)
    assert len(names) > 10
    own = [name for name in names if not name.endswith("_created")]
    assert [name for name in own if not re.search(rf"`{name}(_total)?`", OPERATING)] == []


def test_every_command_is_explained() -> None:
    names = [name for name in command_names() if name != "version"]
    assert [name for name in names if not re.search(rf"`palimpsest {name}\b", OPERATING)] == []


@pytest.mark.parametrize(("_document", "recipe"), CONFIGURATIONS, ids=[name for name, _ in CONFIGURATIONS])
def test_configuration_is_accepted(tmp_path: Path, _document: str, recipe: str) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(recipe)
    variables = {name: f"sk-{name}" for name in re.findall(r"key_env: (\w+)", recipe)}
    assert load([file], variables, {}).upstreams


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", DOCUMENTS[document]):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / document).parent / path if path else ROOT / document
        assert file.exists(), f"{document}: {target}"
        assert not anchor or anchor in anchors(file.read_text()), f"{document}: {target}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_program_to_copy_imports_what_only_a_checkout_has(document: str) -> None:
    programs = re.findall(r"```python\n(.*?)```", DOCUMENTS[document], re.S)
    assert not re.search(
        r"import palimpsest\.evaluation|from palimpsest(\.evaluation| import evaluation)", "".join(programs)
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_is_named_exists(document: str) -> None:
    named = re.findall(r"`((?:proxy|config|tests|scripts|docs)/[\w./-]+)`", DOCUMENTS[document])
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("row", MECHANISMS, ids=[row[0] for row in MECHANISMS])
def test_a_mechanism_of_the_papers_is_where_it_is_said_with_its_option_and_its_test(row: list[str]) -> None:
    _, where, state, differs, held = row
    if state == "absent":
        assert (where, held) == ("", "") and differs, "says what is missing for it"
        return
    assert re.search(r"\b(default|option|benchmark|same)\b", state)
    modules = re.findall(r"`([\w-]+/[\w/.]*)`", where)
    assert [name for name in modules if not (ROOT / "proxy" / "palimpsest" / name).exists()] == []
    benches = re.findall(r"`bench (\w+)`", where)
    assert {*benches} <= BENCHMARKS.keys() and (modules or benches)
    for part, key, value in re.findall(r"`(\w+)\.(\w+)(?:: ([^`]+))?`", state):
        model = {"models": {"selector": {"model": "ollama/tiny"}}} if value == "model" else {}
        policy = Policy.model_validate(model | ({part: {key: yaml.safe_load(value)}} if value else {}))
        assert key in type(getattr(policy, part)).model_fields
    tests = re.findall(r"`(tests/[\w/.]+)`", held)
    assert tests and all("def test_" in (ROOT / test).read_text() for test in tests)


def test_the_walk_visits_every_layer_that_a_request_passes() -> None:
    visited = {path.split("/")[2] for path in re.findall(r"`(proxy/[\w/]+\.py)`", WALK)}
    assert visited >= {"edge", "pipeline.py", "memory", "core", "wire", "store", "upstream"}


@pytest.mark.parametrize("walk", ["A turn", "An erasure"])
def test_each_walk_goes_one_way_through_few_files(walk: str) -> None:
    section = WALK.partition(f"## {walk}, from ")[2].partition("\n## ")[0]
    files = re.findall(r"^\d+\. `proxy/([\w/]+)\.py`", section, re.M)
    assert 5 < len(files) <= MOST_FILES
    modules = [file.replace("/", ".") for file in files]
    for number, file in enumerate(files):
        source = (ROOT / "proxy" / f"{file}.py").read_text()
        imported = set(re.findall(r"^\s*(?:from|import) ([\w.]+)", source, re.M))
        assert imported.isdisjoint(modules[:number]), file


def test_the_map_shows_exactly_what_is_there() -> None:
    assert palimpsest.__doc__
    shown = " ".join(re.findall(r"^    ((?:[\w/]+ )+) ", palimpsest.__doc__, re.M)).split()
    there = [
        f"{entry.name}/" if entry.is_dir() else entry.stem
        for entry in (ROOT / "proxy" / "palimpsest").iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").exists()
    ]
    assert sorted(shown) == sorted(set(there) - {"__init__"})


def test_the_walk_in_the_map_names_files_that_exist() -> None:
    assert palimpsest.__doc__
    walk = palimpsest.__doc__.partition("A request walks")[2]
    named = [name for name in re.findall(r"`([\w/.]+)`", walk) if not name.startswith("docs/")]
    assert len(named) > 5
    assert [name for name in named if not (ROOT / "proxy" / "palimpsest" / f"{name}.py").is_file()] == []


def test_test_command_is_named() -> None:
    assert "./scripts/test" in DOCUMENTS["README.md"]


def test_readme_leads_to_every_document() -> None:
    missing = [name for name in DOCUMENTS if name.startswith("docs/") and f"]({name})" not in DOCUMENTS["README.md"]]
    assert missing == []
