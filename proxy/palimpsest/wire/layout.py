"""
The places of a body's messages, and what of a body need not be read again because it was read before.

Clients send their whole history with every request. A body is compared byte by byte with one that was read before; what
is equal is taken over, only the rest is scanned and parsed. Whatever is not understood here (another order of fields,
other white space, a key that is there twice) is no error: the body is then read whole, with the same result.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from palimpsest.domain import Chat, Json, Layout, Message, PersistentList, frozen
from palimpsest.wire.json_scan import scan, skip_space, walk
from palimpsest.wire.values import loads

OPENING_BYTES = 64  # of an element: tells those that could be the same
SEARCHED = 4  # comparisons for each element of the other body, at most: thousands of results may begin alike
OUTSIDE = -1  # the place of a message that does not stand in the list


T = TypeVar("T")


@frozen
class KnownBody:
    """
    What of a body was read before, for `Wire.parse`.

    The first `elements` of its list make the messages `beside` to `stop` of `before`; `apart` are the messages of
    further ones, by the identity of their values. The messages in front, which stand in no list, are the same where
    `is_outside_known`.
    """

    raw: Json
    layout: Layout
    before: Chat
    elements: int = 0
    beside: int = 0
    stop: int = 0
    apart: Mapping[int, Sequence[Message]] = field(default_factory=dict)
    is_outside_known: bool = False

    @property
    def further(self) -> Sequence[Any]:
        """The other elements, in order."""
        listed: Sequence[Any] = self.layout.elements[self.elements :]
        return listed

    def messages(self, outside: Sequence[Message], new: Sequence[Message]) -> Sequence[Message]:
        """All messages: those that stand in no list, where they are not known, and those of `further`."""
        return self._grown(self.before.messages, outside, new)

    def places(self, outside: Sequence[int], new: Sequence[int]) -> Sequence[int]:
        """The place of each message in the list; arguments as of `messages`."""
        return self._grown(self.before.places, outside, new)

    def _grown(self, before: Sequence[T], outside: Sequence[T], new: Sequence[T]) -> Sequence[T]:
        if self.is_outside_known:
            return PersistentList.of(before).then(self.stop, new)
        return (*outside, *before[self.beside : self.stop], *new)


def layout_of(body: bytes, raw: Json, listed: str) -> Layout | None:
    """The layout of a parsed body, by the key of its list; None where it cannot be told without doubt."""
    try:
        text = body.decode()
        found = _members(text, listed)
    except (ValueError, IndexError, RecursionError):
        return None
    if found is None or not found[1]:
        return None
    spans = found[1]
    if not text.isascii():
        spans = _in_bytes(text, spans)
    first, last = spans[0][0], spans[-1][1]
    starts, stops = (array("q", [span[i] - first for span in spans]) for i in (0, 1))
    outside = {key: value for key, value in raw.items() if key != listed}
    return Layout(body, first, last, starts, stops, outside, raw[listed])


def same_bytes(body: bytes, layout: Layout) -> int:
    """How many bytes in front of a body are those of another one, up to the end of an element; 0: not even its head."""
    if not body.startswith(memoryview(layout.body)[: layout.first]):
        return 0
    same = _shared_elements(body, layout)
    return layout.first + (layout.stops[same - 1] if same else 0)


def repeats(body: bytes, layout: Layout) -> bool:
    """Whether a body begins with all of another one up to the end of its last element."""
    return body.startswith(memoryview(layout.body)[: layout.last])


def known_body(body: bytes, before: Chat, listed: str, folds: bool, does_repeat: bool = False) -> KnownBody | None:
    """
    What is known of a body from another one; None where it must be read whole.

    Args:
        before: what was read of the other body, with its layout.
        folds: the wire makes one message of several elements.
        does_repeat: it is known that `repeats` is true of both.
    """
    old = before.layout
    if old is None or not (does_repeat or body.startswith(memoryview(old.body)[: old.first])):
        return None
    tail = old.body[old.last :]
    try:
        found = _further(body, old, tail, does_repeat)
    except (ValueError, IndexError, RecursionError):
        return None
    if found is None:
        return None
    same, spans, origins, at = found
    elements, start = old.elements, old.first
    new = [
        body[start + first : start + last] for (first, last), origin in zip(spans, origins, strict=True) if origin < 0
    ]
    try:
        values = iter(loads(b'{"":[%b]}' % b",".join(new))[""])
    except ValueError:
        return None
    rest = [next(values) if origin < 0 else elements[origin] for origin in origins]
    if next(values, None) is not None or not (same or rest):
        return None
    is_same_tail = len(body) - len(tail) == at and body.endswith(tail)
    outside = old.outside if is_same_tail else _outside(body[:start], body[at:], listed)
    if outside is None:
        return None
    starts = old.starts[:same] + array("q", [start for start, _ in spans])  # type: ignore[operator]
    stops = old.stops[:same] + array("q", [stop for _, stop in spans])  # type: ignore[operator]
    grown = PersistentList.of(elements).then(same, rest)
    layout = Layout(body, start, at, starts, stops, outside, grown)
    raw = {**outside, listed: grown}
    again = {origin: elements[origin] for origin in origins if origin >= 0}
    return _read_before(before, layout, raw, same, again, folds)


def _read_before(
    before: Chat, layout: Layout, raw: Json, same: int, again: Mapping[int, Any], folds: bool
) -> KnownBody:
    """Which messages of `before` are those of its first `same` elements, and of the elements `again`."""
    assert before.layout is not None
    places, messages = before.places, before.messages
    if messages and not places:  # a list that makes no message has none either
        apart: dict[int, Sequence[Message]] = {id(value): (messages[origin],) for origin, value in again.items()}
        return KnownBody(raw, layout, before, same, 0, same, apart, True)
    beside = bisect_left(places, 0)  # messages outside of the list stand first
    is_known = layout.outside is before.layout.outside
    first = places[beside] if beside < len(places) else len(before.layout.starts)
    if first >= same:  # what stands in front of the first that was read has never been read
        same = 0
    stop = bisect_left(places, same)
    if folds:  # the last of them may go on in what is new
        if stop > beside:
            stop -= 1
            same = places[stop]
        return KnownBody(raw, layout, before, same, beside, stop, {}, is_known)
    apart = {}
    for origin, value in again.items():
        if of_it := messages[bisect_left(places, origin) : bisect_left(places, origin + 1)]:
            apart[id(value)] = of_it
    return KnownBody(raw, layout, before, same, beside, stop, apart, is_known)


def _further(
    body: bytes, old: Layout, tail: bytes, does_repeat: bool
) -> tuple[int, list[tuple[int, int]], list[int], int] | None:
    """
    Find the elements of a body whose head is known.

    Returns:
        How many elements in front are those of the other body; the spans of all further ones, in bytes behind the head;
        of each its index in the other body, -1 where it is new; and where in the body the last element ends.
    """
    start = old.first
    same = len(old.stops) if does_repeat else _shared_elements(body, old)
    at = start + (old.stops[same - 1] if same else 0)
    ends = body.endswith(tail) and len(body) - len(tail) >= at
    text = body[at : len(body) - len(tail) if ends else len(body)].decode()
    openings = _openings(old, same)
    spans: list[tuple[int, int]] = []
    origins: list[int] = []
    char, count = 0, same
    following, missed = same, 0  # the element behind the last that was found again, and how many were not since then
    left = SEARCHED * len(old.starts)
    is_ascii = text.isascii()
    stop = at
    while True:
        before = char
        char = skip_space(text, char)
        if char == len(text) if ends else text[char] == "]":
            return same, spans, origins, stop
        if count:
            if text[char] != ",":
                return None
            char = skip_space(text, char + 1)
        if text[char] != "{":
            return None
        at += char - before
        first = at
        origin, _ = _origin(body, at, old, (following, following + missed))  # most changes leave the order as it is
        if origin < 0 and left > 0:
            origin, compared = _origin(body, at, old, openings.get(body[at : at + OPENING_BYTES], ()))
            left -= compared
        following, missed = (origin + 1, 0) if origin >= 0 else (following, missed + 1)
        if origin >= 0:
            size = old.stops[origin] - old.starts[origin]
            char += size if is_ascii else len(body[at : at + size].decode())
            at += size
        else:
            end = scan(text, char)[1]
            at += end - char if is_ascii else len(text[char:end].encode())
            char = end
        stop = at
        spans.append((first - start, stop - start))
        origins.append(origin)
        count += 1


def _shared_elements(body: bytes, old: Layout) -> int:
    """How many elements in front of two bodies are the same, and what stands between them; their heads are."""
    start, run = old.first, memoryview(old.body)[old.first : old.last]
    if body.startswith(run, start):
        return len(old.stops)
    low, high, at = 0, len(old.stops) - 1, 0
    while low < high:
        middle = (low + high + 1) // 2
        stop = old.stops[middle - 1]
        if body.startswith(run[at:stop], start + at):
            low, at = middle, stop
        else:
            high = middle - 1
    return low


def _openings(old: Layout, same: int) -> dict[bytes, list[int]]:
    """Elements from `same` on, by how they begin."""
    found: dict[bytes, list[int]] = {}
    for index in range(same, len(old.starts)):
        start = old.first + old.starts[index]
        found.setdefault(old.body[start : min(start + OPENING_BYTES, old.last)], []).append(index)
    return found


def _origin(body: bytes, at: int, old: Layout, indexes: Iterable[int]) -> tuple[int, int]:
    """Which of some elements of another body stands at a place of this one, -1: none; and how many were compared."""
    run, compared = memoryview(old.body)[old.first : old.last], 0
    for index in indexes:
        compared += 1
        if index < len(old.starts) and body.startswith(run[old.starts[index] : old.stops[index]], at):
            return index, compared
    return -1, compared


def _outside(head: bytes, tail: bytes, listed: str) -> Json | None:
    """The fields of a body beside its list; None where that is in doubt."""
    shell = head + tail
    try:
        outside = loads(shell)
        found = _members(shell.decode(), listed)
    except (ValueError, IndexError, RecursionError):
        return None
    if not isinstance(outside, dict) or found is None or found[1]:
        return None
    opening = len(head.decode().rstrip(" \t\n\r")) - 1
    return {key: value for key, value in outside.items() if key != listed} if found[0] == opening else None


def _members(text: str, listed: str) -> tuple[int, list[tuple[int, int]]] | None:
    """The beginning of a JSON object's list, and the span of each element; None unless it is one list, of objects."""
    found = None
    at = skip_space(text, 0)
    if text[at] != "{":
        return None
    at = skip_space(text, at + 1)
    while text[at] != "}":
        key, stop = scan(text, at)
        at = skip_space(text, skip_space(text, stop) + 1)  # past the colon
        if key != listed:
            stop = scan(text, at)[1]
        elif found is not None or text[at] != "[":
            return None
        else:
            found = (at, [span for _, span in walk(text, at)])
            if any(text[first] != "{" for first, _ in found[1]):
                return None
            stop = skip_space(text, found[1][-1][1] if found[1] else at + 1) + 1
        at = skip_space(text, stop)
        if text[at] == ",":
            at = skip_space(text, at + 1)
    return found


def _in_bytes(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of a text as spans of its UTF-8 bytes."""

    def lengths() -> Iterator[int]:
        """The UTF-8 length of the text up to each start and stop, rising."""
        at = size = 0
        for place in (place for span in spans for place in span):
            size += len(text[at:place].encode())
            at = place
            yield size

    sizes = lengths()
    return [(first, next(sizes)) for first in sizes]
