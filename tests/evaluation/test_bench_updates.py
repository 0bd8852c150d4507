from __future__ import annotations

from dataclasses import replace

import pytest
from palimpsest.evaluation.bench_updates import UpdateOutcome, days, report, told
from palimpsest.evaluation.datasets import Conversation, Question

from tests.evaluation import told as talks

OLD = "The dashboard answers in three hundred milliseconds on the staging machine."
NEW = "The dashboard answers in two hundred and fifty milliseconds since the cache is there."
DAY = 86_400.0


def conversation(apart_seconds: float) -> Conversation:
    return talks.told(f"user: {OLD}", f"user: {NEW}", apart_seconds=apart_seconds)


CHANGED = Question("1", "How fast is the dashboard?", None, "knowledge_update", ("m0", "m1"))


def test_a_block_is_read_by_its_days() -> None:
    assert days("head\n[2023-11-14]\nuser: a\n[2023-11-15]\nuser: b\n") == [
        ("2023-11-14", "\nuser: a\n"),
        ("2023-11-15", "\nuser: b\n"),
    ]


def test_the_newer_of_two_is_seen_by_its_date() -> None:
    block = f"[2023-11-14]\nuser: {OLD}\n[2023-11-15]\nuser: {NEW}\n"
    expected = UpdateOutcome(newest=True, dated=True, older_alone=False, both=True, by_date=True, in_order=True)
    assert told(block, conversation(DAY), CHANGED) == expected


def test_on_one_day_order_alone_tells() -> None:
    block = f"[2023-11-14]\nuser: {OLD}\nuser: {NEW}\n"
    held = told(block, conversation(60.0), CHANGED)
    assert (held.by_date, held.in_order) == (False, True)
    assert told(f"[2023-11-14]\nuser: {NEW}\nuser: {OLD}\n", conversation(60.0), CHANGED).in_order is False


def test_an_old_statement_alone_is_the_worst_case() -> None:
    held = told(f"[2023-11-14]\nuser: {OLD}\n", conversation(DAY), CHANGED)
    assert (held.newest, held.older_alone, held.both, held.by_date) == (False, True, False, None)


def test_under_another_day_it_is_not_dated() -> None:
    held = told(f"[2023-11-14]\nuser: {NEW}\n", conversation(DAY), CHANGED)
    assert (held.newest, held.dated) == (True, False)


def test_one_statement_replaces_nothing() -> None:
    held = told(f"[2023-11-14]\nuser: {OLD}\n", conversation(DAY), replace(CHANGED, evidence=("m0",)))
    assert held == UpdateOutcome(True, True, None, None, None, None)


def test_shares_are_of_the_questions_that_they_say_something_of() -> None:
    rows = [
        ("temporal", UpdateOutcome(True, True, None, None, None, None)),
        ("temporal", UpdateOutcome(False, False, True, False, None, None)),
    ]
    held = report(["own"], rows).data["categories"]["temporal"]
    assert (held["n"], held["n_several"], held["older_alone"], held["in_order"]) == (2, 1, 1.0, None)
    assert held["newest"] == pytest.approx(0.5)
