"""
What a proxy may make of a request: its very bytes, or what they decode to with blocks in it and not a byte else.

Nothing of the proxy's own reading or writing is used here: other decoders, another parser, and the forms in which a
block may stand written down once more.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from typing import Any

import brotli  # type: ignore[import-untyped]
from palimpsest.domain import RawHeaders

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SAME, ADDED = "same bytes", "with a block"

BLOCK = rb'<palimpsest-memory(?: kind=\\"[a-z]+\\")?>\\n(?:[^"\\<]|\\.|<(?!/palimpsest-memory))*</palimpsest-memory>'
PART = rb'\{"type":"(?:text|input_text)","text":"%b"\}' % BLOCK

# What stands where a block was added, and what stood there before.
FORMS: tuple[tuple[re.Pattern[bytes], bytes], ...] = (
    (re.compile(BLOCK + rb"\\n\\n"), b""),  # in front of a text
    (re.compile(PART + rb","), b""),  # a first part
    (re.compile(rb"," + PART), b""),  # a last part
    (re.compile(PART), b""),  # the only part
    (re.compile(rb'"content":"%b",' % BLOCK), b""),  # a message without content
    (re.compile(rb'"%b"' % BLOCK), b"null"),
    (re.compile(rb'\[\{"type":"text","text":(?=")'), b""),  # a text made the first of two parts
    (re.compile(rb"\}," + PART + rb"\]"), b""),
)
SHARED_BYTES = 4096  # what was added may begin as what stood there goes on: a client's own text may look like a block
MOST_PLACES = 12  # where blocks may stand in one request


def difference(sent: bytes, headers: RawHeaders, forwarded: bytes, passed: RawHeaders) -> str:
    """`SAME`, `ADDED`, or in words what was changed besides."""
    encodings, left = encodings_of(headers), encodings_of(passed)
    if forwarded == sent:
        return SAME if left == encodings else f"the encoding {encodings} became {left}"
    if left:
        return f"other bytes, and still named {left}"
    try:
        plain = decoded(sent, encodings)
    except Undecodable as failure:
        return f"a body that nobody can decode was changed: {failure}"
    if not without_blocks(forwarded, plain):
        return "the body differs by more than blocks"
    return ADDED if _is_sound(forwarded) and _is_sound(plain) else "what was changed is no JSON"


def encodings_of(headers: RawHeaders) -> list[bytes]:
    return [value for name, value in headers if name.lower() == b"content-encoding"]


class Undecodable(Exception):
    """A body is not in the encoding that its headers name."""


def decoded(body: bytes, encodings: list[bytes]) -> bytes:
    """A whole body, decoded by the strict functions of each library."""
    names = [name.strip().lower() for value in encodings for name in value.split(b",")]
    for name in reversed([name for name in names if name not in (b"", b"identity")]):
        try:
            if name in (b"gzip", b"x-gzip"):
                body = gzip.decompress(body)
            elif name == b"deflate":
                body = _inflated(body)
            elif name == b"br":
                body = brotli.decompress(body)
            elif name == b"zstd":
                body = zstd.decompress(body)
            else:
                raise Undecodable(name.decode())
        except (OSError, EOFError, zlib.error, brotli.error, zstd.ZstdError) as cause:
            raise Undecodable(str(cause)) from cause
    return body


def _inflated(body: bytes) -> bytes:
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -zlib.MAX_WBITS)


def without_blocks(forwarded: bytes, plain: bytes, places: int = MOST_PLACES) -> bool:
    """Whether one becomes the other by taking blocks out of it, in the forms in which they may stand."""
    same = _common(forwarded, plain)
    if same == len(forwarded) == len(plain):
        return True
    if not places:
        return False
    for form, before in FORMS:
        for match in form.finditer(forwarded, max(0, same - SHARED_BYTES)):
            if match.start() > same:
                break
            rest = plain[match.start() :]
            if rest.startswith(before) and without_blocks(forwarded[match.end() :], rest[len(before) :], places - 1):
                return True
    return False


def _common(one: bytes, other: bytes) -> int:
    """How many bytes in front of both are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_sound(body: bytes) -> bool:
    try:
        parsed: Any = json.loads(body, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict)
