"""
The wire of Anthropic's Messages API: parse, render, reply.

Lossless as the chat wire is. The other wires give each tool result a message of its own: here they are parts of a
user's, and are read apart, so that one conversation has the same roles and fingerprints on every wire. What is added
stands behind what its message says, and so behind every mark that the client set for the provider's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from palimpsest.domain import Api, Chat, Completion, Insertion, Json, Message
from palimpsest.domain.errors import WireError
from palimpsest.wire.assembly import grow, settled
from palimpsest.wire.json_body import object_in, positive, read_object, token_count
from palimpsest.wire.layout import OUTSIDE, KnownBody
from palimpsest.wire.message import compacted, is_aside, objects, read_message, text_of
from palimpsest.wire.splice import Form, add

FORM = Form(listed="messages", text_part="text", in_front=False, instructions="system")
API = Api.ANTHROPIC
LISTED, FOLDS = FORM.listed, False

READ_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")  # together the whole prompt


def parse(body: bytes, known: KnownBody | None = None, raw: Json | None = None) -> Chat:
    """See `palimpsest.domain.ports.Wire`."""
    raw = known.raw if known else raw or read_object(body)
    listed, thread = raw.get("messages"), raw.get("thread")
    thread = thread if isinstance(thread, dict) else {}
    held = thread.get("type") == "continue"
    if not known and (not isinstance(listed, list) or not (listed or held)):
        raise WireError("reading the request body: no list of messages")
    start = known.elements if known else 0
    further: Sequence[Any] = known.further if known else listed or ()
    first = _first_read(further, start)
    goes_on = known is not None and not first
    outside: Sequence[Message] = ()
    if raw.get("system") and not (known and goes_on and known.is_outside_known):
        outside = (read_message({"role": "system", "content": raw["system"]}),)
    placed: list[tuple[int, Message]] = []
    for place, said in enumerate(further[first - start :] if first else further, first or start):
        read = (known.apart.get(id(said)) if known else None) or map(read_message, _split(said))
        placed += [(place, message) for message in read]
    new, places, beside = [message for _, message in placed], [place for place, _ in placed], [OUTSIDE] * len(outside)
    return Chat(
        messages=known.messages(outside, new) if known and goes_on else (*outside, *new),
        model=text_of(raw.get("model")),
        body=body,
        raw=raw,
        tool_names=tuple(name for tool in objects(raw.get("tools")) if (name := text_of(tool.get("name")))),
        stream=raw.get("stream") is True,
        max_reply_tokens=positive(raw.get("max_tokens")),
        places=known.places(beside, places) if known and goes_on else (*beside, *places),
        held=held,
        follows=text_of(thread.get("previous_message_id")),
        compacts=isinstance(raw.get("compaction"), dict),
        layout=known.layout if known else None,
    )


def render(chat: Chat, insertions: Sequence[Insertion]) -> bytes:
    """See `palimpsest.domain.ports.Wire`."""
    return add(chat, insertions, FORM)


def reply(payloads: Sequence[bytes], streamed: bool) -> Completion:
    """See `palimpsest.domain.ports.Wire`; tokens of the prompt include those of the provider's cache."""
    try:
        raw, prompt_tokens, id = of_events(payloads) if streamed else of_body(b"".join(payloads))
    except RecursionError:  # somebody nests objects by the hundred
        return Completion()
    try:
        return Completion(read_message(raw) if raw else None, prompt_tokens, id)
    except WireError:
        return Completion(None, prompt_tokens, id)


def _first_read(further: Sequence[Any], start: int = 0) -> int:
    """Index of the first message that the provider reads, behind its own compaction; 0: none from `start` on."""
    for at in range(len(further) - 1, -1, -1):
        said = further[at]
        if start + at and isinstance(said, dict) and any(map(compacted, objects(said.get("content")))):
            return start + at
    return 0


