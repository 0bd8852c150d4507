"""Requests and answers in the form that the journal takes, for tests that need no proxy around it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import orjson
from palimpsest.core.archive.chunking import split_into_passages
from palimpsest.domain import (
    Answer,
    AnswerRecord,
    Clues,
    Ending,
    Entry,
    Event,
    Fingerprint,
    Head,
    Json,
    KnownHistory,
    LinkKind,
    NewMessage,
    ParentListing,
    Record,
    Role,
    Shape,
    Turn,
)
from palimpsest.store.journal import Journal
from palimpsest.wire.message import read_message
from palimpsest.wire.storage_codec import to_stored

NOW = 1_700_000_000.0
_serial = count(1)


def print_of(tenant: str, raw: Json) -> Fingerprint:
    """A fingerprint by content, other in every tenant."""
    digest = hashlib.blake2b(f"{tenant}|{orjson.dumps(raw).decode()}".encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "big") >> 1
    return Fingerprint(number, number ^ 1)


def entry(tenant: str, raw: Json, position: int, *, role: Role = Role.MAIN, flags: int = 0) -> Entry:
    message = read_message(raw)
    text, rest = to_stored(message, str)
    findable = role is not Role.SIDE and not message.is_instruction
    return Entry(
        new=NewMessage(message, print_of(tenant, raw), position, flags),
        digest=hashlib.blake2b(orjson.dumps(raw), digest_size=16).digest(),
        text=text,
        rest=rest,
        passages=split_into_passages(text, message.role) if findable else (),
    )


def record(
    messages: Sequence[Json],
    head: Head | None = None,
    *,
    tenant: str = "acme",
    conversation: str = "c-1",
    role: Role = Role.MAIN,
    **more: Any,
) -> Record:
    """
    A request that sends these messages. What it shares with the head is kept, each once, in the head's order; where
    that is all of it, in a row, it is told in one word.

    Its links: every message of a user and of an assistant, as `MESSAGE`.
    """
    known: dict[int, list[int]] = {}
    for full, occurrence in zip(head.fulls, head.occurrences, strict=True) if head else ():
        known.setdefault(full, []).append(occurrence)
    kept, new = [], []
    for position, raw in enumerate(messages):
        waiting = known.get(print_of(tenant, raw).full) if raw["role"] != "system" else None
        if waiting:
            kept.append((position, waiting.pop(0)))
        else:
            new.append(entry(tenant, raw, position, role=role))
    whole = None
    if head and kept == [*enumerate(head.occurrences, kept[0][0] if kept else 0)] and "kept" not in more:
        behind = all(e.new.message.is_instruction or e.new.position > kept[-1][0] for e in new)
        whole = ParentListing(kept[0][0], head.occurrences) if kept and behind else None
    links = [(LinkKind.MESSAGE, e.new.fingerprint.full) for e in new if e.new.message.role in ("user", "assistant")]
    turn = Turn(
        id=f"turn-{next(_serial)}",
        tenant=tenant,
        conversation=conversation,
        role=role,
        event=Event.APPEND if head else Event.START,
        kept=() if whole else tuple(kept),
        whole=whole,
        new=tuple(e.new for e in new),
        parent_turn=head.turn if head else None,
        parent_conversation="",
        shape=Shape(model="m", tool_names=("read", "write")),
        links=tuple(links),
        model="m",
        user="",
        scope="",
        created_at=NOW,
    )
    return Record(replace(turn, **more), tuple(new))


def heard(asked: Record, text: str | None, ending: Ending = Ending.COMPLETE) -> AnswerRecord:
    """The answer to a request; links as its own `ANSWER`."""
    turn = asked.turn
    if text is None:
        return AnswerRecord(Answer(turn.id, ending, created_at=NOW), None, turn.tenant)
    said = entry(turn.tenant, {"role": "assistant", "content": text}, -1, role=turn.role)
    links = ((LinkKind.ANSWER, said.new.fingerprint.full),)
    answer = Answer(turn.id, ending, said.new.message, said.new.fingerprint, 2, links, 17, NOW)
    return AnswerRecord(answer, said, turn.tenant)


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def system(text: str) -> Json:
    return {"role": "system", "content": text}


async def look(journal: Journal, messages: Iterable[Json], tenant: str = "acme", user: str = "") -> KnownHistory:
    """What the journal knows of these messages, of this user's and nobody's."""
    prints = tuple(print_of(tenant, raw).full for raw in messages)
    return await journal.history_of(Clues(tenant, {LinkKind.MESSAGE: prints, LinkKind.ANSWER: prints}, user))


async def newest(journal: Journal, messages: Iterable[Json], tenant: str = "acme", user: str = "") -> Head:
    """The newest head that these messages lead to."""
    return (await look(journal, messages, tenant, user)).heads[0]


@dataclass
class Talk:
    """A client that sends its whole history each time."""

    journal: Journal
    tenant: str = "acme"
    conversation: str = "c-1"
    history: tuple[Json, ...] = ()
    head: Head | None = None

    async def say(self, text: str, answer: str | None = None, **more: Any) -> Record:
        """One exchange, begun and finished."""
        self.history = (*self.history, user(text))
        asked = record(self.history, self.head, tenant=self.tenant, conversation=self.conversation, **more)
        await self.journal.write([asked])
        answer = answer or f"answer to {text}"
        await self.journal.write(answers=[heard(asked, answer)])
        self.history = (*self.history, assistant(answer))
        self.head = await newest(self.journal, self.history[-2:], self.tenant, more.get("user", ""))
        return asked
