"""
The assembly of a Messages answer: its content blocks, from a body or from events.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from palimpsest.domain import Json
from palimpsest.wire.assembly import grow, settled
from palimpsest.wire.json_body import object_in

READ_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")  # together the whole prompt


def of_body(body: bytes) -> tuple[Json | None, int | None, str]:
    """
    The message of a whole answer.

    Returns:
        As clients send it back, with role and content alone (None: there is none); prompt tokens; its id.
    """
    said = object_in(body)
    content = said.get("content")
    message = {"role": "assistant", "content": content} if isinstance(content, str | list) else None
    tokens: dict[str, int] = {}
    _count(tokens, said)
    return message, _sum(tokens), _id(said)


def of_events(payloads: Iterable[bytes]) -> tuple[Json | None, int | None, str]:
    """The same from the events of a stream, as far as they came; what is no event that we know is left out."""
    blocks: dict[int, Json] = {}
    tokens: dict[str, int] = {}
    has_begun, id = False, ""
    for payload in payloads:
        event = object_in(payload)
        match event:
            case {"type": "message_start", "message": dict(message)}:
                has_begun, id = True, _id(message)
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
    return {"role": "assistant", "content": content} if has_begun else None, _sum(tokens), id


def _grow(block: Json, delta: Json) -> None:
    """A delta names what it adds: `text`, `thinking`, `signature`, pieces of JSON; citations come one by one."""
    if isinstance(citation := delta.get("citation"), dict):
        cited = block.get("citations")
        block["citations"] = [*cited, citation] if isinstance(cited, list) else [citation]
    else:
        grow(block, {key: value for key, value in delta.items() if key != "type"})


def _closed(block: Json) -> Json:
    """The arguments of a call come as pieces of JSON; what broke off stays a text."""
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


def _id(message: Json) -> str:
    id = message.get("id")
    return id if isinstance(id, str) else ""


def _count(tokens: dict[str, int], said: Json) -> None:
    """Some providers know the prompt's size when the answer begins, some when it ends: the larger one counts."""
    usage = said.get("usage")
    for name in READ_TOKENS:
        if isinstance(usage, dict) and type(count := usage.get(name)) is int:
            tokens[name] = max(count, tokens.get(name, 0))


def _sum(tokens: dict[str, int]) -> int | None:
    return sum(tokens.values()) if "input_tokens" in tokens else None
