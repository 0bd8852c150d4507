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

from proxy.wire.pieces import pieces

SHINGLE_WORDS = 8  # long enough that two texts share one by quoting, not by chance
SAMPLE = 4  # one in four: a text of thirty words keeps one with probability 0.999
MAX_WORDS = 20_000  # a longer text is read from its start; transcripts repeat their evidence many times
_TAG = re.compile(r"<[^<>]{1,80}>")  # clients tag, and strip tags, on either side
_WORD = re.compile(r"[^\W_]+")
_MASK = np.uint64((1 << 63) - 1)


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
        words += _WORD.findall(_TAG.sub(" ", text[start:stop]).lower())
        if len(words) >= MAX_WORDS:
            break
    del words[MAX_WORDS:]
    if len(words) < SHINGLE_WORDS:
        return []
    multiplier, mixer, seed = _constants(key)
    codes = np.fromiter((zlib.crc32(word.encode(), seed) for word in words), dtype=np.uint64, count=len(words))
    rolled = np.zeros(len(words) - SHINGLE_WORDS + 1, dtype=np.uint64)
    for offset in range(SHINGLE_WORDS):
        rolled = rolled * multiplier + codes[offset : offset + len(rolled)]
    mixed = rolled * mixer
    mixed ^= mixed >> np.uint64(29)
    kept = (mixed[mixed % np.uint64(SAMPLE) == 0] >> np.uint64(1)) & _MASK
    return list(dict.fromkeys(kept.tolist()))


@lru_cache(maxsize=64)
def _constants(key: bytes) -> tuple[np.uint64, np.uint64, int]:
    digest = hashlib.blake2b(key, digest_size=20, person=b"shingles").digest()
    odd = [int.from_bytes(digest[start : start + 8], "big") | 1 for start in (0, 8)]
    return np.uint64(odd[0]), np.uint64(odd[1]), int.from_bytes(digest[16:20], "big")
