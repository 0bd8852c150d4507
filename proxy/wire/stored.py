"""
How does a message look on disk, and how is it read back? As a readable text, and the JSON that the text does not say.

Lossless but for three things: credentials are redacted, inlined media and what only the provider can read stand as
reference and hash, blocks of ours are taken out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson

from proxy.core.digest import readable
from proxy.domain import Json, Message
from proxy.wire.message import INLINED_FIELDS, TEXT_PARTS, inline_reference, without_blocks

Clean = Callable[[str], str]
"""Takes credentials out of a text."""

DRAWN, DRAWN_FIELD = "image_generation_call", "result"  # results of other calls are for people to read
OPAQUE_FIELDS = ("encrypted_content", "signature")  # for the provider to read, large, and no use to anybody else


def to_stored(message: Message, clean: Clean) -> tuple[str, str]:
    """
    The two columns of a message.

    Returns:
        What it says and does (`digest.readable`), which offsets of passages count in; and its JSON. That has no
        `content` where the text is exactly that, and stands in a list of one where the message never had any.
    """
    said = readable(message.text, message.calls)
    text = clean(said).replace("\0", " ")  # SQLite's own functions end a text there
    raw, content = message.raw, message.raw.get("content")
    if isinstance(content, str) and without_blocks(content) == said and "\0" not in said:
        return text, dumps(cleaned({key: value for key, value in raw.items() if key != "content"}, clean))
    if isinstance(content, list):
        raw = {**raw, "content": [_without_media(part) for part in content]}
    rest = cleaned(raw, clean)
    return text, dumps(rest if "content" in rest else [rest])


def from_stored(text: str, rest: str) -> Json:
    """The JSON message that `to_stored` was given; equal as a value, its keys perhaps in another order."""
    value = orjson.loads(rest)
    if isinstance(value, list):
        only: Json = value[0]
        return only
    message: Json = value
    return message if "content" in message else {**message, "content": text}


def cleaned(value: Any, clean: Clean) -> Any:
    """A JSON value with every text in it cleaned, and blocks of ours taken out."""
    if isinstance(value, str):
        return clean(without_blocks(value))
    if isinstance(value, list):
        return [cleaned(item, clean) for item in value]
    if isinstance(value, dict):
        return {key: cleaned(item, clean) for key, item in value.items()}
    return value


def dumps(value: Any) -> str:
    """JSON text of any value, however deep."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # deeper than 254
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _without_media(value: Any, is_inlined: bool = False) -> Any:
    """A content part with inlined data replaced by reference and hash."""
    if isinstance(value, str):
        return inline_reference(value) if is_inlined or value[:5].lower() == "data:" else value
    if isinstance(value, list):
        return [_without_media(item) for item in value]
    if isinstance(value, dict) and (kind := str(value.get("type"))) not in TEXT_PARTS:
        inlined = (*INLINED_FIELDS, *OPAQUE_FIELDS, *((DRAWN_FIELD,) if kind == DRAWN else ()))
        return {name: _without_media(item, name in inlined) for name, item in value.items()}
    return value
