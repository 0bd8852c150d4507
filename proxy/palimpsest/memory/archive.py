"""
The archive of one data folder: database, journal, derived data, index and recall, joined in one place.

The server, the command line and the benchmarks all use this wiring; none of them wires a second one. Each service is
imported where it is made, so that a process loads those that it runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import TYPE_CHECKING

from palimpsest.core.recall.ranking import RECIPE, Recipe
from palimpsest.index.passage_tables import PassageTables
from palimpsest.memory.fresh_passages import EmbedAside
from palimpsest.memory.recall import Recall
from palimpsest.ports import Clock, Counts, Embedder, QuietModel
from palimpsest.settings.policy import ConsolidationPolicy, Policy, RetentionPolicy
from palimpsest.store.data_dir import DATABASE_FILE
from palimpsest.store.derived import Derived
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal

if TYPE_CHECKING:
    from palimpsest.index.item_keys import ItemKeys
    from palimpsest.memory.consolidation import Consolidator, Judge
    from palimpsest.memory.fact_extraction import FactExtraction
    from palimpsest.memory.facts import Facts
    from palimpsest.memory.forgetting import Forgetting
    from palimpsest.memory.importing import Importing
    from palimpsest.memory.indexing import Indexer
    from palimpsest.memory.item_writing import ItemKeeper, ItemWriter
    from palimpsest.memory.probing import Prober
    from palimpsest.memory.retention import Sweeper
    from palimpsest.memory.retiring import Retiring


class Archive:
    """Everything that reads and writes one database. Await `close` in the end; the embedder is its owner's to close."""

    def __init__(
        self,
        policy: Policy,
        counts: Counts,
        embedder: Embedder,
        clock: Clock = time.time,
        *,
        model_loaded: Callable[[], Awaitable[bool]] | None = None,
        consolidation: Callable[[], ConsolidationPolicy] | None = None,
        embed_aside: EmbedAside | None = None,
    ) -> None:
        """
        Args:
            policy: its `data` is the folder.
            embed_aside: embeds what was said last; see `Recall`.
            model_loaded: waits a moment for a model that is being loaded; see `Recall`.
            consolidation: as it is in force when it is called; None: as in `policy`.
        """
        self._counts = counts
        self._backups = lambda: policy.retention.backups
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
        self._consolidation = consolidation or (lambda: policy.consolidation)
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
        if self._keys is None and self._consolidation().recall != "off":
            from palimpsest.index.item_keys import ItemKeys

            self._keys = ItemKeys(
                *(self.embedder.name, self.embedder.dimensions),
                lambda: (self._consolidation().recall, self._consolidation().share_between_users),
            )
        return self._keys

    def forget(self) -> None:
        """Drop the words that are kept in memory."""
        self.tables.forget()
        if self._keys is not None:
            self._keys.forget()

    def prober(self, model: QuietModel, policy: Callable[[], Policy], chance: Random | None = None) -> Prober:
        """What asks this archive for what it holds; see `Prober`."""
        from palimpsest.memory.probing import Aside, Prober, Uncounted

        def recall(tables: PassageTables) -> Recall:
            return Recall(self.database, tables, Aside(model), Uncounted(), self._clock)

        return Prober(self.database, self.tables, recall, policy, self._clock, chance)

    def indexer(self, batch_passages: int | None = None, lease_seconds: float | None = None) -> Indexer:
        """A worker of the index; see `Indexer`."""
        from palimpsest.memory.indexing import BATCH_PASSAGES, LEASE_SECONDS, Indexer

        sizes = batch_passages or BATCH_PASSAGES, lease_seconds or LEASE_SECONDS
        return Indexer(self.derived, self.embedder, self._counts, *sizes)

    def facts(self, secret: bytes, policy: Callable[[], Policy]) -> Facts:
        """Facts on request; see `Facts`."""
        from palimpsest.memory.facts import Facts

        return Facts(self.database, secret, policy, self._clock)

    def fact_extraction(self, secret: bytes) -> FactExtraction:
        """A worker that extracts facts; see `FactExtraction`."""
        from palimpsest.memory.fact_extraction import FactExtraction

        return FactExtraction(self.database, secret, self._counts, self._clock)

    def forgetting(
        self, secret: bytes, vacuum_bytes: float | None = None, backups: Callable[[], str] | None = None
    ) -> Forgetting:
        """The means to erase from this archive; see `Forgetting`."""
        from palimpsest.memory.forgetting import VACUUM_BYTES, Forgetting

        most = VACUUM_BYTES if vacuum_bytes is None else vacuum_bytes
        return Forgetting(self.database, secret, self._clock, most, backups or self._backups)

    def importing(self, secret: bytes, redacts: bool) -> Importing:
        """The means to write turns from files into this archive; see `Importing`."""
        from palimpsest.memory.importing import Importing

        return Importing(self.database, secret, redacts)

    def retiring(self, secret: bytes) -> Retiring:
        """The means to retire from this archive; see `Retiring`."""
        from palimpsest.memory.retiring import Retiring

        return Retiring(self.database, secret, self._clock)

    def sweeper(self, secret: bytes, policy: Callable[[], RetentionPolicy]) -> Sweeper:
        """What erases from this archive by itself; see `Sweeper`."""
        from palimpsest.memory.retention import Sweeper

        return Sweeper(self.database, secret, policy, self._counts, self._clock)

    def consolidator(self, judge: Callable[[], Judge | None] = lambda: None) -> Consolidator:
        """What tidies the items of this archive; see `Consolidator`."""
        from palimpsest.memory.consolidation import Consolidator

        return Consolidator(self.database, self.embedder, self._counts, self._clock, judge)

    def item_keeper(self, writer: Callable[[], ItemWriter | None]) -> ItemKeeper:
        """What keeps items of what this archive holds; see `ItemKeeper`."""
        from palimpsest.memory.item_writing import ItemKeeper

        return ItemKeeper(self.database, self._counts, self._clock, writer, self._used_items)

    def _used_items(self) -> Collection[int]:
        return () if self._keys is None else self._keys.take_used()

    async def close(self) -> None:
        """Close the database."""
        await self.database.close()
