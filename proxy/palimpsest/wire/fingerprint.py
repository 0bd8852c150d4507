"""
Fingerprints: keyed hashes of the parts of a message that clients do not change when they send it again.

Role, squeezed text, tool names and arguments, media. Left out: ids, `cache_control`, string or parts, clock times,
reminders behind the result of a tool, and developer against system.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import orjson

from palimpsest.domain import Fingerprint, Message, ToolCall
from palimpsest.domain.word_cache import word_cache
from palimpsest.wire.pieces import pieces, squeezed

OPENING_CHARS = 32  # enough to tell messages apart by their start, short enough to stay clear of what is glued behind
LEFT_CHARS = 60  # of a result, at least, in front of a reminder: a document may be nothing but a tag and what it holds
REMEMBERED = 8192  # fingerprints: clients send their whole history each time, and looking one up costs a tenth
REMEMBERED_CHARS = 4096  # of a text; so they take 5 MB as people write, and 40 MB at worst
REMEMBERED_LARGE = 16_384  # larger ones are remembered by a hash, in 5 MB: to hash a text costs a tenth of reading it
TAG_CHARS = 40  # of the name of a tag that clients put reminders between
_TAG_NAME = re.compile(r"[\w-]{1,40}")
_CLOCK_HINT = re.compile(r":[0-5]\d")  # a literal first character: ten times faster than the whole pattern
_CLOCK = re.compile(  # the first digit stands before what must precede it: a set of characters is searched for fast
    r"\d(?:(?<=\dT\d)|(?<![\w:.]\d))\d?:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"
    r"(?: ?[AaPp]\.?[Mm]\b\.?|Z\b|[+-]\d\d:?\d\d|\b)(?!:)"
)


def normalise(message: Message) -> str:
    """
    One line for role, text, each call and each medium; no line holds a line break of its own.

    What only the provider can read, or has kept, counts where nothing else is said: clients send it beside an answer,
    or without it.
    """
    said = [*map(_call, message.calls), *message.media]
    opaque = () if message.text or said else (*message.opaque, *message.refers)
    return "\n".join([_role(message.role), _squeezed(_tool_output(message)), *said, *opaque])


def fingerprint_of(message: Message, key: bytes) -> Fingerprint:
    """
    Hash a message.

    Args:
        key: at most 64 bytes; without it nothing can be guessed from the store.

    `opening` covers the role and the first characters of the text; of a message that only calls tools, the calls.
    """
    parts = [part for call in message.calls for part in (call.name, call.arguments)]
    parts += (*message.media, *message.opaque, *message.refers)
    if len(message.text) + sum(map(len, parts)) > REMEMBERED_CHARS:
        return _fingerprint_large(_Large(message), key)
    if parts or message.calls:
        return _fingerprint_normalised(normalise(message), bool(message.calls), key)
    return _fingerprint_text(message.role, _tool_output(message), key)


@word_cache(REMEMBERED)
def _fingerprint_text(role: str, text: str, key: bytes) -> Fingerprint:
    return _fingerprint_normalised(f"{_role(role)}\n{_squeezed(text)}", False, key)


class _Large:
    """A large message, known by a hash of what it says. Once it is fingerprinted only the hash is kept."""

    __slots__ = ("_hash", "message")

    def __init__(self, message: Message) -> None:
        self.message: Message | None = message
        calls = (part for call in message.calls for part in (call.name, call.arguments))
        counts = map(len, (message.calls, message.media, message.opaque, message.refers))
        parts = (message.role, message.text, *calls, *message.media, *message.opaque, *message.refers)
        self._hash = _digest([*map(str, counts), *(f"{len(part)}" for part in parts), *parts], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Large) and self._hash == other._hash

    def __hash__(self) -> int:
        return hash(self._hash)


@word_cache(REMEMBERED_LARGE)
def _fingerprint_large(large: _Large, key: bytes) -> Fingerprint:
    message, large.message = large.message, None
    assert message is not None
    return _fingerprint_normalised(normalise(message), bool(message.calls), key)


def _fingerprint_normalised(normal: str, calls: bool, key: bytes) -> Fingerprint:
    role, text, rest = (*normal.split("\n", 2), "")[:3]
    start = text[:OPENING_CHARS] or (rest if calls else "")
    return Fingerprint(full=_hash(normal, key), opening=_hash(f"{role}\n{start}", key))


def _tool_output(message: Message) -> str:
    """What came out of a tool, without the reminders that clients put behind it, between tags, and take off again."""
    text = message.text
    if message.role != "tool":
        return text
    stop = len(text)
    while True:
        end = _without_space(text, stop)
        closing = text.rfind("</", max(0, end - TAG_CHARS - len("</>")), end)
        name = text[closing + 2 : end - 1]
        if closing < 0 or text[end - 1] != ">" or not _TAG_NAME.fullmatch(name):
            break
        start = text.rfind(f"\n\n<{name}>", 0, closing)
        if start < LEFT_CHARS:
            break
        stop = start
    return text[:stop]


def _without_space(text: str, stop: int) -> int:
    """The end of the text before `stop`, white space left out."""
    while stop and text[stop - 1].isspace():
        stop -= 1
    return stop


def _role(role: str) -> str:
    return "system" if role == "developer" else " ".join(role.split())


def _squeezed(text: str) -> str:
    text = squeezed(text)
    parts = (text[start:stop] for start, stop in pieces(text))
    return "".join(_CLOCK.sub("", part) if _CLOCK_HINT.search(part) else part for part in parts)


def _call(call: ToolCall) -> str:
    """A tool call in one normal form, however its JSON is spaced or ordered."""
    try:
        arguments = orjson.dumps(orjson.loads(call.arguments or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        arguments = _squeezed(call.arguments)
    return f"{' '.join(call.name.split())}({arguments})"


def _hash(text: str, key: bytes) -> int:
    """63 bits, so that SQLite's signed integers hold it."""
    return int.from_bytes(_digest([text], 8, key), "big") >> 1


def _digest(parts: Iterable[str], size: int, key: bytes = b"") -> bytes:
    """One hash of the texts, one behind the other."""
    digest = hashlib.blake2b(digest_size=size, key=key)
    for part in parts:
        for start, stop in pieces(part):
            digest.update(part[start:stop].encode(errors="surrogatepass"))
    return digest.digest()
