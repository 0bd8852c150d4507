"""Places of values in a JSON text, found by a scan, for what is changed without being parsed and written again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

Span = tuple[int, int]
"""Characters `start` to `stop` of a text, the last not included."""

_SPACE = re.compile(r"[ \t\n\r]*")

scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
"""The value that begins at a place, and where it stops. Numbers need no value here."""


def walk(text: str, at: int) -> Iterator[tuple[str, Span]]:
    """Key ("" in a list) and place of each value of the object or list that starts at `at`."""
    is_object = text[at] == "{"
    at, key = skip_space(text, at + 1), ""
    while text[at] not in "]}":
        if is_object:
            key, stop = scan(text, at)
            at = skip_space(text, skip_space(text, stop) + 1)  # past the colon
        stop = scan(text, at)[1]
        yield key, (at, stop)
        at = skip_space(text, stop)
        if text[at] == ",":
            at = skip_space(text, at + 1)


def skip_space(text: str, at: int) -> int:
    """The first place from `at` on that is no white space of JSON."""
    match = _SPACE.match(text, at)
    return match.end() if match else at
