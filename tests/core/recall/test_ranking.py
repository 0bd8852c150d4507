from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.recall import ranking
from palimpsest.core.recall.ranking import (
    NAMED_MESSAGES,
    PROBABILITY,
    REACH_CHARS,
    REACH_PASSAGES,
    RECIPE,
    SHORT_CHARS,
    WEIGHTS,
    WORTH_CHARS,
    Bools,
    QueryMatches,
    RankedRows,
    Recipe,
    Rows,
    ScopedBM25,
    by_worth,
    consequence,
    diversified,
    min_max_fusion,
    nearby,
    rank,
    ranks,
    recency,
    reciprocal_rank_fusion,
    surroundings,
    term_matrix,
    widened,
)
from rank_bm25 import BM25Okapi

from tests.core.passage_tables import NOW, axis, passage_table


def everything(count: int) -> Bools:
    return np.ones(count, np.bool_)


def ordered(said: list[str], asked: QueryMatches, eligible: Bools | None = None, **more: object) -> list[int]:
    on = passage_table(said, **more)  # type: ignore[arg-type]
    chosen = everything(len(said)) if eligible is None else eligible
    return rank(on, asked, chosen, NOW).rows.tolist()


def test_bm25_of_a_scope_equals_the_library_over_the_same_texts() -> None:
    corpus = [["river", "boat"], ["river", "bank", "loan"], ["loan", "rate"], ["tree"], ["cloud"], ["stone"]]
    terms = ["river", "loan", "boat"]
    library = BM25Okapi(corpus)
    holding = {term: sum(term in text for text in corpus) for term in terms}
    ours = ScopedBM25(len(corpus), sum(map(len, corpus)) / len(corpus), holding)
    frequencies = np.array([[text.count(term) for text in corpus] for term in terms], float)
    found = ours.score(terms, frequencies, np.array([len(text) for text in corpus], float))
    assert found == pytest.approx(library.get_scores(terms))


def test_a_word_in_every_passage_still_counts_a_little() -> None:
    assert ScopedBM25(10, 5.0, {"ann": 10}).idf["ann"] > 0


def test_the_passage_that_means_it_comes_first() -> None:
    cosines = np.where(np.arange(41) == 20, 0.9, 0.1)
    assert ordered(["text"] * 41, QueryMatches(cosines=cosines, found={}))[0] == 20


def test_the_passage_that_holds_the_words_comes_first_without_a_model() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([17])})
    assert ordered(["text"] * 40, asked)[0] == 17


def test_the_very_name_outdoes_every_likeness() -> None:
    cosines = np.where(np.arange(60) == 10, 0.9, 0.1)
    found = {"proj-123": np.array([30]), "ticket": np.array([9, 10, 11])}
    assert ordered(["text"] * 60, QueryMatches(cosines, found, identifiers=("proj-123",)))[0] == 30
    long = ["text"] * 30 + ["text " * 200] + ["text"] * 29
    assert ordered(long, QueryMatches(cosines, found, identifiers=("proj-123",)))[0] == 30
    common = {"proj-123": np.arange(30, 30 + NAMED_MESSAGES + 1), "ticket": np.array([9, 10, 11])}
    assert ordered(["text"] * 60, QueryMatches(cosines, common, identifiers=("proj-123",)))[0] == 10


def test_the_names_in_a_question_count_half_for_meaning() -> None:
    whole = np.where(np.arange(60) == 10, 0.9, np.where(np.arange(60) == 40, 0.8, 0.1))
    about = np.where(np.arange(60) == 10, 0.5, np.where(np.arange(60) == 40, 0.8, 0.1))
    assert ordered(["text"] * 60, QueryMatches(cosines=whole, found={}))[0] == 10
    assert ordered(["text"] * 60, QueryMatches(cosines=whole, found={}, about=about))[0] == 40


def test_a_long_passage_must_be_worth_its_room() -> None:
    said = ["x" * (4 * SHORT_CHARS), "x" * SHORT_CHARS, "x"]
    equal = QueryMatches(cosines=np.full(3, 0.5), found={"tango": np.arange(3), "paris": np.array([0, 1, 2])})
    on = passage_table(said, conversations=[1, 2, 3])
    ranked = rank(on, equal, everything(3), NOW, Recipe(candidates=9, fusion="rrf"))
    worth = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
    assert worth[0] < worth[1]


