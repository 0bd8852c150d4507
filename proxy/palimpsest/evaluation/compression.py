"""Compressed vectors: ways to keep one in fewer bits, and what each of them finds nearest to a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from palimpsest.core.recall.ranking import Rows
from palimpsest.domain.ports import Vectors

RESCORED = 4  # times as many candidates as are wanted are looked at once more

Scores = Callable[[Vectors, Vectors], Vectors]
"""From vectors (n, d) and a question (d,), all of unit length, to what ranks the n; higher is nearer."""


def exact(vectors: Vectors, question: Vectors) -> Vectors:
    """Vectors as they are: 32 bits a dimension."""
    return vectors @ question


def halves(vectors: Vectors, question: Vectors) -> Vectors:
    """Vectors rounded to 16 bits, as the store keeps them."""
    return vectors.astype(np.float16).astype(np.float32) @ question


def bytes_of(vectors: Vectors, question: Vectors) -> Vectors:
    """Vectors rounded to 8 bits, scaled so that the largest component of each is 127."""
    scale = np.abs(vectors).max(axis=1, keepdims=True) / 127
    rounded: Vectors = np.rint(vectors / scale) * scale
    return rounded @ question


def signs(vectors: Vectors, question: Vectors) -> Vectors:
    """Signs of vectors and question, 1 bit each: the more agree, the nearer (Charikar, STOC 2002)."""
    return np.sign(vectors) @ np.sign(question)


WAYS: Mapping[str, Scores] = {"fp32": exact, "fp16": halves, "int8": bytes_of, "1 bit": signs}


def nearest(scores: Vectors, count: int) -> Rows:
    """Rows of the highest scores, best first, at most `count`; ties go to the lower row."""
    rows: Rows = np.argsort(-scores, kind="stable")[:count]
    return rows


def rescored(vectors: Vectors, question: Vectors, count: int) -> Rows:
    """As `nearest`, but only among four times as many that are nearest by their signs."""
    rows = np.sort(nearest(signs(vectors, question), RESCORED * count))
    return rows[nearest(exact(vectors[rows], question), count)]
