"""
Which passages does a tenant have, and what do they mean? An in-memory shelf per tenant that follows the database.

Exact search in NumPy is fast enough (100,000 x 384 in 3 ms); what matters is to load a tenant once and then only what
is new, whoever wrote it. Memory ids and vector numbers only ever rise, so "new" is whatever comes behind the last seen.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from proxy.core.digest import ASKS
from proxy.core.ranking import Bools, Rows, Shelf, consequence
from proxy.ports import Row, Sql

DIMENSIONS = 384  # of all-MiniLM-L6-v2
FIRST_ROWS = 256  # capacity of a new shelf; it doubles
CACHED_PASSAGES = 1_000_000  # over all tenants, some 1.6 GB at the most; the tenant that asked longest ago goes first

MEMORIES = """
SELECT memory.id, memory.occurrence, memory.conversation, occurrence.full, memory.stop - memory.start,
    occurrence.created_at, memory.tags
FROM memory JOIN occurrence ON occurrence.id = memory.occurrence
WHERE memory.tenant = ? AND memory.id > ? ORDER BY memory.id
"""
VECTORS = """
SELECT vector.seq, vector.memory, vector.own FROM vector JOIN memory ON memory.id = vector.memory
WHERE vector.seq > ? AND vector.model = ? AND memory.tenant = ? ORDER BY vector.seq
"""
COLUMNS = {
    "ids": np.int64,
    "occurrences": np.int64,
    "conversations": np.int64,
    "fulls": np.int64,
    "lengths": np.float64,
    "centres": np.float64,
    "before": np.int64,
    "after": np.int64,
    "created_at": np.float64,
    "asks": np.bool_,
    "consequence": np.float64,
    "speakers": np.int64,
}


@dataclass(slots=True)
class _Growing:
    """The passages of one tenant so far."""

    rows: int = 0
    last_seq: int = 0
    last_row: dict[int, int] = field(default_factory=dict)  # by conversation
    ends: dict[int, float] = field(default_factory=dict)  # characters of each conversation so far
    names: dict[str, int] = field(default_factory=dict)
    columns: dict[str, np.ndarray] = field(
        default_factory=lambda: {name: np.zeros(FIRST_ROWS, kind) for name, kind in COLUMNS.items()}
    )
    vectors: np.ndarray = field(default_factory=lambda: np.zeros((FIRST_ROWS, DIMENSIONS), np.float32))

    @property
    def last_id(self) -> int:
        return int(self.columns["ids"][self.rows - 1]) if self.rows else 0


class Shelves:
    """All tenants' passages, loaded when asked for. Reads through `Sql` only; safe for concurrent callers."""

    def __init__(self, sql: Sql, model: str) -> None:
        self._sql = sql
        self._model = model
        self._tenants: OrderedDict[int, _Growing] = OrderedDict()
        self._loading: dict[int, asyncio.Lock] = {}

    def __repr__(self) -> str:
        return f"<Shelves [{len(self._tenants)} tenants, {sum(t.rows for t in self._tenants.values())} passages]>"

    async def shelf(self, tenant: int, conversations: Sequence[int] | None) -> Shelf:
        """
        The passages of some conversations of a tenant; None: of all.

        Raises:
            MemoryFault: they cannot be read.
        """
        async with self._loading.setdefault(tenant, asyncio.Lock()):
            grown = self._tenants.setdefault(tenant, _Growing())
            self._tenants.move_to_end(tenant)
            _add(grown, await self._sql.read(MEMORIES, (tenant, grown.last_id)))
            _fill(grown, await self._sql.read(VECTORS, (grown.last_seq, self._model, tenant)))
        while len(self._tenants) > 1 and sum(t.rows for t in self._tenants.values()) > CACHED_PASSAGES:
            gone, _ = self._tenants.popitem(last=False)
            self._loading.pop(gone, None)
        whole = Shelf(
            **{name: values[: grown.rows] for name, values in grown.columns.items()},
            names=grown.names,
            vectors=grown.vectors[: grown.rows],
        )
        if conversations is None:
            return whole
        return part(whole, np.isin(whole.conversations, np.array(conversations, np.int64)))


def part(shelf: Shelf, chosen: Bools) -> Shelf:
    """Only these rows, (n,). Whole conversations: neighbours stay neighbours."""
    rows = np.flatnonzero(chosen)
    new = np.full(len(shelf) + 1, -1, np.int64)  # the last entry serves -1
    new[rows] = np.arange(len(rows))
    columns = {name: getattr(shelf, name)[rows] for name in COLUMNS}
    columns |= {name: new[columns[name]] for name in ("before", "after")}
    return Shelf(**columns, names=shelf.names, vectors=shelf.vectors[rows])


def rows_of(shelf: Shelf, ids: Rows) -> Rows:
    """Rows of these memory ids (rising); those that are not on the shelf are left out."""
    at = np.searchsorted(shelf.ids, ids)
    at = at[at < len(shelf)] if len(at) and at[-1] >= len(shelf) else at
    found: Rows = at[shelf.ids[at] == ids[: len(at)]]
    return found


def _add(grown: _Growing, rows: Sequence[Row]) -> None:
    _reserve(grown, grown.rows + len(rows))
    columns = grown.columns
    for id, occurrence, conversation, full, length, created_at, tags in rows:
        at = grown.rows
        before = grown.last_row.get(conversation, -1)
        begun = grown.ends.get(conversation, 0.0)
        named = tags.split(" ") if tags else []
        speaker = next((tag[:-1] for tag in named if tag.endswith(":")), "")
        values = {
            "ids": id,
            "occurrences": occurrence,
            "conversations": conversation,
            "fulls": full,
            "lengths": length,
            "centres": begun + length / 2,
            "before": before,
            "after": -1,
            "created_at": created_at,
            "asks": ASKS in named,
            "consequence": consequence(any(t.startswith("call:") for t in named), any("/" in t for t in named)),
            "speakers": grown.names.setdefault(speaker, len(grown.names) + 1) if speaker else 0,
        }
        for name, value in values.items():
            columns[name][at] = value
        if before >= 0:
            columns["after"][before] = at
        grown.last_row[conversation] = at
        grown.ends[conversation] = begun + length
        grown.rows += 1


def _fill(grown: _Growing, rows: Sequence[Row]) -> None:
    if not rows:
        return
    ids = grown.columns["ids"][: grown.rows]
    for seq, memory, own in rows:
        at = int(np.searchsorted(ids, memory))
        if at < grown.rows and ids[at] == memory:
            grown.vectors[at] = np.frombuffer(own, np.float16)
        grown.last_seq = seq


def _reserve(grown: _Growing, rows: int) -> None:
    """Make room; what was handed out before keeps the old arrays."""
    capacity = len(grown.vectors)
    if rows <= capacity:
        return
    while capacity < rows:
        capacity *= 2
    grown.columns = {name: np.resize(values, capacity) for name, values in grown.columns.items()}
    grown.vectors = np.concatenate([grown.vectors, np.zeros((capacity - len(grown.vectors), DIMENSIONS), np.float32)])
