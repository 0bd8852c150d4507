"""Messages in a real database, for tests of the indexes: written by the journal, vectors made of words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from palimpsest.core.archive.chunking import query_terms
from palimpsest.domain import HeadFlag, Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Vectors
from palimpsest.store.engine import Ask, Row
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.store.search.derived import Derived

from tests.talking import NOW, assistant, record, user

T = TypeVar("T")

DIMENSIONS = 384
LEASE_SECONDS = 30.0


def meaning(text: str) -> Vectors:
    """A unit vector by words: texts that share words lean towards each other, others hardly."""
    vector = np.zeros(DIMENSIONS, np.float32)
    for term in query_terms(text):
        vector[int.from_bytes(hashlib.blake2b(term.encode(), digest_size=2).digest(), "big") % DIMENSIONS] += 1
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


class WordEmbedder:
    """An embedder without a model."""

    name = "words"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self.ready = True
        self.fault = ""
        self.asked: list[str] = []

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        if self.fault:
            raise MemoryFault(self.fault)
        self.asked += texts
        return np.array([meaning(text) for text in texts])

    async def embed_aside(self, texts: Sequence[str]) -> Vectors:
        return np.array([meaning(text) for text in texts])

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.array([meaning(text) for text in texts])


class Past:
    """What was said so far, and the database that holds it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.journal = Journal(database)
        self._derived = Derived(database, lambda: NOW)

    async def say(self, *texts: str, tenant: str = "acme", conversation: str = "c-1", **more: Any) -> tuple[int, ...]:
        """One request: texts of a user and an assistant in turn. Returns their occurrences."""
        messages: list[Json] = [(user, assistant)[at % 2](text) for at, text in enumerate(texts)]
        before = (await self.database.read("SELECT coalesce(max(id), 0) FROM occurrence"))[0][0]
        await self.journal.write([record(messages, tenant=tenant, conversation=conversation, **more)])
        rows = await self.database.read("SELECT id FROM occurrence WHERE id > ? ORDER BY id", (before,))
        return tuple(row[0] for row in rows)

    async def index(self, model: str = WordEmbedder.name) -> None:
        """Give everything a vector that has none."""
        while waiting := await self._derived.claim(100, "w", LEASE_SECONDS, model):
            await self._derived.save_vectors(model, {w.memory: meaning(w.text) for w in waiting})

    async def mark_users(self) -> None:
        """Mark all that the user said as a person's words."""
        await self.database.write([("UPDATE occurrence SET flags = ? WHERE role = 'user'", [(HeadFlag.USER,)])])

    async def forget(self, memories: Sequence[int]) -> None:
        """Remove memories as deletion does."""
        rows = [(memory,) for memory in memories]
        await self.database.write(
            [
                ("INSERT INTO forgotten(memory) VALUES (?)", rows),
                ("DELETE FROM memory_text WHERE rowid = ?", rows),
                ("DELETE FROM unindexed WHERE memory = ?", rows),
                ("DELETE FROM vector WHERE memory = ?", rows),
                ("DELETE FROM memory WHERE id = ?", rows),
            ]
        )


class Watched:
    """A database that notes what it was asked, and can be told to fail."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked: list[str] = []
        self.fault = ""
        self.rows_read = 0

    async def read(self, sql: str, args: Sequence[Any] = (), tenant: str = "") -> list[Row]:
        return await self.ask(lambda ask: ask(sql, args), tenant)

    async def ask(self, work: Callable[[Ask], T], tenant: str = "") -> T:
        def noted(ask: Ask) -> T:
            def read(sql: str, args: Sequence[Any] = ()) -> list[Row]:
                self.asked.append(sql)
                if self.fault and self.fault in sql:
                    raise MemoryFault("reading: told to fail")
                rows = ask(sql, args)
                self.rows_read += len(rows)
                return rows

            return work(read)

        return await self._database.ask(noted, tenant)

    async def write(self, statements: Any) -> None:
        raise AssertionError("indexes only read")
