"""
JSON values of any depth: read, written, measured, and changed text by text.

Clients may nest a thousand levels in a field that nobody reads. Nothing here calls itself for each level, which Python
allows a thousand times in all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import Any

import orjson

from palimpsest.domain import Json, frozen

DEEPEST = 500  # levels that a changed copy keeps; orjson reads 1,024, and stored messages are wrapped in a few more

_SURROGATE = re.compile("[\ud800-\udfff]")

OnText = Callable[[str, str, Json], str]
"""Given a text, the name of its field ("" in a list) and the object that holds it ({} in a list)."""


def dumps(value: Any) -> str:
    """JSON text of any value, however deep, that any encoding takes."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # deeper than 254, or half a surrogate pair
        return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", "".join(_written(value)))


def loads(data: bytes) -> Any:
    """
    The value of a JSON text; raises `ValueError`: it is none.

    Half a surrogate pair, which a program leaves that cuts an emoji in two, is replaced: nothing else is lost for it.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        if b"\\u" not in data:
            raise
    try:
        return orjson.loads(_SURROGATE.sub("\ufffd", json.dumps(json.loads(data.decode()), ensure_ascii=False)))
    except RecursionError as cause:
        raise ValueError("it is nested too deeply") from cause


def loads_own(text: str) -> Any:
    """The value of a text that `dumps` wrote; a half of a surrogate pair stays as it was."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # half of one
        return json.loads(text)


def chars_of(value: Any) -> int:
    """Characters in all texts of a JSON value: media, arguments and what nobody reads included."""
    left, chars = [value], 0
    while left:
        value = left.pop()
        if isinstance(value, str):
            chars += len(value)
        elif isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
    return chars


def memory_bytes(value: Any) -> int:
    """Bytes of memory that a JSON value takes, about; a character beyond Latin-1 makes all of its text take 2 or 4."""
    left, size = [value], 0
    while left:
        value = left.pop()
        size += getsizeof(value)
        if isinstance(value, dict):
            size += sum(map(len, value))
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
    return size


def changed(value: Any, on_text: OnText, on_name: Callable[[str], str] = str) -> Any:
    """
    A copy of a JSON value in which every text, and every name of a field, is replaced.

    What is nested deeper than 500 levels becomes one text, its JSON.
    """
    whole: list[Any] = []
    left: list[tuple[Any, Any, int]] = [([value], whole, 0)]
    while left:
        source, copy, depth = left.pop()
        is_object = isinstance(source, dict)
        for name, item in source.items() if is_object else (("", item) for item in source):
            new = item
            if isinstance(item, dict | list | tuple) and depth == DEEPEST:
                item = dumps(item)
            if isinstance(item, str):
                new = on_text(item, name, source if is_object else {})
            elif isinstance(item, dict | list | tuple):
                new = {} if isinstance(item, dict) else []
                left.append((item, new, depth + 1))
            if not is_object:
                copy.append(new)
            else:
                named = on_name(name)
                copy[named if named not in copy else f"{named} {len(copy)}"] = new
    return whole[0]


@frozen
class _Sign:
    """A piece of JSON that is no value."""

    text: str


def _written(value: Any) -> Iterator[str]:
    """The pieces of a value in JSON, however deeply it is nested."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, _Sign):
            yield item.text
        elif isinstance(item, dict):
            left.append(_Sign("}"))
            for at, (name, held) in reversed([*enumerate(item.items())]):
                left += (held, _Sign(f"{',' if at else ''}{json.dumps(name, ensure_ascii=False)}:"))
            yield "{"
        elif isinstance(item, list | tuple):
            left.append(_Sign("]"))
            for at, held in reversed([*enumerate(item)]):
                left += (held, _Sign("," if at else ""))
            yield "["
        else:
            yield json.dumps(item, ensure_ascii=False)
