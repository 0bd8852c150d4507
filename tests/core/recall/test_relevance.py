"""How probably a passage answers, and memory helps."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from palimpsest.core.archive.chunking import query_terms, terms
from palimpsest.core.recall.ranking import PassageTable, QueryMatches, RankedRows, Recipe, rank
from palimpsest.core.recall.relevance import help_signals, passage_signals, relevance, tables_for
from palimpsest.core.recall.weights import OF_SPEAKERS, OF_SPEAKERS_BY_WORDS, PLAIN, PLAIN_BY_WORDS, Tables

from tests.core.passage_tables import NOW, axis, passage_table

SAID = (
    "My new manager is called Oluwaseun, she starts on Monday.",
    "How long should I roast a whole cauliflower?",
    "Thanks!",
    "The metrics exporter listens on port 9417.",
    *(f"Something about topic number {at} of no importance." for at in range(20)),
)


def asked(text: str, on: PassageTable, nearest: int | None = None) -> QueryMatches:
    """A question whose vector is that of one passage, or none without a model."""
    held = {term: np.flatnonzero([term in terms(said) for said in SAID]) for term in query_terms(text)}
    found = {term: rows for term, rows in held.items() if len(rows)}
    cosines = None
    if nearest is not None:
        cosines = np.full(len(on), 0.05)
        cosines[nearest] = 0.6
    return QueryMatches(cosines, found, text, absent=tuple(term for term in held if term not in found))


def judged(text: str, nearest: int | None) -> tuple[RankedRows, np.ndarray, float]:
    on = passage_table(SAID, users=range(len(SAID)))
    question = asked(text, on, nearest)
    eligible = np.ones(len(on), np.bool_)
    ranked = rank(on, question, eligible, NOW, Recipe(candidates=50))
    found = relevance(on, question, ranked)
    return ranked, found.passages, found.helps


@pytest.mark.parametrize("with_model", [True, False])
def test_the_passage_that_answers_is_the_most_probable(with_model: bool) -> None:
    ranked, worth, helps = judged("Which port did I pick for the metrics exporter?", 3 if with_model else None)
    assert SAID[ranked.rows[worth.argmax()]] == SAID[3]
    assert helps > 0.5
    assert ((worth >= 0) & (worth <= 1)).all()


def test_on_the_first_day_each_word_stands_in_a_large_share_of_passages_and_is_rare_all_the_same() -> None:
    on = passage_table(SAID[:3], users=range(3))
    words = query_terms("Who is my new manager?")
    found = {term: np.flatnonzero([term in terms(said) for said in SAID[:3]]) for term in words}
    signals = dict.fromkeys(("covered", "user", "tells", "asks", "absent", "cosine", "ahead"), np.zeros(3))
    question = QueryMatches(None, found, "Who is my new manager?")
    assert all(len(rows) == 1 for rows in found.values())
    assert help_signals(on, question, signals, np.zeros(3))["rarest_term"] > 0.9


def test_who_asks_what_anybody_could_needs_memory_less() -> None:
    own = judged("Who is my manager at work now?", 0)[2]
    general = judged("How does a manager write a good report?", 0)[2]
    assert own > general


def test_who_tells_something_needs_memory_less_than_who_asks() -> None:
    assert judged("Who is my new manager, who starts on Monday?", 0)[2] > 0.5
    assert judged("My new manager is nice, she starts on Monday at nine.", 0)[2] < 0.3


def test_what_is_ahead_of_all_others_is_more_probable_than_what_is_like_them() -> None:
    on = passage_table(SAID, users=range(len(SAID)))
    eligible = np.ones(len(on), np.bool_)
    clear = asked("Who is she?", on, 0)
    vague = QueryMatches(np.full(len(on), 0.6), clear.found, clear.text, absent=clear.absent)
    first = []
    for question in (clear, vague):
        ranked = rank(on, question, eligible, NOW, Recipe(candidates=50))
        worth = relevance(on, question, ranked).passages
        first.append(worth[ranked.rows == 0][0])
    assert first[0] > first[1]


def test_what_the_conversation_itself_lost_is_more_probable_than_what_was_said_elsewhere() -> None:
    on = passage_table(SAID, users=range(len(SAID)))
    question = asked("Which port did I pick for the metrics exporter?", on, 3)
    ranked = rank(on, question, np.ones(len(on), np.bool_), NOW, Recipe(candidates=50))
    here, elsewhere = 7, 8

    def worth(conversations: np.ndarray) -> np.ndarray:
        return relevance(replace(on, conversations=conversations), replace(question, own=here), ranked).passages

    nowhere = worth(np.full(len(on), elsewhere))
    assert (worth(np.full(len(on), here)) == nowhere).all(), "where there is no choice, nothing is preferred"
    is_answer = ranked.rows == 3
    mine, theirs = (worth(np.where(np.arange(len(on)) == at, here, elsewhere))[is_answer] for at in (3, 10))
    assert mine > nowhere[is_answer] > theirs


@pytest.mark.parametrize(
    ("tells", "counts"), [(0.6, 0.0), (0.44, 0.0), (0.3, 1.0)], ids=["tells", "tells, too", "only asks"]
)
def test_a_passage_that_asks_something_counts_as_a_question_unless_it_tells_something_too(
    tells: float, counts: float
) -> None:
    on = replace(passage_table(SAID, users=[0], asks=[0]), tells=np.full(len(SAID), tells))
    question = asked("Who is my manager?", on, 0)
    ranked = rank(on, question, np.ones(len(on), np.bool_), NOW, Recipe(candidates=50))
    signals = passage_signals(on, question, ranked)
    is_it = ranked.rows == 0
    assert (signals["asks"][is_it], signals["answers"][is_it]) == (counts, -counts)


def test_every_weight_has_its_signal() -> None:
    on = passage_table(SAID, users=[0])
    on.vectors[0] = axis(0)
    question = asked("Who is my manager?", on, 0)
    eligible = np.ones(len(on), np.bool_)
    ranked = rank(on, question, eligible, NOW, Recipe(candidates=50))
    signals = passage_signals(on, question, ranked)
    assert {*PLAIN.passage} == {*signals, "bias"}
    for tables in (PLAIN_BY_WORDS, OF_SPEAKERS, OF_SPEAKERS_BY_WORDS):
        assert {*tables.passage} <= {*PLAIN.passage}
    helping = help_signals(on, question, signals, np.full(len(ranked.rows), 0.1))
    assert {*PLAIN.help} == {*helping, "bias"}
    for tables in (PLAIN_BY_WORDS, OF_SPEAKERS, OF_SPEAKERS_BY_WORDS):
        assert {*tables.help} <= {*PLAIN.help}
    assert all(len(values) == len(ranked.rows) for values in signals.values())


def test_talks_whose_texts_name_their_speakers_and_rankings_without_vectors_have_weights_of_their_own() -> None:
    plain, talk = passage_table(SAID), passage_table(SAID, speakers=["ann", "ben"] * (len(SAID) // 2))
    chosen = []
    for on in (plain, talk):
        for nearest in (0, None):
            question = asked("Who is my manager?", on, nearest)
            ranked = rank(on, question, np.ones(len(on), np.bool_), NOW, Recipe(candidates=50))
            chosen.append(tables_for(on, question, ranked))
    assert chosen == [PLAIN, PLAIN_BY_WORDS, OF_SPEAKERS, OF_SPEAKERS_BY_WORDS]


def test_without_vectors_no_weight_is_of_a_nearness() -> None:
    near = {"cosine", "ahead", "personal_cosine", "meaning", "by_cosine", "other_cosine"}
    for tables in (PLAIN_BY_WORDS, OF_SPEAKERS_BY_WORDS):
        assert near.isdisjoint(tables.passage) and near.isdisjoint(tables.help)


def talk_with(other: int, names_speakers: bool) -> tuple[Tables, float]:
    """The weights, and the probability that memory helps, in a talk with so many other messages in its scope."""
    texts = (*SAID, *(f"Some more of the weather on day {at}." for at in range(other)))
    on = passage_table(texts, speakers=["ann", "ben"] * (len(texts) // 2))
    if not names_speakers:
        on = replace(on, speakers=np.where(np.arange(len(on)) < len(SAID), on.speakers, 0))
    question = asked("Which port did I pick for the metrics exporter?", on, 3)
    eligible = np.ones(len(on), np.bool_)
    ranked = rank(on, question, eligible, NOW, Recipe(candidates=200))
    return tables_for(on, question, ranked), relevance(on, question, ranked).helps


@pytest.mark.repeats
def test_a_talk_is_not_judged_more_strictly_because_it_is_long() -> None:
    assert talk_with(1500, True)[1] == pytest.approx(talk_with(0, True)[1], abs=0.15)


def test_a_flood_of_other_texts_does_not_hide_that_the_best_ones_are_of_a_talk() -> None:
    assert talk_with(200, False)[0] is OF_SPEAKERS


SENTENCES = (
    "The {} committee of the {} region met again to talk about the {} budget.",
    "How do I keep a {} from drying out beside a {}? The {} looks pale.",
    "You can compare the {} with the {} and choose what suits the {}.",
    "Our {} went to the {} with a {} and came home late.",
)
NOUNS = ("harbour", "library", "tractor", "violin", "glacier", "market", "orchard", "museum", "saddle", "lantern")

TIMES = (10, 100, pytest.param(1000, marks=pytest.mark.slow))


def elsewhere(at: int) -> str:
    """A text of another conversation, another one for each number."""
    nouns = (NOUNS[at // len(NOUNS) ** place % len(NOUNS)] for place in range(3))
    return SENTENCES[at % len(SENTENCES)].format(*nouns)


def behind(times: int, text: str, nearest: int | None) -> tuple[float, float]:
    """How probably memory helps, and its first passage answers, in an archive of so many times as many other texts."""
    texts = (*SAID, *(elsewhere(at) for at in range(times * len(SAID))))
    own = np.arange(len(texts)) < len(SAID)
    on = passage_table(
        texts, conversations=np.where(own, 1, 2 + np.arange(len(texts)) // 20).tolist(), users=range(0, len(texts), 2)
    )
    held = {term: np.flatnonzero([term in said for said in words_of(texts)]) for term in query_terms(text)}
    chance = np.random.default_rng(1)
    cosines = np.minimum(chance.normal(0.05, 0.07, len(texts)), 0.35)  # as MiniLM has them for texts of other subjects
    if nearest is not None:
        cosines[nearest] = 0.6
    question = QueryMatches(
        cosines,
        {term: rows for term, rows in held.items() if len(rows)},
        text,
        absent=tuple(term for term, rows in held.items() if not len(rows)),
    )
    ranked = rank(on, question, np.ones(len(on), np.bool_), NOW)
    found = relevance(on, question, ranked.part(slice(100)))
    return found.helps, float(found.passages.max())


@lru_cache(4)
def words_of(texts: tuple[str, ...]) -> list[frozenset[str]]:
    return [frozenset(terms(text)) for text in texts]


@pytest.mark.repeats
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize(
    ("text", "nearest"),
    [("Which port did I pick for the metrics exporter?", 3), ("Who is my new manager at work?", 0)],
)
def test_what_answers_is_as_probable_however_much_else_is_stored(times: int, text: str, nearest: int) -> None:
    assert behind(times, text, nearest) == pytest.approx(behind(1, text, nearest), abs=0.1)


@pytest.mark.parametrize("times", TIMES)
def test_a_question_that_nothing_answers_stays_without_memory_however_much_is_stored(times: int) -> None:
    assert behind(times, "What is the best way to boil an egg?", None)[0] < 0.2
