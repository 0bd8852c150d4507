"""How probably a passage answers, and memory helps."""

from __future__ import annotations

import numpy as np
import pytest

from proxy.core.archive.chunking import query_terms, terms
from proxy.core.recall.ranking import Asked, PassageTable, Ranked, Recipe, rank
from proxy.core.recall.relevance import (
    HELP,
    HELP_BY_WORDS,
    PASSAGE,
    PASSAGE_BY_WORDS,
    help_signals,
    passage_signals,
    relevance,
)
from tests.core.shelves import NOW, axis, shelf

SAID = (
    "My new manager is called Oluwaseun, she starts on Monday.",
    "How long should I roast a whole cauliflower?",
    "Thanks!",
    "The metrics exporter listens on port 9417.",
    *(f"Something about topic number {at} of no importance." for at in range(20)),
)


def asked(text: str, on: PassageTable, nearest: int | None = None) -> Asked:
    """A question whose vector is that of one passage, or none without a model."""
    held = {term: np.flatnonzero([term in terms(said) for said in SAID]) for term in query_terms(text)}
    found = {term: rows for term, rows in held.items() if len(rows)}
    cosines = None
    if nearest is not None:
        cosines = np.full(len(on), 0.05)
        cosines[nearest] = 0.6
    return Asked(cosines, found, text, absent=tuple(term for term in held if term not in found))


def judged(text: str, nearest: int | None) -> tuple[Ranked, np.ndarray, float]:
    on = shelf(SAID, users=range(len(SAID)))
    question = asked(text, on, nearest)
    eligible = np.ones(len(on), np.bool_)
    ranked = rank(on, question, eligible, NOW, Recipe(candidates=50))
    found = relevance(on, question, eligible, ranked)
    return ranked, found.passages, found.helps


@pytest.mark.parametrize("with_model", [True, False])
def test_the_passage_that_answers_is_the_most_probable(with_model: bool) -> None:
    ranked, worth, helps = judged("Which port did I pick for the metrics exporter?", 3 if with_model else None)
    assert SAID[ranked.rows[worth.argmax()]] == SAID[3]
    assert helps > 0.5
    assert ((worth >= 0) & (worth <= 1)).all()


def test_who_asks_what_anybody_could_needs_memory_less() -> None:
    own = judged("Who is my manager at work now?", 0)[2]
    general = judged("How does a manager write a good report?", 0)[2]
    assert own > general


def test_what_stands_out_from_its_scope_is_more_probable_than_what_is_like_all_others() -> None:
    on = shelf(SAID, users=range(len(SAID)))
    eligible = np.ones(len(on), np.bool_)
    clear = asked("Who is she?", on, 0)
    vague = Asked(np.full(len(on), 0.6), clear.found, clear.text, absent=clear.absent)
    first = []
    for question in (clear, vague):
        ranked = rank(on, question, eligible, NOW, Recipe(candidates=50))
        worth = relevance(on, question, eligible, ranked).passages
        first.append(worth[ranked.rows == 0][0])
    assert first[0] > first[1]


def test_every_weight_has_its_signal() -> None:
    on = shelf(SAID, users=[0])
    on.vectors[0] = axis(0)
    question = asked("Who is my manager?", on, 0)
    eligible = np.ones(len(on), np.bool_)
    ranked = rank(on, question, eligible, NOW, Recipe(candidates=50))
    signals = passage_signals(on, question, eligible, ranked)
    assert {*PASSAGE} == {*signals, "bias"}
    assert {*PASSAGE_BY_WORDS} <= {*PASSAGE}
    helping = help_signals(on, question, ranked, signals, np.full(len(ranked.rows), 0.1))
    assert {*HELP} == {*helping, "bias"}
    assert {*HELP_BY_WORDS} <= {*HELP}
    assert all(len(values) == len(ranked.rows) for values in signals.values())
