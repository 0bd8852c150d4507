from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

import pytest
from palimpsest.commands import cli
from palimpsest.evaluation.command import BENCHMARKS, add_arguments

from tests.evaluation.test_datasets import line
from tests.running import ROOT

pytestmark = pytest.mark.slow

QUESTION = {"id": "q", "question": "When does Ann sail?", "answer": "Monday", "category": "c", "evidence": [1]}


@pytest.fixture
def talk(tmp_path: Path) -> str:
    (tmp_path / "talk.jsonl").write_text(line(questions=[QUESTION]))
    return str(tmp_path / "talk.jsonl")


def test_help_names_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_says_what_it_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", name, "--help"])
    assert ended.value.code == 0 and "--json" in capsys.readouterr().out


@pytest.mark.usefixtures("model_folder")
def test_a_measurement_is_shown_written_and_drawn(
    talk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, drawn = tmp_path / "made.json", tmp_path / "made.svg"
    arguments = ["bench", "recall", talk, "--budget-chars", "600,400", "--systems", "bm25"]
    assert cli.main([*arguments, "--json", str(made), "--plot", str(drawn)]) == 0
    assert "600 characters" in capsys.readouterr().out
    told = json.loads(made.read_text())
    assert told["budgets"].keys() == {"600", "400"} and told["systems"].keys() == {"bm25"}
    assert (
        told["provenance"]["seed"] == 42 and told["provenance"]["seconds"] > 0 and drawn.read_text().startswith("<?xml")
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--json", "/nowhere/made.json"), "there is no folder /nowhere"),
        (("--plot", "made.gif"), "must end in .svg or .png"),
        (("--systems", "bm26"), "--systems bm26: is not known; there are recent"),
    ],
)
@pytest.mark.usefixtures("model_folder")
def test_what_is_wrong_is_said(
    talk: str, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "recall", talk, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_data_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "recall", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["benchmarks", "papers"])
def test_a_page_of_benchmarks_types_what_can_be_typed(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text().replace("\\\n", "")
    typed = [text for text in page.splitlines() if text.startswith("palimpsest bench ") and "--help" not in text]
    assert len(typed) >= 4
    for words in (shlex.split(text, comments=True)[2:] for text in typed):
        parser = argparse.ArgumentParser(exit_on_error=False)
        add_arguments(parser, words[0])
        assert parser.parse_args(words).data, words
