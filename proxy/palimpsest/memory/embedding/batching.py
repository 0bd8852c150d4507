"""Texts in small batches of alike lengths, as every embedding model here is given them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import numpy as np

from palimpsest.domain.ports import Vectors

# Texts per run: a product of so many fills a core already. Of 64 passages in runs of 8, padding is a tenth of the work;
# in runs of 4 it is a twentieth.
SLICE_TEXTS = 4
MAX_CHARS = 8192  # beyond, nothing can be among the first 256 tokens: no tokenising of megabytes


def embed_in_batches(texts: Sequence[str], dimensions: int, run: Callable[[list[str]], Vectors]) -> Vectors:
    """Vectors of texts, shape (n, dimensions), in their order; `run` embeds a few at once."""
    return in_slices([*map(len, texts)], dimensions, lambda chosen: run([readable(texts[i]) for i in chosen]))


def in_slices(
    lengths: Sequence[int], dimensions: int, run: Callable[[list[int]], Vectors], threads: Executor | None = None
) -> Vectors:
    """
    Vectors of n texts, shape (n, dimensions), in their order.

    Args:
        lengths: of the texts. A short text beside a long one is padded to it, so that alike lengths share a run.
        run: embeds the texts of a few numbers at once.
        threads: run several at once, the longest first; None: one behind the other.
    """
    vectors = np.empty((len(lengths), dimensions), np.float32)
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    slices = [order[start : start + SLICE_TEXTS] for start in range(0, len(order), SLICE_TEXTS)]
    for chosen, made in zip(slices, map(run, slices) if threads is None else threads.map(run, slices), strict=True):
        vectors[chosen] = made
    return vectors


def readable(text: str) -> str:
    """The beginning of a text as a tokenizer takes it: half a surrogate pair is legal in JSON, and an error there."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode()
