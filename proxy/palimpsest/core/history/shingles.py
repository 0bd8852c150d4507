"""
Sampled word shingles, keyed: they find a text again inside another one.

A summary that a client wraps, trims or tags still holds long runs of the answer that it was made from. Runs of eight
words are hashed, and one in four is kept, chosen by its hash alone: both texts choose alike, so a few look-ups find
the echo wherever it stands (winnowing by "0 mod p", Manber 1994; Schleimer, Wilkerson and Aiken, SIGMOD 2003).
"""

from __future__ import annotations

import hashlib
import re
import zlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from palimpsest.wire.pieces import SPACED_AND_LOWER, pieces

SHINGLE_WORDS = 8  # long enough that two texts share one by quoting, not by chance
SAMPLE = 4  # one in four: a text of thirty words keeps one with probability 0.999
MAX_WORDS = 20_000  # a longer text is read from its start; transcripts repeat their evidence many times
_TAG = re.compile(r"<[^<>]{1,80}>")  # clients tag, and strip tags, on either side
_WORD = re.compile(r"[^\W_]+")
_SHIFT, _SAMPLE, _ONE = np.uint64(29), np.uint64(SAMPLE), np.uint64(1)


def shingles(text: str, key: bytes) -> list[int]:
    """
    Sampled fingerprints of all runs of eight words.

    Args:
        text: any length; case, white space, punctuation and tags do not count.
        key: keys the hashes, so that no text can be guessed from the store.

    Returns:
        Distinct 63-bit integers in order of appearance; none for fewer than eight words.
    """
    words: list[str] = []
    for start, stop in pieces(text):
        words += _words(text[start:stop])
        if len(words) >= MAX_WORDS:
            break
    del words[MAX_WORDS:]
    if len(words) < SHINGLE_WORDS:
        return []
    powers, mixer, seed = _constants(key)
    codes = np.array([zlib.crc32(word.encode(), seed) for word in words], np.uint64)
    mixed = np.convolve(codes, powers, "valid") * mixer  # the hash of each run, as of a polynomial
    mixed ^= mixed >> _SHIFT
    kept = mixed[mixed % _SAMPLE == 0] >> _ONE
    return list(dict.fromkeys(kept.tolist()))


def _words(piece: str) -> list[str]:
    """Lower-case words, without tags."""
    plain = _TAG.sub(" ", piece) if "<" in piece else piece
    if plain.isascii():  # as below, in a quarter of the time
        return plain.encode().translate(SPACED_AND_LOWER).decode().split()
    return _WORD.findall(plain.lower())


@lru_cache(maxsize=64)
def _constants(key: bytes) -> tuple[npt.NDArray[np.uint64], np.uint64, int]:
    """Powers of an odd number, an odd number, and the seed of the words' hashes."""
    digest = hashlib.blake2b(key, digest_size=20, person=b"shingles").digest()
    odd = [int.from_bytes(digest[start : start + 8], "big") | 1 for start in (0, 8)]
    powers = np.array([pow(odd[0], power, 1 << 64) for power in range(SHINGLE_WORDS)], np.uint64)
    return powers, np.uint64(odd[1]), int.from_bytes(digest[16:20], "big")
