"""The age of published tables: `scripts/benchmarks.py`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scripts.benchmarks import NOTED, OLDER, PUBLISHED, SOURCE, digest_of, main, modules_of, says_older

ROOT = Path(__file__).parent.parent
MEASURED = {"parts": {"PART": ["core"]}, "tables": {"Recall": {"of": ["PART", "bench.py"]}}}
CODE = '"""Ranks."""\nfrom a import b\n\ndef rank(x):\n    """The rank."""\n    return b(x) + 1  # one-based\n'


def digest(root: Path, **modules: str) -> str:
    for name, text in {"core__rank": CODE, "bench": "N = 1\n", **modules}.items():
        file = root / SOURCE / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return digest_of(MEASURED, "Recall", root)


def test_every_table_that_is_watched_is_published_and_measures_modules_that_are_there() -> None:
    noted = yaml.safe_load(NOTED.read_text("utf-8"))
    pages = "\n".join(page.read_text("utf-8") for page in PUBLISHED)
    assert noted["tables"].keys() <= {*re.findall(r"^## (.+)$", pages, re.MULTILINE)}
    for held in noted["tables"].values():
        assert all(
            modules_of(ROOT / SOURCE / path.removeprefix("-"))
            for name in held["of"]
            for path in noted["parts"].get(name, [name])
        )


def test_words_about_the_code_and_its_place_do_not_age_a_table(tmp_path: Path) -> None:
    before = digest(tmp_path / "a")
    reworded = CODE.replace("Ranks.", "Places.").replace("# one-based", "# as people count").replace("from a", "from c")
    assert digest(tmp_path / "b", core__rank=reworded) == before
    assert digest(tmp_path / "c", core__rank="", core__deeper__rank=CODE) == digest(
        tmp_path / "d", core__deeper__rank=""
    )


@pytest.mark.parametrize("changed", [{"core__rank": CODE.replace("+ 1", "+ 2")}, {"bench": "N = 2\n"}])
def test_what_the_code_does_ages_it(tmp_path: Path, changed: dict[str, str]) -> None:
    assert digest(tmp_path / "a", **changed) != digest(tmp_path / "b")


def test_a_table_says_by_itself_that_it_is_older() -> None:
    published = f"## Soup\n\n{OLDER}.\n\n| a |\n\n## Salad\n\n| b |\n"
    assert says_older(published, "Soup") and not says_older(published, "Salad") and not says_older(published, "Sou")


def test_a_table_that_nobody_watches_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Soup"]) == 2
    assert "Soup" in capsys.readouterr().err
