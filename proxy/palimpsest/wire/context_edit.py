"""
The edit by which a request of the Messages API asks for a compaction (`compact_20260112`), made by the proxy.

Anthropic's answer then begins with a `compaction` block, and what stood before that is not read again. So the proxy
sends its provider a message in the place of the history, and puts such a block in front of the answer; or answers with
the block alone, where the client wants to pause there.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from palimpsest.domain import Chat, Json, frozen
from palimpsest.domain.errors import WireError
from palimpsest.wire.json_body import object_in, positive
from palimpsest.wire.message import OPAQUE_PART, objects
from palimpsest.wire.own_compaction import EVENTS, JSON, message_of, without_own_parts
from palimpsest.wire.splice import Edit, edited, member, spans_of

EDIT = "compact_20260112"
TRIGGER_TOKENS = 150_000  # Anthropic's default
LEAST_TRIGGER_TOKENS = 50_000  # that Anthropic allows; a token is a byte, at least
_CONTEXT = "context_management"
_MARK = f'"{EDIT}"'.encode()
_BLOCK_EVENT = re.compile(rb'"type"\s*:\s*"content_block_(?:start|delta|stop)"')
_INDEX = re.compile(rb'("index"\s*:\s*)(\d+)')
_START = re.compile(rb'"type"\s*:\s*"message_start"')
_EVENT_END = re.compile(rb"\r?\n\r?\n")


@frozen
class ContextEdit:
    """What the edit says: from how many tokens of the prompt on, and whether the answer ends with the compaction."""

    trigger_tokens: int
    pauses: bool


def may_compact(body: bytes) -> bool:
    """Whether a request may ask for the edit; found without parsing it."""
    return _MARK in body


def context_edit(chat: Chat) -> ContextEdit | None:
    """The edit of a request; None: it asks for none."""
    context = chat.raw.get(_CONTEXT)
    edits = objects(context.get("edits")) if isinstance(context, dict) else ()
    edit = next((edit for edit in edits if edit.get("type") == EDIT), None)
    if edit is None:
        return None
    trigger = edit.get("trigger")
    named = positive(trigger.get("value")) if isinstance(trigger, dict) else None
    return ContextEdit(named or TRIGGER_TOKENS, edit.get("pause_after_compaction") is True)


def compacted_body(body: bytes, text: str) -> bytes:
    """The request with a message for its history, but its last message, without the edit; `WireError` as `splice`."""
    try:
        told = body.decode()
        spans = spans_of(told, "messages")
        last = orjson.loads(told[slice(*spans[-1])])
        has_results = any(part.get("type") == "tool_result" for part in objects(last.get("content")))
        kept = spans[-2:] if has_results else spans[-1:]
        texts = [without_own_parts(told[slice(*span)]) for span in kept]
        edits: list[Edit] = [(spans[0][0], spans[-1][1], ",".join([message_of(text), *filter(None, texts)]))]
        if (place := member(told, _CONTEXT)) is not None:
            context = orjson.loads(told[slice(*place)])
            context["edits"] = [edit for edit in context["edits"] if edit.get("type") != EDIT]
            edits.append((*place, orjson.dumps(context).decode()))
        return edited(told, edits).encode()
    except (ValueError, IndexError, KeyError, AttributeError, RecursionError) as cause:
        raise WireError(f"compacting the request body: {cause}") from cause


def paused_answer(chat: Chat, reference: str, number: str) -> tuple[str, bytes]:
    """The answer that is a compaction and nothing else: content type and body, whole or as events."""
    block = _block(reference)
    message: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": chat.model}
    message |= {"content": [block], "stop_reason": "compaction", "stop_sequence": None}
    message |= {"usage": {"input_tokens": 0, "output_tokens": 0}}
    if not chat.stream:
        return JSON, orjson.dumps(message)
    opening = message | {"content": [], "stop_reason": None}
    ending = {"stop_reason": "compaction", "stop_sequence": None}
    events = [
        _event("message_start", message=opening),
        _block_events(reference),
        _event("message_delta", delta=ending, usage={"output_tokens": 0}),
        _event("message_stop"),
    ]
    return EVENTS, b"".join(events)


def opened_body(body: bytes, reference: str) -> bytes:
    """A whole answer with a compaction in front of what it says; what is no message stays as it is."""
    said = object_in(body)
    if not isinstance(content := said.get("content"), list):
        return body
    return orjson.dumps(said | {"content": [_block(reference), *content]})


class OpenedStream:
    """A stream with a compaction in front of what it says; feed it the chunks as they come."""

    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._unfinished = b""

    def feed(self, data: bytes) -> bytes:
        """What these bytes complete, in whole events."""
        self._unfinished += data
        said, at = [], 0
        for end in _EVENT_END.finditer(self._unfinished):
            said.append(self._event(self._unfinished[at : end.end()]))
            at = end.end()
        self._unfinished = self._unfinished[at:]
        return b"".join(said)

    def close(self) -> bytes:
        """What is left where the stream broke off in the middle of an event."""
        return self._unfinished

    def _event(self, event: bytes) -> bytes:
        if _BLOCK_EVENT.search(event):
            return _INDEX.sub(lambda found: found[1] + b"%d" % (int(found[2]) + 1), event, count=1)
        return event + _block_events(self._reference) if _START.search(event) else event


def _block(reference: str) -> Json:
    return {"type": OPAQUE_PART, "content": reference}


def _block_events(reference: str) -> bytes:
    return b"".join(
        (
            _event("content_block_start", index=0, content_block={"type": OPAQUE_PART, "content": None}),
            _event("content_block_delta", index=0, delta={"type": "compaction_delta", "content": reference}),
            _event("content_block_stop", index=0),
        )
    )


def _event(kind: str, **more: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps({"type": kind} | more) + b"\n\n"
