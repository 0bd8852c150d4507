from __future__ import annotations

import numpy as np
import pytest
from palimpsest.domain.ports import Vectors
from palimpsest.evaluation import compression


def drawn(count: int, seed: int = 1) -> Vectors:
    vectors = np.random.default_rng(seed).standard_normal((count, 384), np.float32)
    normed: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return normed


VECTORS, QUESTION = drawn(500), drawn(1, seed=2)[0]


@pytest.mark.parametrize(("way", "loss"), [("fp16", 1e-3), ("int8", 1e-2)])
def test_fewer_bits_move_a_score_by_little(way: str, loss: float) -> None:
    exact, fewer = compression.exact(VECTORS, QUESTION), compression.WAYS[way](VECTORS, QUESTION)
    assert 0 < np.abs(exact - fewer).max() < loss


def test_signs_count_on_how_many_sides_two_vectors_agree() -> None:
    same, opposite = compression.signs(np.stack([QUESTION, -QUESTION]), QUESTION)
    assert (same, opposite) == (384, -384)


def test_the_nearest_come_best_first_and_ties_in_order() -> None:
    assert compression.nearest(np.array([0.1, 0.9, 0.5, 0.9]), 3).tolist() == [1, 3, 2]


def test_rescoring_puts_what_the_signs_chose_into_the_exact_order() -> None:
    exact = compression.nearest(compression.exact(VECTORS, QUESTION), 20).tolist()
    by_signs = compression.nearest(compression.signs(VECTORS, QUESTION), 20).tolist()
    again = compression.rescored(VECTORS, QUESTION, 20).tolist()
    assert len(set(again) & set(exact)) > len(set(by_signs) & set(exact))
    assert again == sorted(again, key=compression.nearest(compression.exact(VECTORS, QUESTION), 500).tolist().index)
