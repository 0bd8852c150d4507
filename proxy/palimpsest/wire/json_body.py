"""The JSON body of a request, before any API's format is read in it."""

from __future__ import annotations

from typing import Any

from palimpsest.domain import Json
from palimpsest.domain.errors import WireError
from palimpsest.wire.values import loads

MOST_TOKENS = 2**40  # more than any model reads, and the sum of millions of them is a number that databases take
MAX_BODY_BYTES = 32 * 1024 * 1024  # a larger request passes without memory: reading it takes too long


def read_object(body: bytes) -> Json:
    """The JSON object that a body is; raises `WireError`: it is something else."""
    try:
        raw = loads(body)
    except ValueError as cause:
        raise WireError(f"reading the request body: {cause}") from cause
    if not isinstance(raw, dict):
        raise WireError("reading the request body: not a JSON object")
    return raw


def object_in(payload: bytes) -> Json:
    """The JSON object that a piece of an answer is; an empty one where it is something else."""
    try:
        heard = loads(payload)
    except ValueError:
        return {}
    return heard if isinstance(heard, dict) else {}


def positive(value: Any) -> int | None:
    """A limit that the client sets, None where it sets none that makes sense."""
    return token_count(value) or None


def token_count(value: Any) -> int | None:
    """A number of tokens that somebody tells, None where it makes no sense."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
