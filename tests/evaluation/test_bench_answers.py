from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest
from palimpsest.domain import Json
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation import bench_answers
from palimpsest.evaluation.bench_answers import CONTEXTS, Prompted, Row, report
from palimpsest.evaluation.datasets import DatasetError
from palimpsest.evaluation.questions import FactQuestion, literal
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.evaluation.test_datasets import line

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]

NAMES = ("Orsolya", "Bartholomew", "Ingeborg", "Quirin", "Saoirse", "Thandiwe")
DATA = {
    "facts": [
        {"text": f"The parcel number {n} goes to {name}.", "key": name, "question": f"Who gets parcel number {n}?"}
        for n, name in enumerate(NAMES, start=41)
    ],
    "topics": ["How do I water a cactus?", "What is a good name for a boat?", "Why is the sky blue?"],
}


def repeats(body: Json) -> str:
    """A model that reads what it is shown: the line of the parcel that it is asked for."""
    shown = "\n".join(message["content"] for message in body["messages"])
    number = re.findall(r"parcel number (\d+)\?", shown)[-1]
    found = re.search(rf"parcel number {number} goes to (\w+)", shown)
    return found[1] if found else "Somebody."


def given(path: Path, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_answers.add_arguments(parser)
    given = parser.parse_args(arguments)
    return argparse.Namespace(**vars(given), data=[path], limit=0, seed=42)


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    (tmp_path / "chat.json").write_text(json.dumps(DATA))
    return tmp_path / "chat.json"


@pytest.mark.usefixtures("model_folder")
@pytest.mark.parametrize("moment", ["compacted", "new"])
async def test_every_question_is_asked_under_each_context(chat: Path, moment: str) -> None:
    async with ScriptedUpstream(repeats) as model:
        asked = given(chat, "--model", "m", "--upstream", model.url, "--moment", moment)
        report = await bench_answers.run(asked)
    told = report.data["groups"]["all"]
    right = {name: told["right"][name]["value"] for name in CONTEXTS}
    assert right == {"nothing": 0.0, "client": 0.0, "memory": 1.0, "gold": 1.0}
    assert told["n"] == len(NAMES) and told["reached"] == 1.0 and told["gap_closed"]["value"] == 1.0
    row = report.data["rows"][0]["contexts"]
    assert "palimpsest-memory" in json.dumps(row["memory"]["prompt"]) and len(row["nothing"]["prompt"]) == 2
    assert "palimpsest-memory" not in json.dumps(row["client"]["prompt"])
    assert "goes to" in row["gold"]["prompt"][-1]["content"]


async def test_without_a_model_it_says_what_to_give(chat: Path) -> None:
    with pytest.raises(PolicyError, match="give --model NAME"):
        await bench_answers.run(given(chat))


async def test_data_without_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(line(questions=[]))
    with pytest.raises(DatasetError, match="questions with answers"):
        await bench_answers.run(given(tmp_path / "talk.jsonl", "--model", "m", "--upstream", "http://127.0.0.1:9/v1"))


def test_a_gap_is_shown_as_far_as_it_is_known() -> None:
    asked = FactQuestion("Who?", "chat", (0,), literal("Orsolya"))
    texts = ("Nobody.", "Nobody.", "Orsolya.", "Orsolya.")
    prompted = Prompted("t", asked, {name: [] for name in CONTEXTS}, 1, True, True, 9)
    right = Row(prompted, dict(zip(CONTEXTS, texts, strict=True)))
    wrong = Row(right.prompted, dict.fromkeys(CONTEXTS, "Nobody."))
    shown = {
        n: report([], "new", "m", rows, 42).tables[0].rows[0][-1]
        for n, rows in enumerate([[right], [right, wrong], [wrong]])
    }
    assert shown == {0: "1.00 (1.00 to 1.00)", 1: "1.00", 2: "-"}
