"""
The comparison of a client's requests at its provider's own address with those that come through the proxy.

What must differ is made equal first: ids and times, which are new in each run. What is left is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import orjson
from palimpsest.domain import Json
from palimpsest.evaluation.scripted.reply import Received

MODELS = ("/messages", "/responses", "/chat/completions")
OF_THE_CONNECTION = frozenset({"host", "connection", "content-length", "authorization", "x-api-key"})
"""Headers that speak of the way and the credential; `content-length` is compared as the length of the body."""

_NEW_EACH_TIME = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"  # UUIDs
    r"|\b(ses|msg|prt|fc|rs|resp)_[0-9A-Za-z-]+"
    r"|Chunk ID: [0-9a-f]+|Wall time: [\d.]+"  # of a command that Codex runs
    r"|\b1[789]\d{8,11}(\.\d+)?\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?"  # times
    r"|\b[0-9a-f]{32,}\b|\bcch=[0-9a-f]+|\b[0-9a-f]{7,10}\b"  # hashes and checksums
)


def main_requests(received: Sequence[Received]) -> list[Received]:
    """The requests of the conversation itself: titles and the like have no tools where it has some."""
    asked = [r for r in received if r.method == "POST" and r.endpoint.endswith(MODELS)]
    return [r for r in asked if r.json.get("tools")] or asked


def tools(request: Received) -> int:
    return len(request.json.get("tools") or ())


def betas_of(request: Received) -> set[str]:
    """The features that an Anthropic client asks for."""
    return set(next((v for k, v in request.headers.items() if k.lower() == "anthropic-beta"), "").split(","))


def differences(own: Received, ours: Received) -> set[str]:
    """
    The names of headers, betas and fields of the body in which two requests differ.

    The order of a list counts, and so does the body's length: `length` where nothing else tells why.
    """
    one, other = _parts(own), _parts(ours)
    found = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return found or ({"length"} if len(own.body) != len(ours.body) else set())


def _parts(request: Received) -> Mapping[str, str]:
    return {"path": request.path} | dict(_headers(request.headers)) | dict(_fields(request.json))


def _headers(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in headers.items():
        if name.lower() == "anthropic-beta":
            yield from ((beta, "") for beta in value.split(","))
        elif name.lower() not in OF_THE_CONNECTION:
            yield name.lower(), _NEW_EACH_TIME.sub("*", value)


def _fields(body: Json) -> Iterator[tuple[str, str]]:
    for name, value in body.items():
        yield f"body.{name}", _NEW_EACH_TIME.sub("*", orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())
