"""The similarity of passages to a question: exact in a small scope; in a large one preselected by sign bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from palimpsest.domain.frozen import frozen

Floats = npt.NDArray[np.floating[Any]]
Signs = npt.NDArray[np.uint64]

LARGE_PASSAGES = 10_000  # comparing so many exactly takes 2 ms; of more, vectors are kept in half the room, with signs
EXACT_PASSAGES = 1_000  # of a large scope: the nearest 200 are among them (`bench ablate`)
COMPARED_AT_ONCE = 200  # passages; their vectors stay in the processor's cache while they are converted and compared
WORD_BITS = 64
MANTISSA_BITS = 23 - 10  # that a 32-bit float has more than a 16-bit one (IEEE 754)
SIGN_AND_NUMBER = np.int32(-1 ^ (7 << 28))  # without the copies of the sign that a shift leaves
EXPONENT_SHIFT = np.float32(2.0 ** (127 - 15))


@frozen
class Meanings:
    """
    The vectors of n passages, (n, d) and of unit length; zeros where one is not there yet.

    `signs`, (d / 64, n), are theirs as bits, None in a small scope; where they are there, vectors are 16-bit floats.
    """

    vectors: Floats
    signs: Signs | None = None

    def cosines(self, questions: Floats) -> tuple[Floats, Floats]:
        """
        Cosines of every passage to the first of q forms of one question, (n,), and to the middle of all forms, (n,).

        Forms are (q, d) and of unit length. In a large scope the cosines of the 1,000 nearest to the middle are exact;
        the others are estimated by how many signs differ (Charikar, STOC 2002), 0.04 off on average.
        """
        if self.signs is None:
            exact = _dot(questions, self.vectors)
            return exact[0], exact.mean(0)
        differ = _differing(self.signs, questions.mean(0))
        bits = len(self.signs) * WORD_BITS
        first = np.cos(np.pi * np.arange(bits + 1, dtype=np.float32) / bits).take(differ)
        middle = first.copy()
        rows = _nearest(differ)
        for start in range(0, len(rows), COMPARED_AT_ONCE):
            some = rows[start : start + COMPARED_AT_ONCE]
            exact = _dot(questions, _single(self.vectors.take(some, axis=0)))
            first[some], middle[some] = exact[0], exact.mean(0)
        return first, middle


def signs_of(vectors: Floats) -> Signs:
    """Vectors (m, d) as bits, (d / 64, m): one where a component is above 0."""
    packed = np.packbits(vectors > 0, axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def _differing(signs: Signs, question: Floats) -> npt.NDArray[np.uint16]:
    """How many signs of each passage are not those of the question."""
    differ = np.zeros(signs.shape[1], np.uint16)
    # made once: memory that is new each time costs as much as the counting
    other, count = np.empty(signs.shape[1], np.uint64), np.empty(signs.shape[1], np.uint8)
    for word, asked in zip(signs, signs_of(question[None]), strict=True):
        differ += np.bitwise_count(np.bitwise_xor(word, asked, out=other), out=count)
    return differ


def _nearest(differ: npt.NDArray[np.uint16]) -> npt.NDArray[np.int64]:
    """Rows of the `EXACT_PASSAGES` that differ least, and of all that differ as much as the last of them."""
    last = min(EXACT_PASSAGES, len(differ)) - 1
    return np.flatnonzero(differ <= np.partition(differ, last)[last])


def _single(halves: Floats) -> Floats:
    """
    16-bit floats as 32-bit ones, exactly, in half the time that NumPy takes: the bits in their new places mean a number
    that is too small by a power of two, as the exponent has another zero. Infinities and NaN do not come through.
    """
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= np.int32(MANTISSA_BITS)
    bits &= SIGN_AND_NUMBER
    singles = bits.view(np.float32)
    singles *= EXPONENT_SHIFT
    return singles


def _dot(questions: Floats, vectors: Floats) -> Floats:
    # no "@": the threads that it starts wait for each other on a busy machine, 6 ms at the 95th percentile for 0.4
    return np.array([np.vecdot(vectors, question) for question in questions])
