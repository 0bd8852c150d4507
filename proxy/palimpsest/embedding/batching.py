"""Texts in small batches of alike lengths, as every embedding model here is given them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from palimpsest.ports import Vectors

SLICE_TEXTS = 8  # texts per run: larger runs are not faster on one core, only larger in memory
MAX_CHARS = 8192  # beyond, nothing can be among the first 256 tokens: no tokenising of megabytes


def embed_in_batches(texts: Sequence[str], dimensions: int, run: Callable[[list[str]], Vectors]) -> Vectors:
    """
    Vectors of texts, shape (n, dimensions), in the order of `texts`.

    Args:
        run: embeds a few texts at once. A short text beside a long one is padded to its length, so that alike lengths
            share a run.
    """
    vectors = np.empty((len(texts), dimensions), np.float32)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), SLICE_TEXTS):
        chosen = order[start : start + SLICE_TEXTS]
        vectors[chosen] = run([readable(texts[i]) for i in chosen])
    return vectors


def readable(text: str) -> str:
    """The beginning of a text as a tokenizer takes it: half a surrogate pair is legal in JSON, and an error there."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode()
