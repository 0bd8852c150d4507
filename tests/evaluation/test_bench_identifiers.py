"""Rank of what a question asks for by its exact name."""

from __future__ import annotations

import json
from random import Random

import pytest
from palimpsest.evaluation.bench_identifiers import Row, ask, choose, kind_of, report
from palimpsest.evaluation.palimpsest import Palimpsest

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

TALK = told(
    "user: The build fails in src/engine/Valve.cpp since commit 9fceb02d0ae5.",
    "assistant: Is that ticket PUMP-4711?",
    "user: Yes, and shared_name too.",
    *("assistant: shared_name again", "user: shared_name once more", "assistant: still shared_name"),
    "user: The key is password=hunter2hunter2 by the way.",
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("https://example.org/a/b", "url"),
        ("api.example.com", "url"),
        ("src/main.c", "path"),
        ("main.py", "path"),
        ("pump-4711", "ticket"),
        ("9fceb02d0ae5", "hash"),
        ("1.2.3", "number"),
        ("e0432", "code"),
        ("snake_case", "name"),
    ],
)
def test_every_name_has_a_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_names_that_few_messages_hold_are_chosen_as_they_were_written() -> None:
    named = {named.text: named for named in choose(TALK, 5, Random(42))}
    assert named.keys() == {"src/engine/Valve.cpp", "9fceb02d0ae5", "PUMP-4711"}
    assert named["PUMP-4711"].holders == {1}
    assert choose(TALK, 5, Random(1)) == choose(TALK, 5, Random(1))


async def test_a_name_is_asked_bare_and_in_a_question() -> None:
    named = choose(TALK, 5, Random(42))
    rows = await ask(Palimpsest(WordEmbedder()), [(TALK, named)])
    assert len(rows) == 6 and {row.form for row in rows} == {"bare", "asked"}
    assert {row.rank for row in rows} == {1}


def test_a_report_tells_first_among_five_and_found() -> None:
    rows = [Row("path", "bare", rank) for rank in (1, 3, 9, 0)]
    made = json.loads(report(["x"], {"palimpsest": rows, "other": rows[::-1]}, 42).to_json())
    assert (made["n"], made["rank_1"], made["rank_5"], made["found"]) == (4, 0.25, 0.5, 0.75)
    assert made["by_kind"].keys() == {"path"} and made["systems"]["other"]["rank_1"] == 0.25
