"""
Text added to a JSON body without touching the rest of it, at places that its layout or a scan tells.

Parsing and writing again would round numbers, drop repeated keys and change spaces and escapes; here every byte of the
client's stays, and ours stand between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

import orjson

from palimpsest.domain import Chat, Insertion, Layout, frozen
from palimpsest.domain.errors import WireError
from palimpsest.wire.json_scan import Span, skip_space, walk

Edit = tuple[int, int, str]
"""Characters `start` to `stop` give way to the text."""


@frozen
class Form:
    """How one wire writes down what was said."""

    listed: str  # the body's list of messages or items; a text alone stands for one user message
    text_part: str  # type of a part that is a text of the user's
    in_front: bool = True  # added text stands before what its message says; else behind it, as a part of its own
    instructions: str = ""  # the body's own field for them, where no message may have the role `system`


def add(chat: Chat, insertions: Sequence[Insertion], form: Form) -> bytes:
    """A request's body with text added to it, else the client's very bytes; raises as `splice`."""
    if not insertions:
        return chat.body
    located = [_located(chat, one) for one in insertions]
    if chat.layout is None or (form.instructions and any(one.role == "system" for one in located)):
        return splice(chat.body, located, form)
    return splice_at(chat.layout, located, form)


def splice_at(layout: Layout, insertions: Sequence[Insertion], form: Form) -> bytes:
    """`splice`, within the list alone, for a body whose layout is known: only messages that carry text are scanned."""
    whole, at = memoryview(layout.body), 0
    run = whole[layout.first : layout.last]
    try:
        edits = [*_edits(layout.starts, layout.stops, lambda span: str(run[span], "utf-8"), insertions, form)]
    except (ValueError, RecursionError, orjson.JSONEncodeError) as cause:
        raise WireError(f"adding text to the request body: {cause}") from cause
    pieces: list[bytes | memoryview] = []
    for start, stop, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [whole[at : layout.first + start], new.encode()]
        at = layout.first + stop
    return b"".join([*pieces, whole[at:]])


def splice(body: bytes, insertions: Sequence[Insertion], form: Form) -> bytes:
    """
    The body with the insertions made in its list, every other byte as it was.

    Args:
        body: a request that has been parsed before: JSON, with a list of messages.
        insertions: `at` counts in that list.

    Raises:
        WireError: a key that matters is there twice, an index is not there, or the nesting is too deep to follow.
    """
    try:
        text = body.decode()
        start = skip_space(text, 0)
        listed = _one(walk(text, start), form.listed)
        if listed is None:
            raise ValueError("there are no messages")
        apart = [one for one in insertions if form.instructions and one.role == "system"]
        beside = [one for one in insertions if one not in apart]
        edits = list(_beside(text, start, form.instructions, apart, form)) if apart else []
        if text[listed[0]] == '"':
            edits.append(_into_text(text, listed, beside))
        else:
            spans = [span for _, span in walk(text, listed[0])]
            starts, stops = [start for start, _ in spans], [stop for _, stop in spans]
            edits += _edits(starts, stops, text.__getitem__, beside, form)
    except (ValueError, RecursionError, orjson.JSONEncodeError) as cause:
        raise WireError(f"adding text to the request body: {cause}") from cause
    return edited(text, edits).encode()


def spans_of(text: str, listed: str) -> list[Span]:
    """
    Where the elements of a body's list stand. Raises `ValueError`: the list is there twice, or the text is no JSON.
    """
    span = member(text, listed)
    return [place for _, place in walk(text, span[0])] if span is not None and text[span[0]] == "[" else []


def member(text: str, key: str) -> Span | None:
    """
    Where the value of a body's key stands, or None. Raises `ValueError`: it is there twice, or the text is no JSON.
    """
    return _one(walk(text, skip_space(text, 0)), key)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """A text with these edits made in it, whatever their order."""
    pieces, at = [], 0
    for start, stop, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[at:start], new]
        at = stop
    return "".join([*pieces, text[at:]])


def _located(chat: Chat, insertion: Insertion) -> Insertion:
    """The insertion with its place in the body's own list."""
    if not chat.places:
        return insertion
    behind = insertion.at - len(chat.places)
    place = chat.places[insertion.at] if behind < 0 else chat.places[-1] + 1 + behind
    if place < 0 and not insertion.role:
        raise WireError(f"adding text to the request body: message {insertion.at} is outside the list")
    return replace(insertion, at=max(place, 0))


def _into_text(text: str, listed: Span, insertions: Sequence[Insertion]) -> Edit:
    """The edit for an input that is a text: it stays one unless a message of its own comes before it."""
    start, stop = listed
    said = "".join(_dumps(f"{one.text}\n\n")[1:-1] for one in insertions if not one.role)
    whole = f'"{said}{text[start + 1 : stop]}'
    own = [_dumps({"role": one.role, "content": one.text}) for one in insertions if one.role]
    if own:
        theirs = f'{{"role":"user","content":{whole}}}'
        whole = f"[{','.join([*own, theirs])}]"
    return start, stop, whole


def _edits(
    starts: Sequence[int],
    stops: Sequence[int],
    text_at: Callable[[slice], str],
    insertions: Sequence[Insertion],
    form: Form,
) -> Iterator[Edit]:
    """The edits that put insertions into a list: as messages of their own, or into the content of others."""
    for one in insertions:
        if not starts or not 0 <= one.at < len(starts) + bool(one.role):
            raise ValueError(f"there is no message {one.at}")
        if one.role:
            message = _dumps({"role": one.role, "content": one.text})
            is_last = one.at == len(starts)
            at = stops[-1] if is_last else starts[one.at]
            yield at, at, f",{message}" if is_last else f"{message},"
    into = sorted((one for one in insertions if not one.role), key=attrgetter("at"))
    for index, together in groupby(into, key=attrgetter("at")):
        first, stop = starts[index], stops[index]
        text = text_at(slice(first, stop))
        yield first, stop, edited(text, _beside(text, 0, "content", together, form))


def _beside(text: str, start: int, key: str, insertions: Iterable[Insertion], form: Form) -> Iterator[Edit]:
    """Edits that put texts beside what the object at `start` has under a key, in the form that it has there."""
    content = _one(walk(text, start), key)
    block = "\n\n".join(insertion.text for insertion in insertions)
    part = _dumps({"type": form.text_part, "text": block})
    if content is None:
        yield start + 1, start + 1, f'"{key}":{_dumps(block)},'
        return
    first, stop = content
    if text[first] == "[":
        is_empty = text[skip_space(text, first + 1)] == "]"
        at = first + 1 if form.in_front else stop - 1
        comma = "" if is_empty else ","
        yield at, at, part + comma if form.in_front else comma + part
    elif text[first] != '"':  # null
        yield first, stop, _dumps(block)
    elif form.in_front:
        yield first + 1, first + 1, _dumps(block + "\n\n")[1:-1]
    else:
        opening = f'[{{"type":"{form.text_part}","text":'
        yield first, first, opening
        yield stop, stop, f"}},{part}]"


def _one(members: Iterator[tuple[str, Span]], key: str) -> Span | None:
    """Place of the member's value; readers disagree on which of two equal keys counts, so neither does."""
    found = [span for name, span in members if name == key]
    if len(found) > 1:
        raise ValueError(f"the key {key!r} is there {len(found)} times")
    return found[0] if found else None


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()
