"""
The archive of one data folder: database, journal, derived data, index and recall, joined in one place.

The server, the command line and the benchmarks all use this wiring; none of them wires a second one. Each service is
imported where it is made, so that a process loads those that it runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from palimpsest.core.recall.ranking import RECIPE, Recipe
from palimpsest.domain.ports import Clock, Counts, Embedder, QuietModel
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.fresh_passages import EmbedAside
from palimpsest.memory.recall.recall import Recall
from palimpsest.settings.policy import Policy
from palimpsest.store.data_dir import DATABASE_FILE
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.store.search.derived import Derived

if TYPE_CHECKING:
    from palimpsest.features.facts.extraction import FactExtraction
    from palimpsest.features.facts.service import Facts
    from palimpsest.features.gaps.probing import Prober
    from palimpsest.features.items.consolidation import Consolidator, Judge
    from palimpsest.features.items.keys import ItemKeys
    from palimpsest.features.items.writing import ItemKeeper, ItemWriter
    from palimpsest.features.transfer.importing import Importing
    from palimpsest.memory.erasure.forgetting import Forgetting
    from palimpsest.memory.erasure.retention import Sweeper
    from palimpsest.memory.erasure.retiring import Retiring
    from palimpsest.memory.recall.indexing import Indexer


class Archive:
    """Everything that reads and writes one database. Await `close` in the end; the embedder is its owner's to close."""

    def __init__(
        self,
        policy: Policy,
        counts: Counts,
        embedder: Embedder,
        clock: Clock = time.time,
        *,
        secret: Callable[[], bytes] = lambda: b"",
        current: Callable[[], Policy] | None = None,
        judge: Callable[[], Judge | None] = lambda: None,
        model_loaded: Callable[[], Awaitable[bool]] | None = None,
        embed_aside: EmbedAside | None = None,
    ) -> None:
        """
        Args:
            policy: its `data` is the folder.
            secret: under which names are hashed; read when something needs it.
            current: the policy in force when it is called; None: always `policy`.
            judge: judges what rules leave of items; see `Consolidator`.
            embed_aside: embeds what was said last; see `Recall`.
            model_loaded: waits a moment for a model that is being loaded; see `Recall`.
        """
        self._counts = counts
        self._secret = secret
        self._current = current or (lambda: policy)
        self._judge = judge
        self._clock = clock
        self._model_loaded = model_loaded
        self._embed_aside = embed_aside
        self.embedder = embedder
        self.database = Database(
            policy.data / DATABASE_FILE, policy.archive.synchronous, lambda: counts.fault("database_replaced")
        )
        self.journal = Journal(self.database)
        self.derived = Derived(self.database, clock)
        self.tables = PassageTables(embedder.name, embedder.dimensions)
        self._keys: ItemKeys | None = None

    def __repr__(self) -> str:
        return f"<Archive {self.database!r}>"

    def recall(
        self,
        recipe: Recipe = RECIPE,
        embedder: Embedder | None = None,
        clock: Clock | None = None,
    ) -> Recall:
        """
        Recall from this archive. All of them share the passages that are kept in memory.

        Args:
            embedder: where it differs from the archive's, as `clock`.
        """
        return Recall(
            self.database,
            self.tables,
            embedder or self.embedder,
            self._counts,
            clock or self._clock,
            recipe,
            self._model_loaded,
            self.keys,
            self._embed_aside,
        )

    def keys(self) -> ItemKeys | None:
        """Keys of items, from when recall first went by them."""
        if self._keys is None and self._current().consolidation.recall != "off":
            from palimpsest.features.items.keys import ItemKeys

            self._keys = ItemKeys(
                *(self.embedder.name, self.embedder.dimensions),
                lambda: (self._current().consolidation.recall, self._current().consolidation.share_between_users),
            )
        return self._keys

    def forget(self) -> None:
        """Drop the words that are kept in memory."""
        self.tables.forget()
        if self._keys is not None:
            self._keys.forget()

    def prober(self, model: QuietModel, chance: Random | None = None) -> Prober:
        """What asks this archive for what it holds; see `Prober`."""
        from palimpsest.features.gaps.probing import Aside, Prober, Uncounted

        def recall(tables: PassageTables) -> Recall:
            return Recall(self.database, tables, Aside(model), Uncounted(), self._clock)

        return Prober(self.database, self.tables, recall, self._current, self._clock, chance)

    def indexer(self, batch_passages: int | None = None, lease_seconds: float | None = None) -> Indexer:
        """A worker of the index; see `Indexer`."""
        from palimpsest.memory.recall.indexing import BATCH_PASSAGES, LEASE_SECONDS, Indexer

        sizes = batch_passages or BATCH_PASSAGES, lease_seconds or LEASE_SECONDS
        return Indexer(self.derived, self.embedder, self._counts, *sizes)

    def item_keeper(self, writer: Callable[[], ItemWriter | None]) -> ItemKeeper:
        """What keeps items of what this archive holds; see `ItemKeeper`."""
        from palimpsest.features.items.writing import ItemKeeper

        return ItemKeeper(self.database, self._counts, self._clock, writer, self._used_items)

    def _used_items(self) -> Collection[int]:
        return () if self._keys is None else self._keys.take_used()

    @cached_property
    def facts(self) -> Facts:
        """Facts on request."""
        from palimpsest.features.facts.service import Facts

        return Facts(self.database, self._secret(), self._current, self._clock)

    @cached_property
    def fact_extraction(self) -> FactExtraction:
        """What extracts facts."""
        from palimpsest.features.facts.extraction import FactExtraction

        return FactExtraction(self.database, self._secret(), self._counts, self._clock)

    @cached_property
    def forgetting(self) -> Forgetting:
        """What erases on request."""
        from palimpsest.memory.erasure.forgetting import Forgetting

        return Forgetting(self.database, self._secret(), self._clock, backups=lambda: self._current().retention.backups)

    @cached_property
    def importing(self) -> Importing:
        """What writes turns from files."""
        from palimpsest.features.transfer.importing import Importing

        return Importing(self.database, self._secret(), self._current().archive.redact)

    @cached_property
    def retiring(self) -> Retiring:
        """What retires on request, and undoes that."""
        from palimpsest.memory.erasure.retiring import Retiring

        return Retiring(self.database, self._secret(), self._clock)

    @cached_property
    def sweeper(self) -> Sweeper:
        """What erases by age and for room."""
        from palimpsest.memory.erasure.retention import Sweeper

        return Sweeper(self.database, self._secret(), lambda: self._current().retention, self._counts, self._clock)

    @cached_property
    def consolidator(self) -> Consolidator:
        """What tidies items."""
        from palimpsest.features.items.consolidation import Consolidator

        return Consolidator(self.database, self.embedder, self._counts, self._clock, self._judge)

    async def close(self) -> None:
        """Close the database."""
        await self.database.close()