def test_a_signal_without_weight_moves_nothing() -> None:
    asked = QueryMatches(cosines=np.where(np.arange(40) == 20, 0.9, 0.1), found={"tango": np.array([3])})
    deaf = Recipe({**WEIGHTS, "words": 0.0})
    on, all_of_it = passage_table(["text"] * 40), everything(40)
    scores = [
        dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        for ranked in (rank(on, asked, all_of_it, NOW, r) for r in (RECIPE, deaf))
    ]
    assert scores[0][3] > scores[0][39]
    assert scores[1][3] == pytest.approx(scores[1][39])


def test_surroundings_count_only_within_the_reach() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([10])})
    on, all_of_it = passage_table(["text"] * 40), everything(40)
    alone, near = (rank(on, asked, all_of_it, NOW, Recipe(reach_passages=reach)).rows.tolist() for reach in (0, 2))
    assert alone == [10]
    assert sorted(near) == [8, 9, 10, 11, 12]


def test_what_stands_beside_a_hit_comes_before_what_does_not() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([10]), "paris": np.array([12])})
    order = ordered(["text"] * 40, asked)
    assert order.index(11) < order.index(14) < order.index(16)


def test_surroundings_end_with_the_conversation() -> None:
    on = passage_table(["text"] * 6, conversations=[1, 1, 2, 2, 1, 2])
    around, weights = surroundings(on, np.array([1]))
    assert {int(row) for row, weight in zip(around[:, 0], weights[:, 0], strict=True) if weight} == {0, 4}


def test_long_passages_have_no_surroundings() -> None:
    on = passage_table(["x" * (REACH_CHARS + 1)] * 3)
    _, weights = surroundings(on, np.array([1]))
    assert not weights.any()


def test_surroundings_count_less_the_farther_they_are() -> None:
    on = passage_table(["text"] * 30)
    around, weights = surroundings(on, np.array([15]))
    found = dict(zip(around[:, 0].tolist(), weights[:, 0].tolist(), strict=True))
    assert found[14] == found[16] == 1 / 2 and found[10] == found[20] == 1 / 6 and len(found) == 2 * REACH_PASSAGES


def test_widening_takes_neighbours_within_reach_and_nothing_twice() -> None:
    on = passage_table(["text"] * 30)
    assert widened(on, np.array([2, 4])).tolist() == list(range(4 + REACH_PASSAGES + 1))


def test_what_may_not_come_is_not_ranked_but_lends_its_words_to_its_neighbours() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([10]), "paris": np.array([30])})
    eligible = everything(40)
    eligible[10] = False
    order = ordered(["text"] * 40, asked, eligible)
    assert 10 not in order and order.index(11) < order.index(13) < order.index(15)


def test_the_named_speaker_wins_among_equals() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([3, 23])}, words=frozenset({"ben"}))
    assert ordered(["text"] * 40, asked, speakers=["ann"] * 20 + ["ben"] * 20)[0] == 23


def test_what_the_user_said_wins_among_equals() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([3, 23])})
    assert ordered(["text"] * 40, asked, users=[23])[0] == 23


def test_what_was_said_in_the_period_that_is_asked_about_wins_among_equals() -> None:
    created = [NOW - 90 * 86_400] * 20 + [NOW] * 20
    found = {"tango": np.array([5, 25])}
    then = ((NOW - 100 * 86_400, NOW - 80 * 86_400),)
    assert ordered(["text"] * 40, QueryMatches(cosines=None, found=found), created_at=created)[0] == 25
    assert ordered(["text"] * 40, QueryMatches(cosines=None, found=found, periods=then), created_at=created)[0] == 5


def test_the_answer_to_a_question_wins_over_the_question() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([10, 11])})
    assert ordered(["text"] * 40, asked, asks=[10])[0] == 11


def test_among_equals_the_recent_comes_first() -> None:
    asked = QueryMatches(cosines=None, found={"tango": np.array([5, 25])})
    created = [NOW - 30 * 86_400] * 20 + [NOW] * 20
    assert ordered(["text"] * 40, asked, created_at=created)[0] == 25


def test_nothing_known_and_no_model_ranks_nothing() -> None:
    assert ordered(["text"] * 5, QueryMatches(cosines=None, found={})) == []


def test_same_question_same_order() -> None:
    cosines = np.random.default_rng(7).normal(size=60)
    asked = QueryMatches(cosines=cosines, found={"tango": np.array([3, 30]), "paris": np.array([31])})
    first = ordered(["text"] * 60, asked)
    assert first == ordered(["text"] * 60, asked) and len(set(first)) == len(first)


