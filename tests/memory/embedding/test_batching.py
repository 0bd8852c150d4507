"""Texts in batches of alike lengths."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from palimpsest.domain.ports import Vectors
from palimpsest.memory.embedding.batching import MAX_CHARS, SLICE_TEXTS, embed_in_batches, in_slices


def test_vectors_come_in_the_order_of_the_texts_and_alike_lengths_share_a_run() -> None:
    runs = list[list[str]]()

    def lengths(texts: list[str]) -> Vectors:
        runs.append(texts)
        return np.array([[len(text), 1] for text in texts], np.float32)

    texts = ["x" * (number * 7 % 20) for number in range(20)]
    vectors = embed_in_batches(texts, 2, lengths)
    assert vectors[:, 0].tolist() == [len(text) for text in texts]
    assert [len(run) for run in runs] == [SLICE_TEXTS] * 5
    assert [text for run in runs for text in run] == sorted(texts, key=len, reverse=True)


def test_vectors_of_several_threads_come_in_the_order_of_the_texts() -> None:
    lengths = [number * 7 % 50 for number in range(50)]
    with ThreadPoolExecutor(3) as threads:
        vectors = in_slices(lengths, 1, lambda chosen: np.array([[i] for i in chosen], np.float32), threads)
    assert vectors[:, 0].tolist() == [*range(50)]


@pytest.mark.parametrize(("text", "given"), [("half \ud83d", "half ?"), ("y" * MAX_CHARS + "z", "y" * MAX_CHARS)])
def test_a_tokenizer_gets_what_it_can_read(text: str, given: str) -> None:
    def see(texts: list[str]) -> Vectors:
        assert texts == [given]
        return np.zeros((1, 2), np.float32)

    embed_in_batches([text], 2, see)


def test_no_texts_are_no_vectors() -> None:
    assert embed_in_batches([], 512, lambda texts: np.zeros((len(texts), 512))).shape == (0, 512)
