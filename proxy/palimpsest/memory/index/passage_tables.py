"""
Passage tables: what is known of the passages of a scope, and their vectors, in memory and following the database.

Exact search: a scope's vectors are one matrix, compared with the question all at once (`core/recall/similarity.py`).
Each scope that was asked about is one table. It is filled in slices and keeps what it has when a deadline cuts it
short, so that a large scope is there after a few requests; later it only reads on, whichever worker wrote.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from palimpsest.core.archive.chunking import ASKS, WARNS, WISHES, certainty_of
from palimpsest.core.recall.ranking import PassageTable, Rows, consequence
from palimpsest.core.recall.similarity import LARGE_PASSAGES, Floats, Signs, signs_of
from palimpsest.domain import HeadFlag
from palimpsest.store.engine import Ask, Row, drop_ahead
from palimpsest.store.search import passages as store
from palimpsest.store.search.scope import Scope

SLICE_PASSAGES = 4096  # read at a time, about 20 ms
MAX_PASSAGES = 400_000  # in memory, some 700 MB: of all scopes those asked about last, of one scope its newest
SPARE_SHARE = 1 / 8  # of a full scope's room: its oldest passages go so many at a time, as all others are moved
USUAL_DIMENSIONS = 384  # for which that holds; of longer vectors so many fewer passages have room
TABLE_PASSAGES = 20  # what a table costs by itself, in passages: 30 kB, however few it holds
WAIT_SECONDS = 0.02  # for another question that reads on in the same scope: as a rule that takes 1 ms
LEAST_BEGUN = 0.6  # of a user's messages begin with a name where that tells who speaks; "Update: ..." begins a few
FIRST_PASSAGES = 256  # room of a new table; it doubles

PASSAGE = np.dtype(  # the columns of a `PassageTable`, in the order of `_GrowingTable._passage`, and one more
    [
        ("ids", np.int64),
        ("occurrences", np.int64),
        ("conversations", np.int64),
        ("fulls", np.int64),
        ("lengths", np.float32),
        ("centres", np.float64),
        ("before", np.int64),
        ("after", np.int64),
        ("created_at", np.float64),
        ("asks", np.bool_),
        ("consequence", np.float32),
        ("speakers", np.int64),
        ("users", np.bool_),
        ("tells", np.float32),
        ("wishes", np.bool_),
        ("warns", np.bool_),
        ("embedded", np.bool_),
        ("has_vector", np.bool_),
    ]
)


class PassageTables:
    """
    Passage tables by scope, those asked about most recently in memory. Threads may ask at once.

    Args:
        model: name of the model whose vectors count; passages without one have a vector of zeros.
        dimensions: of its vectors, a multiple of 64.
        room_passages: kept for all scopes; each table takes that of some passages, however few it holds.
    """

    def __init__(self, model: str, dimensions: int, room_passages: int = MAX_PASSAGES) -> None:
        self._model = model
        self._dimensions = dimensions
        self._room_passages = room_passages * USUAL_DIMENSIONS // max(dimensions, USUAL_DIMENSIONS)
        self._choosing = threading.Lock()
        self._growing: OrderedDict[Scope, _GrowingTable] = OrderedDict()

    def __repr__(self) -> str:
        return f"<PassageTables [{len(self._growing)} scopes, {sum(map(len, self._growing.values()))} passages]>"

    def holds(self, scope: Scope) -> bool:
        """Whether a scope was asked about lately, so that its passages are in memory."""
        with self._choosing:
            return scope in self._growing

    def empty(self) -> PassageTables:
        """New, empty tables for the same model."""
        return PassageTables(self._model, self._dimensions)

    def forget(self) -> None:
        """Drop the words that are kept: terms of questions, and tables that know speakers by their names."""
        with self._choosing:
            for scope, growing in [*self._growing.items()]:
                growing.forget_terms()
                if growing.has_names:
                    del self._growing[scope]

    def table(self, ask: Ask, scope: Scope) -> PassageTable:
        """
        The table of all passages of a scope that are committed now.

        While another thread reads the same scope for the first time, which takes long, what is there already.
        """
        with self._choosing:
            growing = self._growing.setdefault(scope, _GrowingTable(self._dimensions))
            self._growing.move_to_end(scope)
        if growing.reading.acquire(timeout=WAIT_SECONDS):
            try:
                self._follow(ask, growing, scope)
            finally:
                growing.reading.release()
        with self._choosing:
            while len(self._growing) > 1 and sum(map(_cost, self._growing.values())) > self._room_passages:
                self._growing.popitem(last=False)
        return growing.latest

    def provide(self, scope: Scope, ids: Sequence[int], vectors: Floats) -> None:
        """
        Put vectors into the table of a scope, for passages that have none, until the stored ones are read.

        Args:
            ids: in any order; what is not there, or has a vector, is left out.
            vectors: theirs, (n, dimensions).
        """
        with self._choosing:
            growing = self._growing.get(scope)
        if growing is not None and growing.reading.acquire(timeout=WAIT_SECONDS):
            try:
                growing.provide(ids, vectors)
            finally:
                growing.reading.release()

    def ahead(self, scope: Scope) -> tuple[PassageTable, list[Callable[[Ask], object]]]:
        """The table of a scope as far as it was read, and what is going to be asked of it if it has not changed."""
        with self._choosing:
            growing = self._growing.get(scope) or _GrowingTable(self._dimensions)
        size_bytes, last_id = growing.dimensions * np.dtype(np.float16).itemsize, growing.last_id
        latest, missing = growing.latest, growing.missing()[:SLICE_PASSAGES]
        begin: list[Callable[[Ask], object]] = [store.last_change, store.last_passage]
        if len(latest):
            begin = [lambda ask: store.changes_after(ask, growing.forgotten_seq)]
        return latest, [
            *begin,
            *([lambda ask: store.vectors_of(ask, scope.tenant, missing, self._model, size_bytes)] if missing else ()),
            lambda ask: store.passages_after(ask, scope, last_id, SLICE_PASSAGES, self._model, size_bytes),
        ]

    def _follow(self, ask: Ask, growing: _GrowingTable, scope: Scope) -> None:
        """Bring a table up to date: read new passages, drop the oldest, and start anew where some were erased."""
        size_bytes = growing.dimensions * np.dtype(np.float16).itemsize
        if len(growing):
            gone = store.changes_after(ask, growing.forgotten_seq)
            ids = [memory for _, memory in gone]
            # they are listed for a while only; numbers between them may be missing, as what is undone has had some
            has_missed = bool(gone) and growing.forgotten_seq < gone[-1][0] - store.CHANGES
            if has_missed or growing.holds_any(ids) or self._has_joined(ask, growing, scope, ids):
                growing.clear()
            if gone:
                growing.forgotten_seq = gone[-1][0]
        else:
            growing.forgotten_seq = store.last_change(ask)
        if not len(growing):
            growing.before_id = store.passage_before(ask, scope, newest=self._room_passages)
        self._fill(ask, growing, scope.tenant, size_bytes)
        while True:
            rows = store.passages_after(ask, scope, growing.last_id, SLICE_PASSAGES, self._model, size_bytes)
            growing.add(rows)
            if len(growing) > self._room_passages * (1 + SPARE_SHARE):
                growing.drop_oldest(len(growing) - self._room_passages)
            growing.publish()
            if len(rows) < SLICE_PASSAGES:
                return
            drop_ahead(ask)  # which passages hold a word must not be older than the passages

    def _has_joined(self, ask: Ask, growing: _GrowingTable, scope: Scope, ids: Sequence[int]) -> bool:
        """Whether any of these, older than what was read last, belongs to the scope now."""
        older = [id for id in ids if growing.before_id < id <= growing.last_id]
        return bool(older) and store.are_any_in(ask, scope, older)

    def _fill(self, ask: Ask, growing: _GrowingTable, tenant: int, size_bytes: int) -> None:
        """Read the vectors that were stored meanwhile."""
        missing = growing.missing()
        for start in range(0, len(missing), SLICE_PASSAGES):
            some = missing[start : start + SLICE_PASSAGES]
            growing.fill(store.vectors_of(ask, tenant, some, self._model, size_bytes))


class _GrowingTable:
    """Arrays with room to grow. Rows are added and vectors filled in; nothing else changes in place."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.reading = threading.Lock()
        self.forgotten_seq = 0
        self.clear()

    def __len__(self) -> int:
        return self._size

    def clear(self) -> None:
        """Drop all passages, and publish the empty table."""
        self._size = 0
        self.before_id = 0  # of what is left out as too old, the newest
        self._columns: dict[str, npt.NDArray[Any]] = _columns(FIRST_PASSAGES)
        self._vectors: Floats = np.zeros((FIRST_PASSAGES, self.dimensions), np.float32)
        self._signs: Signs | None = None
        self._ends: dict[int, tuple[int, float]] = {}  # conversation: its last row, and characters up to its end
        self._names: dict[str, int] = {}
        self._begun: dict[int, tuple[int, int]] = {}  # conversation: its user's messages that begin "Ann: ", and all
        self._last = -1  # occurrence that was added
        self._known: dict[str, tuple[int, Rows]] = {}  # one for all tables whose rows mean the same
        self.publish()

    @property
    def has_names(self) -> bool:
        """Whether texts of its scope name their speakers."""
        return bool(self._names)

    def forget_terms(self) -> None:
        """Drop which rows hold which terms; they are looked up again."""
        self._known.clear()

    @property
    def last_id(self) -> int:
        return int(self._columns["ids"][self._size - 1]) if self._size else self.before_id

    def drop_oldest(self, count: int) -> None:
        """Drop the oldest passages; tables that were handed out stay as they were."""
        self.before_id = int(self._columns["ids"][count - 1])
        self._size -= count
        self._columns = {name: column[count:].copy() for name, column in self._columns.items()}
        for name in ("before", "after"):
            self._columns[name] = np.maximum(self._columns[name] - count, -1)
        self._vectors = self._vectors[count:].copy()
        self._signs = None if self._signs is None else self._signs[:, count:].copy()
        self._ends = {said: (max(row - count, -1), end) for said, (row, end) in self._ends.items()}
        self._known = {}

    def holds_any(self, ids: Sequence[int]) -> bool:
        return bool(len(ids)) and bool(np.isin(ids, self._columns["ids"][: self._size]).any())

    def missing(self) -> list[int]:
        """Ids of passages that have no vector yet."""
        rows = np.flatnonzero(~self._columns["has_vector"][: self._size])
        found: list[int] = self._columns["ids"][rows].tolist()
        return found

    def add(self, rows: Sequence[Row]) -> None:
        """Add passages with rising ids, as `_follow` reads them."""
        if not rows:
            return
        new = np.array([self._passage(at, row) for at, row in enumerate(rows, self._size)], PASSAGE)
        size = self._size + len(new)
        room = len(self._vectors)
        if size > room:
            self._grow(max(size, 2 * room) - room)
        for name, column in self._columns.items():
            column[self._size : size] = new[name]
        follows = np.flatnonzero(new["before"] >= 0)
        after = self._columns["after"].copy()  # who asked before us must not be led to rows that it does not have
        after[new["before"][follows]] = self._size + follows
        self._columns["after"] = after
        self._size = size
        self.fill([(row[0], row[-1]) for row in rows if row[-1] is not None])

    def _grow(self, room: int) -> None:
        """Add room for so many passages; large tables keep 16 bits and signs."""
        more = _columns(room)
        self._columns = {name: np.concatenate([column, more[name]]) for name, column in self._columns.items()}
        is_large = len(self._columns["ids"]) > LARGE_PASSAGES
        kept = np.float16 if is_large else np.float32  # the store keeps 16 bits: nothing is lost
        self._vectors = np.concatenate([self._vectors.astype(kept), np.zeros((room, self.dimensions), kept)])
        if self._signs is not None:
            self._signs = np.concatenate([self._signs, np.zeros((len(self._signs), room), np.uint64)], axis=1)
        elif is_large:
            self._signs = signs_of(self._vectors)

    def fill(self, rows: Sequence[Row]) -> None:
        """Put in stored vectors: ids and vectors."""
        if not rows:
            return
        at = np.searchsorted(self._columns["ids"][: self._size], [memory for memory, _ in rows])
        joined = b"".join(own for _, own in rows)
        self._keep(at, np.frombuffer(joined, np.float16).reshape(-1, self.dimensions))
        self._columns["has_vector"][at] = True

    def provide(self, ids: Sequence[int], vectors: Floats) -> None:
        """Put in vectors of passages that have none, until `fill` brings the stored ones."""
        known = self._columns["ids"][: self._size]
        at = np.minimum(np.searchsorted(known, ids), self._size - 1)
        wanted = (known[at] == ids) & ~self._columns["has_vector"][at] if self._size else np.zeros(len(ids), np.bool_)
        self._keep(at[wanted], np.asarray(vectors, np.float16)[wanted])

    def _keep(self, at: Rows, vectors: Floats) -> None:
        """Store vectors at these rows, with their signs where the table has them."""
        self._vectors[at] = vectors
        if self._signs is not None:
            self._signs[:, at] = signs_of(vectors)
        self._columns["embedded"][at] = True

    def publish(self) -> None:
        """Make a table of what was read so far; only the reader does it, as half a change must not be seen."""
        self.latest = self._table()

    def _table(self) -> PassageTable:
        rows = {name: column[: self._size] for name, column in self._columns.items() if name != "has_vector"}
        return PassageTable(
            **rows,
            names=self._names,
            vectors=self._vectors[: self._size],
            signs=None if self._signs is None else self._signs[:, : self._size],
            known=self._known,
        )

    def _passage(self, at: int, row: Row) -> tuple[Any, ...]:
        """The columns of one passage, made of its row in the store."""
        id, occurrence, conversation, length, tags, full, flags, created_at, _ = row
        before, start = self._ends.get(conversation, (-1, 0.0))
        self._ends[conversation] = (at, start + length)
        named = tags.split()
        name = next((tag[:-1] for tag in named if tag.endswith(":")), "")
        begun, said = self._begun.get(conversation, (0, 0))
        if flags & HeadFlag.USER and occurrence != self._last:
            begun, said = self._begun[conversation] = begun + bool(name), said + 1
        self._last = occurrence
        is_speaker = name and begun >= said * LEAST_BEGUN
        speaker = self._names.setdefault(name, len(self._names) + 1) if is_speaker else 0
        has_calls = bool(flags & (HeadFlag.TOOL | HeadFlag.CALLS))
        return (
            *(id, occurrence, conversation, full, length, start + length / 2, before, -1, created_at),
            *(ASKS in named, consequence(has_calls, "/" in tags), speaker),
            *(bool(flags & HeadFlag.USER) and not speaker, certainty_of(named), WISHES in named, WARNS in named),
            *(False, False),
        )


def _cost(growing: _GrowingTable) -> int:
    return len(growing) + TABLE_PASSAGES


def _columns(rows: int) -> dict[str, npt.NDArray[Any]]:
    """An empty array for each field of `PASSAGE`: a field of joined rows is copied whole wherever it is searched."""
    return {name: np.zeros(rows, PASSAGE[name]) for name in PASSAGE.names or ()}