def test_pool_limits_what_each_list_hands_on() -> None:
    on = passage_table(["x" * (REACH_CHARS + 1)] * 50, conversations=list(range(50)))
    asked = QueryMatches(cosines=None, found={"tango": np.arange(50)})
    assert len(rank(on, asked, everything(50), NOW, Recipe(candidates=4)).rows) == 4


def test_reciprocal_ranks_reward_what_several_lists_place_high() -> None:
    signals = {name: np.zeros(3) for name in WEIGHTS} | {
        "meaning": np.array([0.9, 0.8, 0.1]),
        "words": np.array([0.0, 5.0, 7.0]),
    }
    scores = reciprocal_rank_fusion(signals, dict.fromkeys(WEIGHTS, 1.0))
    flat = (len(WEIGHTS) - 2) / 61
    assert scores == pytest.approx([1 / 61 + 1 / 63 + flat, 1 / 62 + 1 / 62 + flat, 1 / 63 + 1 / 61 + flat])
    assert reciprocal_rank_fusion({"words": np.array([2.0, 1.0])}, WEIGHTS, 9) == pytest.approx([1 / 10, 1 / 11])


@given(st.lists(st.integers(0, 9), min_size=2, max_size=20), st.data())
def test_who_rises_in_one_list_never_falls_in_the_fusion(values: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(values) - 1))
    other = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values))), float)
    risen = np.array(values, float)
    risen[at] += data.draw(st.integers(1, 9))
    weights = {"meaning": 1.0, "words": 0.5}
    before = reciprocal_rank_fusion({"meaning": np.array(values, float), "words": other}, weights)
    after = reciprocal_rank_fusion({"meaning": risen, "words": other}, weights)
    assert after[at] >= before[at]
    assert set(np.flatnonzero(after[at] < after)) <= set(np.flatnonzero(before[at] < before))


@given(
    st.lists(st.tuples(st.integers(1, 800), st.integers(0, 9), st.booleans(), st.booleans()), min_size=1, max_size=40),
    st.sampled_from(["minmax", "rrf"]),
    st.integers(1, 50),
)
def test_order_is_the_same_each_time_and_holds_only_what_may_come_once(
    said: list[tuple[int, int, bool, bool]], fusion: Literal["minmax", "rrf"], pool: int
) -> None:
    on = passage_table(["x" * length for length, *_ in said])
    held = np.flatnonzero([holds for *_, holds, _ in said])
    eligible = np.array([may for *_, may in said])
    cosines = np.array([cosine / 10 for _, cosine, *_ in said])
    asked = QueryMatches(cosines=cosines, found={"tango": held} if len(held) else {})
    first, again = (rank(on, asked, eligible, NOW, Recipe(candidates=pool, fusion=fusion)) for _ in range(2))
    assert first.rows.tolist() == again.rows.tolist()
    assert eligible[first.rows].all() and len(set(first.rows.tolist())) == len(first.rows)
    for (row, score), (next_row, next_score) in pairwise(zip(first.rows, first.scores, strict=True)):
        assert score > next_score or row < next_row


def test_min_max_ignores_a_signal_that_is_the_same_everywhere() -> None:
    scores = min_max_fusion({"meaning": np.array([0.2, 0.6]), "words": np.array([3.0, 3.0])}, WEIGHTS)
    assert scores == pytest.approx([0.0, 1.0])


def test_both_fusions_agree_on_a_clear_case() -> None:
    on = passage_table(["text"] * 30)
    asked = QueryMatches(cosines=np.where(np.arange(30) == 12, 1.0, 0.0), found={"tango": np.array([12])})
    best = [
        rank(on, asked, everything(30), NOW, Recipe(candidates=50, fusion=fusion)).rows[0]
        for fusion in ("minmax", "rrf")
    ]
    assert best == [12, 12]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_ranks_start_at_one_and_alike_values_share(values: list[int]) -> None:
    found = ranks(np.array(values, float)).tolist()
    assert found == [1 + sum(other > value for other in values) for value in values]


def test_importance_halves_in_a_week_and_knows_no_future() -> None:
    assert recency(np.array([0.0, 7.0, 14.0, -3.0])) == pytest.approx([1.0, 0.5, 0.25, 1.0])
    assert consequence(False, False) == 1.0 and consequence(True, True) == pytest.approx(1.8)


def mmr(vectors: list[np.ndarray], scores: list[float], balance: float) -> list[int]:
    ranked = RankedRows(np.arange(len(scores)), np.array(scores), {"words": np.array(scores)})
    return diversified(ranked, np.array(vectors), balance).rows.tolist()


