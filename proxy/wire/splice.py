"""
How is text added to a JSON body without touching the rest of it? By splicing at the places that a scan finds.

Parsing and writing again would round numbers, drop repeated keys and change spaces and escapes; here every byte of the
client's stays, and ours stand between them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import orjson

from proxy.domain import Insertion
from proxy.errors import WireError

_scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode  # numbers need no value here
_SPACE = re.compile(r"[ \t\n\r]*")

Span = tuple[int, int]
Edit = tuple[int, int, str]
"""Characters `start` to `stop` give way to the text."""


def splice(body: bytes, insertions: Sequence[Insertion]) -> bytes:
    """
    The body with the insertions made in its `messages`, every other byte as it was.

    Args:
        body: a chat request that has been parsed before: JSON, with a list of messages.

    Raises:
        WireError: a key that matters is there twice, an index is not there, or the nesting is too deep to follow.
    """
    try:
        text = body.decode()
        listed = _one(_walk(text, _skip(text, 0)), "messages")
        if listed is None:
            raise ValueError("there are no messages")
        edits = list(_edits(text, [span for _, span in _walk(text, listed[0])], insertions))
    except (ValueError, RecursionError, orjson.JSONEncodeError) as cause:
        raise WireError(f"adding text to the request body: {cause}") from cause
    pieces, at = [], 0
    for start, stop, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[at:start], new]
        at = stop
    return "".join([*pieces, text[at:]]).encode()


def _edits(text: str, spans: Sequence[Span], insertions: Sequence[Insertion]) -> Iterator[Edit]:
    for insertion in insertions:
        if not 0 <= insertion.at < len(spans) + bool(insertion.role):
            raise ValueError(f"there is no message {insertion.at}")
        if insertion.role:
            message = _dumps({"role": insertion.role, "content": insertion.text})
            if insertion.at < len(spans):
                start = spans[insertion.at][0]
                yield start, start, message + ","
            else:
                yield spans[-1][1], spans[-1][1], "," + message
    into = sorted((i for i in insertions if not i.role), key=lambda insertion: insertion.at)
    for at, together in groupby(into, key=lambda insertion: insertion.at):
        yield _into_message(text, spans[at][0], "\n\n".join(insertion.text for insertion in together))


def _into_message(text: str, start: int, block: str) -> Edit:
    """Before what the message at `start` says, in the form that its content has."""
    content = _one(_walk(text, start), "content")
    if content is None:
        return start + 1, start + 1, f'"content":{_dumps(block)},'
    first = content[0]
    if text[first] == '"':
        return first + 1, first + 1, _dumps(block + "\n\n")[1:-1]
    if text[first] == "[":
        part = _dumps({"type": "text", "text": block})
        is_empty = text[_skip(text, first + 1)] == "]"
        return first + 1, first + 1, part if is_empty else part + ","
    return *content, _dumps(block)  # null


def _one(members: Iterator[tuple[str, Span]], key: str) -> Span | None:
    """Place of the member's value; readers disagree on which of two equal keys counts, so neither does."""
    found = [span for name, span in members if name == key]
    if len(found) > 1:
        raise ValueError(f"the key {key!r} is there {len(found)} times")
    return found[0] if found else None


def _walk(text: str, at: int) -> Iterator[tuple[str, Span]]:
    """Key ("" in a list) and place of each value of the object or list that starts at `at`."""
    is_object = text[at] == "{"
    at, key = _skip(text, at + 1), ""
    while text[at] not in "]}":
        if is_object:
            key, stop = _scan(text, at)
            at = _skip(text, _skip(text, stop) + 1)  # past the colon
        stop = _scan(text, at)[1]
        yield key, (at, stop)
        at = _skip(text, stop)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()
