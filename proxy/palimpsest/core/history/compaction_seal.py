"""
The sealed reference in a compaction item made by the proxy: which compaction, for whom, and until when.

It names the turn in which the history was compacted, and tells nothing else. A keyed hash binds it to its tenant: what
somebody made up, changed or took from another tenant is not told apart from one another, as nobody need know which.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hmac import compare_digest

from palimpsest.domain import TURN_PREFIX, frozen
from palimpsest.domain.errors import CompactionRefused
from palimpsest.wire.own_compaction import PREFIX

VERSION = 1
TAG_BYTES = 16  # of a hash that nobody guesses
_FIELDS = struct.Struct("!BII8s")  # version, made and good until as Unix seconds, the turn's random number
_PURPOSE = b"compaction"
_LAST_SECOND = 2**32 - 1


@frozen
class CompactionSeal:
    """What a sealed reference says, and when it was made, in Unix seconds."""

    turn: str
    made_at: int


def seal(turn: str, now: float, good_seconds: float, key: bytes) -> str:
    """
    A sealed reference.

    Args:
        turn: its id.
        now: Unix seconds.
        key: of the tenant (`core.caller.identity.tenant_key`).
    """
    number = bytes.fromhex(turn.removeprefix(TURN_PREFIX))
    fields = _FIELDS.pack(VERSION, int(now), min(int(now + good_seconds), _LAST_SECOND), number)
    return PREFIX + urlsafe_b64encode(fields + _tag(fields, key)).decode().rstrip("=")


def unseal(text: str, now: float, key: bytes) -> CompactionSeal:
    """
    Read a sealed reference; arguments as of `seal`.

    Raises `CompactionRefused`: it is not one of this tenant's, of another version, or out of date.
    """
    coded = text.removeprefix(PREFIX)
    try:
        sealed = urlsafe_b64decode(coded + "=" * (-len(coded) % 4))
    except ValueError:
        sealed = b""
    fields, tag = sealed[: _FIELDS.size], sealed[_FIELDS.size :]
    if len(fields) < _FIELDS.size or not compare_digest(tag, _tag(fields, key)) or fields[0] != VERSION:
        raise CompactionRefused(
            "a compaction item in this request was not made by this proxy for this credential, or was changed: send it "
            "with the credential that it was made for, or begin a new session",
            "compaction_item_invalid",
        )
    _, made_at, good_until, number = _FIELDS.unpack(fields)
    if now > good_until:
        raise CompactionRefused(
            "a compaction item in this request is out of date (memory.compaction_days of the proxy): begin a new "
            "session",
            "compaction_item_expired",
        )
    return CompactionSeal(TURN_PREFIX + number.hex(), made_at)


def _tag(fields: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(fields, key=key, person=_PURPOSE, digest_size=TAG_BYTES).digest()
