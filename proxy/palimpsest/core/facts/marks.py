"""
Keyed hashes of facts: the id by which one is named outside, and the marks that keep a forgotten one from coming back.

A fact is made of its message again whenever the extractor changes, so forgetting leaves a mark: of the message by its
fingerprint, and of what was stated. It holds in its conversation and wherever the same user sends the message again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from palimpsest.domain.frozen import frozen

ID_BYTES = 8
PREFIX = "f-"  # of an id: tells it from a conversation's and a turn's


@frozen
class Statement:
    """What a fact states, and in which message: `full` is the fingerprint of that."""

    full: int
    subject: str
    slot: str
    value: str
    is_single: bool


def fact_id(key: bytes, occurrence: int, subject: str, slot: str, value: str) -> str:
    """The id of a fact that a message states, by the tenant's key; the same whenever it is extracted from it."""
    return added_id(_hash(key, b"fact id", str(occurrence), subject, slot, _normalised(value)))


def added_id(number: int) -> str:
    """The id of a fact that a tool was told, of a number that nobody guesses; 64 bits."""
    return f"{PREFIX}{number:016x}"


def place_print(key: bytes, subject: str, slot: str, value: str, is_single: bool) -> int:
    """The hash of the place that a fact takes from others: its slot, or with many values its own value."""
    same = value.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")  # as SQLite's lower: of ASCII
    return _hash(key, b"fact place", subject, slot, *(() if is_single else (same,))) >> 1


def marks(key: bytes, conversation: str, user: str, scope: str, statement: Statement) -> Sequence[int]:
    """The marks of a statement, by whose it is (public id of the conversation) and what it states: one forbids it."""
    whose = [("conversation", conversation), ("user", user, scope)]
    stated = [("slot", statement.subject, statement.slot), ("value", _normalised(statement.value))]
    full = str(statement.full)
    return [_hash(key, b"fact mark", *names, full, *what) >> 1 for names in whose for what in stated]


def marks_left(
    key: bytes, conversation: str, user: str, scope: str, statement: Statement, is_shared: bool
) -> Sequence[int]:
    """
    The marks that forgetting leaves: of a slot with many values, only the one that was forgotten is meant.

    Args:
        is_shared: those who are not named share one memory.
    """
    of_slot, of_value, of_users_slot, of_users_value = marks(key, conversation, user, scope, statement)
    left = [of_value, of_users_value] if user or is_shared else [of_value]
    if statement.is_single:
        left += [of_slot, of_users_slot] if user or is_shared else [of_slot]
    return left


def added_mark(key: bytes, id: str) -> int:
    """The mark that an added fact leaves when it is forgotten or erased: an import does not bring it back."""
    return _hash(key, b"fact mark", "told", id) >> 1


def _normalised(value: str) -> str:
    """A value in the form that equal ones share: without case and extra white space."""
    return " ".join(value.casefold().split())


def _hash(key: bytes, person: bytes, *parts: str) -> int:
    text = "\0".join(parts).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=ID_BYTES, key=key, person=person).digest(), "big")
