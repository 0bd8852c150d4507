"""
Tombstones of erased messages, and the resends that they recognise.

Clients send their whole history with every request, so what was erased comes by again with the next one. A tombstone
keeps the keyed fingerprints of an erased message and nothing of its text. A message of a request is a resend where

    it equals an erased one, and an answer stands behind it or it is an answer itself: it is history;
    it equals one, or begins like one, and follows the same message as that did (a retry of the last request);
    it begins like one next to a resend (clients glue reminders to messages and take them off again);
    it is an answer directly behind a resend: it was still on its way when its question was erased.

Everything else is said anew and is kept: the same words in a new conversation too. What was only retired is recognised
in the same way, and stays retired.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from palimpsest.domain import Turn, frozen


@frozen
class Tombstone:
    """An erased message: its fingerprints, the `full` of the one before it (0: none), and where and when it stood."""

    full: int
    opening: int
    after: int
    conversation: int  # `scope_print` of its conversation
    at: float  # of the erasure, Unix seconds
    retirement: int = 0  # 0: erased; else only retired, by this one


@frozen
class SentMessage:
    """A message of a request, in order."""

    full: int
    opening: int
    is_instruction: bool
    is_assistant: bool
    is_new: bool  # not known from an earlier request of its conversation
    is_erased: bool = False  # known, and erased


def resends(
    sent: Sequence[SentMessage], tombstones: Sequence[Tombstone], conversation: int, created_at: float
) -> frozenset[int]:
    """
    Indexes of the new messages that were erased before.

    Args:
        tombstones: at least those that share a `full` or an `opening` with a new message.
        conversation: `scope_print` of the request's.
        created_at: when the request came, Unix seconds.
    """
    by_full: Mapping[int, list[Tombstone]] = defaultdict(list)
    by_opening: Mapping[int, list[Tombstone]] = defaultdict(list)
    for stone in tombstones:
        by_full[stone.full].append(stone)
        by_opening[stone.opening].append(stone)
    history = [at for at, message in enumerate(sent) if not message.is_instruction]
    last_answer = max((at for at in history if sent[at].is_assistant), default=-1)
    found: set[int] = set()
    in_place = {at for at in history if sent[at].is_erased}  # whose neighbours were its neighbours before

    def follows(stone: Tombstone, before: int) -> bool:
        return stone.after == before and (before != 0 or stone.conversation == conversation)

    for before_at, at in pairwise((-1, *history)):
        message, before = sent[at], sent[before_at].full if before_at >= 0 else 0
        if not message.is_new:
            continue
        equals = by_full.get(message.full, ())
        alike = (*equals, *by_opening.get(message.opening, ()))
        is_late = any(created_at <= stone.at for stone in equals)
        if (equals and (at <= last_answer or is_late)) or any(follows(stone, before) for stone in alike):
            found.add(at)
            if any(stone.after == before for stone in alike):
                in_place.add(at)
    for before_at, at in pairwise(history):
        if at not in found and sent[at].is_new and before_at in in_place:
            is_alike = at <= last_answer and sent[at].opening in by_opening
            if is_alike or sent[at].is_assistant:
                found.add(at)
                in_place.add(at)
    for next_at, at in pairwise(reversed(history)):
        if at not in found and sent[at].is_new and next_at in found and sent[at].opening in by_opening:
            found.add(at)
    for at, message in enumerate(sent):
        if message.is_instruction and message.is_new:
            stones = by_full.get(message.full, ())
            if stones and (found or in_place or any(stone.conversation == conversation for stone in stones)):
                found.add(at)
    return frozenset(found)


def scope_print(key: bytes, kind: str, *names: str) -> int:
    """
    The keyed hash that stands for a conversation, user, project or tenant whose past was erased; 63 bits.

    Args:
        key: of the tenant.
        kind: `tenant`, `user`, `scope`, `user+scope`, `conversation`.
    """
    text = "\0".join((kind, *names)).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=key, person=b"erased").digest(), "big") >> 1


def scope_prints(turn: Turn, key: bytes) -> tuple[int, ...]:
    """All that a turn belongs to, its own conversation first."""
    named = [("conversation", turn.conversation), ("tenant", "")]
    if turn.parent_conversation:
        named.append(("conversation", turn.parent_conversation))
    prints = [scope_print(key, kind, name) for kind, name in named]
    if turn.user:
        prints.append(scope_print(key, "user", turn.user))
    if turn.scope:
        prints.append(scope_print(key, "scope", turn.scope))
    if turn.user and turn.scope:
        prints.append(scope_print(key, "user+scope", turn.user, turn.scope))
    return tuple(prints)
