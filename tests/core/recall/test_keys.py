"""Items and relations make passages nearer to a question, and never farther."""

from __future__ import annotations

import numpy as np
import pytest
from palimpsest.core.recall.keys import (
    ITEM_SHARE,
    RELATED_BOOST,
    RELATED_TERMS,
    ItemVectors,
    by_items,
    by_relations,
    related_terms,
    split_by_score,
)

IDS = np.array([10, 11, 14])
QUESTION = np.array([1.0, 0.0])


def items(*keys: tuple[int, tuple[float, float], list[int]]) -> ItemVectors:
    led = [(at, memory) for at, (_, _, memories) in enumerate(keys) for memory in memories]
    return ItemVectors(
        np.array([id for id, _, _ in keys], np.int64),
        np.array([vector for _, vector, _ in keys]).reshape(-1, 2),
        np.array([at for at, _ in led], np.int64),
        np.array([memory for _, memory in led], np.int64),
    )


def test_the_nearest_item_of_a_passage_lifts_it_by_a_share_of_what_it_is_nearer() -> None:
    cosines = np.array([0.2, 0.5, 0.9])
    found = by_items(items((1, (0.6, 0.8), [10, 11]), (2, (0.8, 0.6), [10, 14])), QUESTION, cosines, IDS)
    assert found.cosines.tolist() == pytest.approx([ITEM_SHARE * 0.6, ITEM_SHARE * 0.1, 0.0])
    assert found.items.tolist() == [2, 1, 0]


def test_passages_that_are_not_there_are_left_out() -> None:
    found = by_items(items((1, (1.0, 0.0), [9, 12, 99])), QUESTION, np.zeros(3), IDS)
    assert not found.cosines.any() and not found.items.any()
    assert not by_items(items((1, (1.0, 0.0), [9])), QUESTION, np.zeros(0), IDS[:0]).cosines.size


def test_relations_lead_from_words_of_the_question_to_others_the_strongest_first() -> None:
    relations = {
        "art": {f"w{at}": float(at) for at in range(RELATED_TERMS + 5)} | {"clay": 1.0},
        "craft": {"art": 9.0, "clay": 99.0},
    }
    found = related_terms(["art", "craft", "unknown"], relations)
    assert len(found) == RELATED_TERMS
    assert next(iter(found)) == "clay" and found["clay"] == 100.0
    assert "art" not in found


def test_rare_related_words_lift_more_than_common_ones() -> None:
    held = {"clay": np.array([0]), "day": np.array([0, 1, 2]), "gone": np.array([], np.int64)}
    boost = by_relations(held, {"clay": 2.0, "day": 2.0, "gone": 1.0}, 4)
    assert boost[0] == pytest.approx(RELATED_BOOST)
    assert 0 < boost[1] < boost[0] and boost[3] == 0
    assert not by_relations({}, {}, 4).any()


def test_results_are_shared_out_by_what_either_memory_has() -> None:
    assert split_by_score(6, [0.9, 0.9], []) == (2, 0)
    assert split_by_score(6, [0.5] * 9, [0.5] * 9) == (3, 3)
    assert split_by_score(6, [0.5] * 9, [0.9]) == (5, 1)
    assert split_by_score(6, [], [0.4] * 9) == (0, 6)
    assert split_by_score(6, [], []) == (0, 0)
