"""The registry of wires: the paths on which memory acts, each with its format. All others pass."""

from __future__ import annotations

from palimpsest.domain.ports import Wire
from palimpsest.wire import chat, compaction, messages, responses

WIRES: dict[str, Wire] = {
    "/v1/chat/completions": chat,
    "/v1/messages": messages,
    "/v1/responses": responses,
    "/v1/responses/compact": compaction,
}
COUNTING: dict[str, Wire] = {"/v1/messages/count_tokens": messages, "/v1/responses/input_tokens": responses}
"""Paths of requests that are only counted."""


def wire_of(method: str, path: str) -> Wire | None:
    """How to read a request, whatever stands in front of `/v1/`; None: memory has nothing to do with it."""
    start = path.find("/v1/")
    return WIRES.get(path[start:]) if method == "POST" and start >= 0 else None


def path_of(wire: Wire) -> str:
    """The path on which memory reads requests so."""
    return next(path for path, one in WIRES.items() if one is wire)


def counting_wire_of(method: str, path: str) -> Wire | None:
    """How to read a request that is only counted; None: it is none. Arguments as of `wire_of`."""
    start = path.find("/v1/")
    return COUNTING.get(path[start:]) if method == "POST" and start >= 0 else None
