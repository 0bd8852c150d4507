"""
Are two messages the same one? Keyed hashes of what clients do not change when they send a message again.

Role, squeezed text, tool names and arguments, media. Left out: ids, `cache_control`, string or parts, clock times,
reminders behind the result of a tool, and developer against system.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import orjson

from proxy.domain import Fingerprint, Message, ToolCall

OPENING_CHARS = 32  # enough to tell messages apart by their start, short enough to stay clear of what is glued behind
LEFT_CHARS = 60  # of a result, at least, in front of a reminder: a document may be nothing but a tag and what it holds
REMEMBERED = 8192  # fingerprints: clients send their whole history each time, and looking one up costs a tenth
REMEMBERED_CHARS = 4096  # of a text; so they take 5 MB as people write, and 40 MB at worst
_CLOSING = re.compile(r"</([\w-]{1,40})>\s*\Z")
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
    return "\n".join([_role(message.role), _squeezed(_told(message)), *said, *opaque])


def fingerprint(message: Message, key: bytes) -> Fingerprint:
    """
    Hash a message.

    Args:
        key: at most 64 bytes; without it nothing can be guessed from the store.

    `opening` covers the role and the first characters of the text; of a message that only calls tools, the calls.
    """
    if message.calls or message.media or message.opaque or message.refers or len(message.text) > REMEMBERED_CHARS:
        return _fingerprint(normalise(message), bool(message.calls), key)
    return _of_text(message.role, _told(message), key)


@lru_cache(REMEMBERED)
def _of_text(role: str, text: str, key: bytes) -> Fingerprint:
    return _fingerprint(f"{_role(role)}\n{_squeezed(text)}", False, key)


def _fingerprint(normal: str, calls: bool, key: bytes) -> Fingerprint:
    role, text, rest = (*normal.split("\n", 2), "")[:3]
    start = text[:OPENING_CHARS] or (rest if calls else "")
    return Fingerprint(full=_hash(normal, key), opening=_hash(f"{role}\n{start}", key))


def _told(message: Message) -> str:
    """What came out of a tool, without the reminders that clients put behind it, between tags, and take off again."""
    text = message.text
    if message.role != "tool":
        return text
    while (closing := _CLOSING.search(text)) is not None:
        start = text.rfind(f"\n\n<{closing[1]}>", 0, closing.start())
        if start < LEFT_CHARS:
            break
        text = text[:start]
    return text


def _role(role: str) -> str:
    return "system" if role == "developer" else " ".join(role.split())


def _squeezed(text: str) -> str:
    squeezed = " ".join(text.split())
    return _CLOCK.sub("", squeezed) if _CLOCK_HINT.search(squeezed) else squeezed


def _call(call: ToolCall) -> str:
    try:
        arguments = orjson.dumps(orjson.loads(call.arguments or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        arguments = _squeezed(call.arguments)
    return f"{' '.join(call.name.split())}({arguments})"


def _hash(text: str, key: bytes) -> int:
    """63 bits, so that SQLite's signed integers hold it."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "big") >> 1
