"""
The storage format of a message: readable text, and as JSON what the text does not say.

Lossless but for three things: credentials are redacted, inlined media and what only the provider can read stand as
reference and hash, blocks of ours are taken out. Compaction items of ours stay: they are references already.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from palimpsest.domain import Json, Message
from palimpsest.domain.word_cache import word_cache
from palimpsest.wire.message import (
    INLINED_FIELDS,
    OWN_PREFIX,
    TEXT_PARTS,
    inline_reference,
    readable,
    without_memory_blocks,
)
from palimpsest.wire.values import changed, dumps, loads_own

Clean = Callable[[str], str]
"""Takes credentials out of a text."""

DRAWN, DRAWN_FIELD = "image_generation_call", "result"  # results of other calls are for people to read
OPAQUE_FIELDS = ("encrypted_content", "signature")  # for the provider to read, large, and no use to anybody else
NAMED_CHARS = 4096  # a longer text is no password
ROLES = frozenset({"user", "assistant", "tool", "function", "system", "developer"})  # hold no credential
REMEMBERED_NAMES = 4096  # of fields: messages have some thirty
LIKE_A_SECRET = "YW5uOmExQjJjM0Q0ZTVGNg=="  # to find out whether a name alone makes a secret of a text
_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTED = re.compile(r'["\\\n]')


def to_stored(message: Message, clean: Clean) -> tuple[str, str]:
    """
    The two columns in which a message is stored: its text, and the rest as JSON.

    Returns:
        What it says and does (`message.readable`), which offsets of passages count in; and its JSON. That has no
        `content` where the text is exactly that, and stands in a list of one where the message never had any.
    """
    said = readable(message.text, message.calls)
    text = storable(clean(said))
    raw = without_memory_blocks(message.raw)
    content = raw.get("content")
    if isinstance(content, str) and content == said == storable(said):
        rest = {key: value for key, value in raw.items() if key != "content"}
        is_plain = len(rest) == 1 and message.role in ROLES
        return text, dumps(rest if is_plain else cleaned(rest, clean))
    if isinstance(content, list):
        raw = {**raw, "content": [_without_media(part) for part in content]}
    rest = cleaned(raw, clean)
    return text, dumps(rest if "content" in rest else [rest])


def storable(text: str) -> str:
    """
    A text that any database takes: PostgreSQL refuses NUL, where SQLite's own functions end a text, and both refuse
    half a surrogate pair. Each is one other character, so that offsets stay; what it was stands in the message's JSON.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _SURROGATE.sub("\ufffd", text)
    return text.replace("\0", " ")


def from_stored(text: str, rest: str) -> Json:
    """The JSON message that `to_stored` was given; equal as a value, its keys perhaps in another order."""
    value = loads_own(rest)
    if isinstance(value, list):
        only: Json = value[0]
        return only
    message: Json = value
    return message if "content" in message else {**message, "content": text}


def cleaned(value: Any, clean: Clean) -> Any:
    """A JSON value with every text in it cleaned, names of fields too."""

    def text(said: str, name: str, _: Json) -> str:
        """The string without credentials, also without one that only its field name tells."""
        found = clean(said)
        if found == said and len(said) <= NAMED_CHARS and _names_secret(name, clean) and not _QUOTED.search(said):
            return _clean_by_field_name(name, said, clean)
        return found

    return changed(value, text, lambda name: _name(name, clean))


@word_cache(REMEMBERED_NAMES)
def _name(name: str, clean: Clean) -> str:
    return clean(name)


@word_cache(REMEMBERED_NAMES)
def _names_secret(name: str, clean: Clean) -> bool:
    """Whether a text that says nothing by itself is a secret under this name."""
    return _clean_by_field_name(name, LIKE_A_SECRET, clean) != LIKE_A_SECRET


def _clean_by_field_name(name: str, said: str, clean: Clean) -> str:
    before = f'"{name}": "'
    found = clean(f'{before}{said}"')
    return found[len(before) : -1] if found.startswith(before) and found.endswith('"') else said


def _without_media(value: Any) -> Any:
    """A content part with inlined data replaced by reference and hash."""

    def text(said: str, name: str, owner: Json) -> str:
        """The string, or a reference in place of inlined media."""
        kind = str(owner.get("type"))
        if kind in TEXT_PARTS or said.startswith(OWN_PREFIX):
            return said
        is_inlined = name in INLINED_FIELDS or name in OPAQUE_FIELDS or (kind == DRAWN and name == DRAWN_FIELD)
        return inline_reference(said) if is_inlined or said[:5].lower() == "data:" else said

    return changed(value, text)
