from __future__ import annotations

import numpy as np
import pytest
from palimpsest.core.recall.similarity import EXACT_PASSAGES, LARGE_PASSAGES, Floats, Meanings, signs_of

DIMENSIONS = 384


def unit(vectors: Floats) -> Floats:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def scattered(count: int, seed: int = 1) -> Floats:
    return unit(np.random.default_rng(seed).standard_normal((count, DIMENSIONS)))


@pytest.fixture(scope="module")
def large() -> Floats:
    """Passages about anything, and from 4711 on twenty that are about one thing, each less than the one before."""
    vectors = scattered(LARGE_PASSAGES)
    vectors[4712:4731] += vectors[4711] * np.linspace(3, 0.6, 19)[:, None]
    return unit(vectors)


def asked(vectors: Floats, near: int) -> Floats:
    """Two forms of a question that one passage answers."""
    return unit(vectors[near] + 0.03 * scattered(2, seed=2))


def test_a_small_scope_is_compared_exactly() -> None:
    vectors = scattered(50)
    questions = asked(vectors, 7)
    first, middle = Meanings(vectors).cosines(questions)
    assert first == pytest.approx(questions[0] @ vectors.T, abs=1e-6)
    assert middle == pytest.approx(questions.mean(0) @ vectors.T, abs=1e-6)


def test_in_a_large_scope_the_nearest_are_exact_and_the_others_about_right(large: Floats) -> None:
    halves = large.astype(np.float16)
    questions = asked(large, 4711)
    found = np.array(Meanings(halves, signs_of(halves)).cosines(questions))
    exact = np.array([questions[0], questions.mean(0)]) @ large.T
    nearest = np.argsort(-exact[1])[:20]
    assert sorted(nearest) == [*range(4711, 4731)]
    assert found[:, nearest] == pytest.approx(exact[:, nearest], abs=1e-3)
    assert found.argmax(1).tolist() == [4711, 4711]
    assert np.abs(found - exact).mean() < 0.05
    assert (np.abs(found - exact).max(0) < 1e-3).sum() >= EXACT_PASSAGES


def test_a_passage_without_a_vector_is_near_nothing(large: Floats) -> None:
    vectors = large.copy()
    vectors[4711] = 0
    questions = asked(large, 4711)
    halves = vectors.astype(np.float16)
    assert all(abs(near[4711]) < 0.2 for near in Meanings(halves, signs_of(halves)).cosines(questions))
    assert [near[11] for near in Meanings(vectors[4700:4720]).cosines(questions)] == [0, 0]