def test_a_repetition_waits_until_something_else_was_said() -> None:
    vectors = [axis(0), axis(0), axis(1)]
    assert mmr(vectors, [1.0, 0.9, 0.8], 0.5) == [0, 2, 1]


def test_relevance_alone_keeps_the_order() -> None:
    assert mmr([axis(0), axis(0), axis(1)], [1.0, 0.9, 0.5], 1.0) == [0, 1, 2]


@given(st.integers(0, 120), st.floats(0, 0.99))
def test_diversity_loses_and_doubles_nothing(count: int, balance: float) -> None:
    vectors = [axis(row % 3) for row in range(count)]
    order = mmr(vectors, sorted((row % 7 for row in range(count)), reverse=True), balance) if count else []
    assert sorted(order) == list(range(count))


def test_passages_are_found_by_their_ids_and_unknown_ids_are_left_out() -> None:
    on = passage_table(["one", "two", "three"])
    assert on.rows_of(np.array([3, 1, 0, 4, 99])).tolist() == [2, 0]
    assert passage_table([]).rows_of(np.array([1])).tolist() == []


@pytest.mark.parametrize("positive", [0.5, 0.01, 0.0])
def test_the_highest_of_many_values_are_found_without_sorting_them(positive: float) -> None:
    draw = np.random.default_rng(0)
    values = np.where(draw.random(20_000) < positive, draw.integers(1, 5000, 20_000) / 5000, -draw.random(20_000))
    eligible = draw.random(20_000) < 0.3

    def highest(rows: Rows) -> set[int]:
        return {*rows[np.lexsort((rows, -values[rows]))][:200].tolist()}

    every = np.flatnonzero(values > 0)
    of_all, of_eligible = ranking._best(values, eligible, 200)
    assert {*of_all.tolist()} == highest(every)
    assert {*of_eligible.tolist()} == highest(every[eligible[every]])


def test_passages_are_found_where_ids_are_missing_in_between() -> None:
    table = passage_table(["one", "two", "three"])
    gaps = replace(table, ids=np.array([3, 5, 9]))
    assert gaps.rows_of(np.array([1, 3, 4, 9, 10])).tolist() == [0, 2]
    assert table.rows_of(np.array([-4, 1, 3, 4])).tolist() == [0, 2]


def test_what_answers_more_for_its_room_comes_first_and_short_passages_need_the_room_of_a_stretch() -> None:
    found = RankedRows(np.array([7, 8, 9]), np.zeros(3), {})
    judged = by_worth(found, np.array([0.5, 0.4, 0.9]), np.array([WORTH_CHARS * 2, WORTH_CHARS, WORTH_CHARS * 4]))
    assert judged.rows.tolist() == [8, 7, 9]
    assert judged.signals[PROBABILITY].tolist() == [0.4, 0.5, 0.9]
    alike = by_worth(found, np.array([0.5, 0.5, 0.0]), np.array([WORTH_CHARS, 1, 1]))
    assert alike.rows.tolist() == [7, 8, 9] and alike.scores[0] == alike.scores[1] > alike.scores[2] > -np.inf


def test_words_of_surroundings_count_as_their_weights_say() -> None:
    random = np.random.default_rng(5)
    found = {
        term: np.flatnonzero(random.random(500) < share) for term, share in zip("abc", (0.01, 0.2, 0.6), strict=True)
    }
    rows, around = np.flatnonzero(random.random(500) < 0.3), random.integers(-1, 500, (10, 500))
    around = around[:, : len(rows)]
    weights = random.random(around.shape) * (around >= 0)
    held = np.array([np.isin(np.arange(500), holding) for holding in found.values()])
    expected = held[:, rows] + (held[:, around] * weights).sum(1)
    assert np.allclose(nearby(found, 500, rows, around, weights), expected)
    assert (term_matrix(found, rows) == held[:, rows]).all()
    assert nearby({}, 500, rows, around, weights).shape == (0, len(rows)) == term_matrix({}, rows).shape


@pytest.mark.parametrize("scores", [[0.5, 0.9, 0.5, 0.1, 0.9], [0.2, 0.7, 0.4]])
def test_equal_scores_keep_the_order_of_their_rows(scores: list[float]) -> None:
    ranked = RankedRows(np.arange(len(scores)), np.zeros(len(scores)), {})
    lengths = WORTH_CHARS * np.ones(len(scores))
    expected = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    assert by_worth(ranked, np.array(scores), lengths).rows.tolist() == expected
