"""
The ledger of what clients were told, and its audit: each answer that was received whole against what is on the disk.

The database is read as any other program would read it, so that nothing is believed because the proxy says so.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from tests.running import Answered, Proxy, rows

STORED = """
SELECT conversation.public, turn.key, turn.ending, content.text, occurrence.position >= turn.messages
FROM occurrence JOIN turn ON turn.id = occurrence.turn JOIN content ON content.id = occurrence.content
JOIN conversation ON conversation.id = occurrence.conversation
"""
DONE = b"data: [DONE]\n\n"


def is_whole(answered: Answered) -> bool:
    """Whether a client could know that it had all of a successful chat completion."""
    if answered.status != 200 or answered.broken:
        return False
    return not answered.headers["content-type"].startswith("text/event-stream") or answered.body.endswith(DONE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer that a client received whole."""

    talk: str  # the client's own name of its conversation
    conversation: str  # the proxy's id of it; "" where it was not known when the answer began
    turn: str
    asked: str
    said: str
    at: float  # monotonic clock


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found; each list names turns, or conversations of clients."""

    turns: int
    lost: list[str]
    duplicated: list[str]
    split: list[str]  # conversations of clients that the proxy took for several
    integrity: list[str]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.split or self.integrity)


@dataclass
class Ledger:
    """Every answer that any client received whole; threads may write at once."""

    entries: list[Entry] = field(default_factory=list)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def write(self, talk: str, asked: str, answered: Answered) -> None:
        """Enter an answer; `asked` and the answer's text must each be said once in all of the ledger."""
        entry = Entry(talk, answered.said("conversation"), answered.said("turn"), asked, answered.text, monotonic())
        with self._writing:
            self.entries.append(entry)

    def audit(self, data: Path, seconds: float = inf) -> Audit:
        """
        Compare with the database of a data folder; whoever writes to it meanwhile disturbs nothing.

        Args:
            seconds: what was entered longer ago is left out, as it need not be kept.
        """
        return self.compare(partial(rows, data), damage(data), seconds)

    def compare(
        self, read: Callable[[str], list[tuple[Any, ...]]], integrity: list[str], seconds: float = inf
    ) -> Audit:
        """
        Compare with what a database holds.

        Args:
            read: asks it.
            integrity: what else is wrong with it.
        """
        oldest = monotonic() - seconds
        with self._writing:
            entries = [entry for entry in self.entries if entry.at >= oldest]
        answers, said, stored = {}, Counter[tuple[str, str]](), dict[str, str]()
        for conversation, key, ending, text, is_answer in read(STORED):
            said[conversation, text] += 1
            if is_answer:
                answers[key] = (ending, text)
                stored[key] = conversation
        entries = [replace(entry, conversation=entry.conversation or stored.get(entry.turn, "")) for entry in entries]
        homes = defaultdict(set)
        for entry in entries:
            homes[entry.talk].add(entry.conversation)
        repeated = [key for key, count in Counter(entry.turn for entry in entries).items() if count > 1]
        return Audit(
            turns=len(entries),
            lost=[
                entry.turn
                for entry in entries
                if answers.get(entry.turn) != ("complete", entry.said) or not said[entry.conversation, entry.asked]
            ],
            duplicated=repeated
            + [e.turn for e in entries if max(said[e.conversation, e.asked], said[e.conversation, e.said]) > 1],
            split=[talk for talk, conversations in homes.items() if len(conversations) > 1],
            integrity=integrity,
        )


def damage(data: Path) -> list[str]:
    """What SQLite itself finds wrong with the file; empty: nothing, or a server has it."""
    if data in Proxy.databases:
        return []
    found = [str(row[0]) for row in rows(data, "PRAGMA integrity_check") if row[0] != "ok"]
    return found + [f"foreign key: {row}" for row in rows(data, "PRAGMA foreign_key_check")]


def is_written(data: Path, turn: str) -> bool:
    """Whether a turn has its answer in the journal."""
    return rows(data, f"SELECT ending FROM turn WHERE key = '{turn}'") == [("complete",)]
