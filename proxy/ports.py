"""
What the services need from the adapters: protocols, no code.

"Nothing found" is an empty value; "could not look" raises `MemoryFault`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from proxy.domain import (
    Answer,
    Clues,
    Message,
    Query,
    Recalled,
    Seen,
    StoredBlock,
    Turn,
)

Row = tuple[Any, ...]
Vectors = npt.NDArray[np.float32]


class Sql(Protocol):
    """One database, shared by the store and the indexes; neither imports the other."""

    async def read(self, sql: str, args: Sequence[Any] = ()) -> list[Row]:
        """Rows of one SELECT on a reader connection, never behind the writer."""

    async def write(self, statements: Iterable[tuple[str, Sequence[Sequence[Any]]]]) -> None:
        """Run `(sql, rows of arguments)` in order, in one `BEGIN IMMEDIATE` transaction; all or nothing."""


class Journal(Protocol):
    """The lossless record of what passed, and what lineage needs of it."""

    async def seen(self, clues: Clues) -> Seen:
        """Which stored conversations left these clues, and how they stood last."""

    async def blocks(self, tenant: str, conversation: str) -> tuple[StoredBlock, ...]:
        """Blocks said in this conversation that are still replayed, in journal order."""

    async def messages(self, tenant: str, occurrences: Sequence[int]) -> Mapping[int, Message]:
        """The stored messages of these occurrences; those that are not there are left out."""

    async def begin(self, turns: Sequence[Turn]) -> None:
        """Commit requests: journal, head, links, blocks, memories and full-text rows, in one transaction."""

    async def finish(self, answers: Sequence[Answer]) -> None:
        """Commit what was heard of the answers, in one transaction. A refused turn loses its content."""

    async def turn(self, tenant: str | None, conversation: str, number: int | None) -> Mapping[str, Any] | None:
        """The record behind `explain`: the n-th turn (1-based; None = newest) of a conversation."""

    async def stats(self) -> Mapping[str, Any]:
        """Counts and sizes: tenants, conversations, turns, messages, memories, pending, bytes."""


class Embedder(Protocol):
    """Texts to unit vectors. `ready` is False while the model is missing; then `embed` raises `MemoryFault`."""

    @property
    def ready(self) -> bool: ...

    @property
    def name(self) -> str:
        """Stored with each vector; vectors of another name are rebuilt."""

    async def embed_query(self, text: str) -> Vectors:
        """One vector, shape (384,). On the hot path: milliseconds."""

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (n, 384), in the background, at low priority."""


class Remembering(Protocol):
    """Ask the indexes."""

    async def recall(self, query: Query, limit: int) -> Recalled:
        """Best candidates first, visible and excluded ones left out."""


class Counter(Protocol):
    """Text to tokens, for one model."""

    def __call__(self, text: str) -> int: ...


Clock = Callable[[], float]