def _split(native: Any) -> Iterator[Any]:
    """Split one message of the body as the other wires have it: each tool result, what the client adds, the rest."""
    parts = native.get("content") if isinstance(native, dict) and native.get("role") == "user" else None
    results: list[Any] = []
    asides: list[Any] = []
    said: list[Any] = []
    for part in parts if isinstance(parts, list) else ():
        (results if _is_kind(part, "tool_result") else asides if _is_aside(part) else said).append(part)
    if not results:
        yield native
        return
    is_said = any(_is_kind(part, "text") for part in said)
    for result in results[:-1]:
        yield _message("tool", [result])
    yield _message("tool", [results[-1], *([] if is_said else said)])  # images alone belong to the results
    if asides:
        yield _message("system", asides)
    if is_said:
        yield _message("user", said)


def _message(role: str, parts: Sequence[Any]) -> Json:
    return {"role": role, "content": list(parts)}


def _is_kind(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _is_aside(part: Any) -> bool:
    """Whether a part beside tool results is a client's reminder between tags."""
    return _is_kind(part, "text") and is_aside(text_of(part.get("text")))


def of_body(body: bytes) -> tuple[Json | None, int | None, str]:
    """The message of a whole answer, with role and content alone (None: there is none); prompt tokens; its id."""
    said = object_in(body)
    content = said.get("content")
    message = {"role": "assistant", "content": content} if isinstance(content, str | list) else None
    tokens: dict[str, int] = {}
    _count(tokens, said)
    return message, _prompt_tokens(tokens), text_of(said.get("id"))


def of_events(payloads: Iterable[bytes]) -> tuple[Json | None, int | None, str]:
    """Message, prompt tokens and id of a stream of events, as far as they came; unknown events are left out."""
    blocks: dict[int, Json] = {}
    tokens: dict[str, int] = {}
    has_begun, id = False, ""
    for payload in payloads:
        event = object_in(payload)
        match event:
            case {"type": "message_start", "message": dict(message)}:
                has_begun, id = True, text_of(message.get("id"))
                _count(tokens, message)
            case {"type": "content_block_start", "content_block": dict(opened)}:
                has_begun = True
                grow(blocks.setdefault(_index(event, len(blocks)), {}), opened)
            case {"type": "content_block_delta", "delta": dict(delta)}:
                has_begun = True
                _grow(blocks.setdefault(_index(event, max(blocks, default=0)), {}), delta)
            case {"type": "message_delta"}:
                _count(tokens, event)
    content = [_closed(settled(blocks[index])) for index in sorted(blocks)]
    return {"role": "assistant", "content": content} if has_begun else None, _prompt_tokens(tokens), id


def _grow(block: Json, delta: Json) -> None:
    """Add a delta to a block: `text`, `thinking`, `signature`, pieces of JSON, citations."""
    if isinstance(citation := delta.get("citation"), dict):
        cited = block.get("citations")
        block["citations"] = [*cited, citation] if isinstance(cited, list) else [citation]
    else:
        grow(block, {key: value for key, value in delta.items() if key != "type"})


def _closed(block: Json) -> Json:
    """A block with its call's arguments parsed; broken JSON stays a text."""
    written = block.pop("partial_json", "")
    if isinstance(written, str) and written:
        try:
            block["input"] = orjson.loads(written)
        except orjson.JSONDecodeError:
            block["input"] = written
    return block


def _index(event: Json, fallback: int) -> int:
    index = event.get("index")
    return index if type(index) is int else fallback


def _count(tokens: dict[str, int], said: Json) -> None:
    """Take the larger count of prompt tokens: some providers tell it at the beginning, some at the end."""
    usage = said.get("usage")
    for name in READ_TOKENS:
        if isinstance(usage, dict) and (count := token_count(usage.get(name))) is not None:
            tokens[name] = max(count, tokens.get(name, 0))


def _prompt_tokens(tokens: dict[str, int]) -> int | None:
    return sum(tokens.values()) if "input_tokens" in tokens else None
