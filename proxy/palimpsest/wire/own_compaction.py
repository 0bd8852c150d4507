"""
Compaction items made by the proxy: how they are answered, found again in a request, and written out for the provider.

To the client an item is opaque, as a provider's is; the provider is sent what it stands for, as a message of the
user's. All other bytes of the request stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from palimpsest.domain import Api, Chat, Json, frozen
from palimpsest.domain.errors import WireError
from palimpsest.domain.ports import Wire
from palimpsest.wire import compaction
from palimpsest.wire.compaction import may_hold
from palimpsest.wire.json_scan import Span
from palimpsest.wire.message import OPAQUE_PART, OWN_PREFIX, compacted, objects, text_of
from palimpsest.wire.splice import Edit, edited, member, spans_of

PREFIX = OWN_PREFIX
UNREADABLE = (
    "What was said before this point was compacted, and cannot be read now, as memory does not answer. Say so if "
    "something of it is needed; it may be there again with the next message."
)
JSON, EVENTS = "application/json", "text/event-stream; charset=utf-8"
_DATA = b"data: "
_NO_USAGE: Json = {  # no model was asked
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


@frozen
class OwnItem:
    """
    A compaction item of ours in the text of a body: what gives way to its message, and its reference.

    `rest` is what stood behind it in the same message.
    """

    span: Span
    reference: str
    rest: str = ""


def items_of(body: bytes, wire: Wire) -> list[OwnItem]:
    """The items of ours in a request, in their order; raises `WireError`: the body cannot be followed."""
    try:
        text = body.decode()
        return [*_items(text, wire)] if may_hold(body) else []
    except (ValueError, IndexError, RecursionError) as cause:
        raise WireError(f"looking for compaction items in the request body: {cause}") from cause


def expand_items(body: bytes, wire: Wire, texts: Mapping[str, str]) -> bytes:
    """
    The request with a message of the user's in the place of each item of ours. `texts`: what the items stand for, by
    their references. Raises `WireError`: the body cannot be followed.
    """
    items = items_of(body, wire)
    made = message_of if wire.API is Api.ANTHROPIC else _item
    edits: list[Edit] = []
    for item in items:
        message = made(texts[item.reference])
        edits.append((*item.span, f"{message},{item.rest}" if item.rest else message))
    return edited(body.decode(), edits).encode() if edits else body


def unread(body: bytes, wire: Wire) -> bytes:
    """The request without items of ours that could not be looked up; raises as `items_of`."""
    return expand_items(body, wire, {item.reference: UNREADABLE for item in items_of(body, wire)})


def answer(chat: Chat, wire: Wire, reference: str, number: str, now: float) -> tuple[str, bytes]:
    """
    The answer to a request for a compaction: content type and body, whole or as events, as it asks for.

    Args:
        reference: that stands in the item.
        number: makes ids.
        now: Unix seconds.
    """
    item = {"id": f"cmp_{number}", "type": OPAQUE_PART, "encrypted_content": reference}
    response: Json = {"id": f"resp_{number}", "object": "response", "created_at": int(now), "status": "completed"}
    response |= {"error": None, "incomplete_details": None, "model": chat.model, "output": [item], "usage": _NO_USAGE}
    response |= {name: chat.raw.get(name) for name in ("instructions", "metadata", "previous_response_id")}
    response |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "store": False}
    if wire is compaction:
        response["object"], response["output"] = "response.compaction", [*_user_messages(chat, number), item]
    if not chat.stream:
        return JSON, orjson.dumps(response)
    return EVENTS, b"".join(_events(response))


def events_in(content_type: str, body: bytes) -> Iterator[bytes]:
    """The events of an answer, as messages of a WebSocket have them, however it was asked for."""
    events = body if content_type == EVENTS else b"".join(_events(orjson.loads(body)))
    return (line.removeprefix(_DATA) for line in events.splitlines() if line.startswith(_DATA))


def _items(text: str, wire: Wire) -> Iterator[OwnItem]:
    if wire.API is Api.ANTHROPIC:
        yield from _newest_part(text, wire)
        return
    for span in spans_of(text, wire.LISTED):
        element = text[slice(*span)]
        if PREFIX in element:
            item = orjson.loads(element)
            held = text_of(item.get("encrypted_content")) if isinstance(item, dict) else ""
            if held.startswith(PREFIX) and OPAQUE_PART in text_of(item.get("type")):
                yield OwnItem(span, held)


def _newest_part(text: str, wire: Wire) -> Iterator[OwnItem]:
    """On Anthropic's wire the newest one counts, which is a part of an answer: nothing in front of it is read."""
    spans = spans_of(text, wire.LISTED)
    for span in reversed(spans):
        element = text[slice(*span)]
        if PREFIX in element and (held := _own_parts(orjson.loads(element))):
            yield OwnItem((spans[0][0], span[1]), held[-1][1], without_own_parts(element))
            return


def without_own_parts(element: str) -> str:
    """A message behind the last compaction of ours in it; "" where nothing is left, all of it where there is none."""
    held = _own_parts(orjson.loads(element)) if PREFIX in element else []
    content = member(element, "content") if held else None
    if content is None:
        return element
    start, stop = content
    parts = spans_of(element, "content")[held[-1][0] + 1 :]
    return f"{element[:start]}[{element[parts[0][0] : stop]}{element[stop:]}" if parts else ""


def _own_parts(message: Any) -> list[tuple[int, str]]:
    """The compactions of ours among the parts of a message: index and reference."""
    content = message.get("content") if isinstance(message, dict) else None
    parts = enumerate(content) if isinstance(content, list) else ()
    said = ((at, compacted(part)) for at, part in parts if isinstance(part, dict))
    return [(at, text) for at, text in said if text.startswith(PREFIX)]


def message_of(text: str) -> str:
    """A message of the user's, as Anthropic's wire has it."""
    return orjson.dumps({"role": "user", "content": [{"type": "text", "text": text}]}).decode()


def _item(text: str) -> str:
    content = [{"type": "input_text", "text": text}]
    return orjson.dumps({"type": "message", "role": "user", "content": content}).decode()


def _user_messages(chat: Chat, number: str) -> Iterator[Json]:
    """What the user said, as it was sent: whoever asks for a compaction by itself sends all of this next time."""
    listed = chat.raw.get("input")
    said: Iterable[Json] = [{"role": "user", "content": listed}] if isinstance(listed, str) else objects(listed)
    for at, item in enumerate(item for item in said if item.get("role") == "user"):
        content = item.get("content")
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
        yield {"id": f"msg_{number}_{at}", "type": "message", "status": "completed", "role": "user", "content": parts}


def _events(response: Json) -> Iterator[bytes]:
    opening = response | {"status": "in_progress", "output": [], "usage": None}
    said: list[tuple[str, Json]] = [
        (kind, {"response": opening}) for kind in ("response.created", "response.in_progress")
    ]
    for at, item in enumerate(response["output"]):
        kinds = ("response.output_item.added", "response.output_item.done")
        said += [(kind, {"output_index": at, "item": item}) for kind in kinds]
    said.append(("response.completed", {"response": response}))
    for number, (kind, more) in enumerate(said):
        data = orjson.dumps({"type": kind, "sequence_number": number} | more)
        yield b"event: " + kind.encode() + b"\n" + _DATA + data + b"\n\n"
