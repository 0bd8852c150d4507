"""Envelopes that proxies send each other: a JSON object on one line, and bytes behind it that nobody changes."""

from __future__ import annotations

import orjson

from palimpsest.domain import Json
from palimpsest.domain.errors import WireError

MEDIA_TYPE = "application/x-palimpsest"


def seal(head: Json, *parts: bytes) -> bytes:
    """One envelope."""
    return b"".join((orjson.dumps(head), b"\n", *parts))


def unseal(sealed: bytes) -> tuple[Json, bytes]:
    """The head of an envelope, and the bytes behind it; raises `WireError`: it is none."""
    line, _, rest = sealed.partition(b"\n")
    try:
        head = orjson.loads(line)
    except orjson.JSONDecodeError as cause:
        raise WireError("this is not an envelope: its first line is not JSON") from cause
    if not isinstance(head, dict):
        raise WireError("this is not an envelope: its first line is not a JSON object")
    return head, rest


def difference(before: bytes, after: bytes) -> tuple[int, int, bytes]:
    """Where two texts differ: from and to in the first, and what stands there in the second."""
    shorter = min(len(before), len(after))
    start = _common(before, after, shorter)
    left = shorter - start
    same = _common(before[::-1], after[::-1], left) if left else 0
    return start, len(before) - same, after[start : len(after) - same]


def _common(one: bytes, other: bytes, most: int) -> int:
    """How many leading bytes two texts share; of `most` that are compared, by halves."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
