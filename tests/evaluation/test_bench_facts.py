"""Facts that patterns take from messages are counted against judgements that refer to them."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation.bench_facts import (
    RIGHT,
    UNLABELLED,
    Said,
    messages,
    precision,
    proposed,
    read_labels,
    report,
    run,
)

SAID = [
    Said("own", "c1", "m1", "user", "I live in Ghent."),
    Said("own", "c1", "m2", "assistant", "I live in Ghent."),
    Said("own", "c2", "m1", "user", "We decided to drop it all. I prefer tabs over spaces."),
]


def test_a_label_holds_for_one_fact_in_one_place_and_no_other_wording() -> None:
    found = proposed(SAID, {})
    assert [one.fact.value for one in found] == ["Ghent", "tabs over spaces"]
    labels = {found[0].label: RIGHT}
    assert [one.verdict for one in proposed(SAID, labels)] == [RIGHT, UNLABELLED]
    moved = [
        Said("own", "c1", "m1", "user", "Well, I live in Ghent."),
        Said("own", "c1", "m1", "user", "I live in Bath."),
    ]
    assert [one.verdict for one in proposed(moved, labels)] == [UNLABELLED, UNLABELLED]


def test_precision_is_of_what_has_a_label() -> None:
    found = proposed(SAID, {})
    assert precision(found) is None
    judged = proposed(SAID, {found[0].label: RIGHT, found[1].label: "context"})
    assert precision(judged) == 0.5


def test_a_report_counts_by_category_and_set_and_shows_what_is_asked_for() -> None:
    first = proposed(SAID, {})[0]
    made = report(["own"], proposed(SAID, {first.label: RIGHT}), 3, "unlabelled")
    told = json.loads(made.to_json())
    assert (told["facts"], told["labelled"], told["precision"]) == (2, 1, 1.0)
    assert told["by_category"] == {"identity": 1.0, "preference": None} and told["by_set"] == {"own": 1.0}
    assert [row[1] for row in made.tables[-1].rows] == ["user / prefers = tabs over spaces"]


def test_labels_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "labels.tsv"
    found = proposed(SAID, {})
    file.write_text("".join("\t".join((*map(str, one.label), RIGHT)) + "\n" for one in found))
    assert [one.verdict for one in proposed(SAID, read_labels(file))] == [RIGHT, RIGHT]
    file.write_text("own\tc1\n")
    with pytest.raises(PolicyError, match="seven values"):
        read_labels(file)


def test_both_speakers_with_names_count_as_users(tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    lines = [
        {"id": "m1", "role": "user", "content": "I live in Ghent.", "name": "Ada"},
        {"id": "m2", "role": "assistant", "content": "I live in Bath.", "name": "Bo"},
        {"id": "m3", "role": "assistant", "content": "I live in Rome."},
    ]
    talk = {"id": "c1", "sessions": [{"date": "", "messages": lines}], "questions": []}
    (folder / "dev.jsonl").write_text(json.dumps(talk))
    assert [(one.dataset, one.role) for one in messages(folder)] == [
        ("talks", "user"),
        ("talks", "user"),
        ("talks", "assistant"),
    ]


def test_told_facts_of_each_language_are_messages(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    file.write_text(json.dumps({"sets": {"en": {"facts": [{"fact": "I live in Ghent."}]}}}))
    assert [(one.conversation, one.message, one.text) for one in messages(file)] == [("en", "0", "I live in Ghent.")]


async def test_a_label_that_is_missing_is_written_to_be_judged(tmp_path: Path) -> None:
    data, labels = tmp_path / "dev.json", tmp_path / "new.tsv"
    data.write_text(json.dumps({"sets": {"en": {"facts": [{"fact": "I live in Ghent."}]}}}))
    await run(Namespace(data=[data], labels=None, new=labels, show=None))
    assert [*read_labels(labels).values()] == [UNLABELLED]
    labels.write_text(labels.read_text().replace(UNLABELLED, RIGHT))
    judged = await run(Namespace(data=[data], labels=labels, new=None, show="all"))
    assert judged.data["precision"] == 1.0
