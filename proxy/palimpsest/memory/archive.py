"""
The archive of one data folder: database, journal, derived data, index and recall, joined in one place.

The server, the command line and the benchmarks all use this wiring; none of them wires a second one. Each service is
imported where it is made, so that a process loads those that it runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from palimpsest.core.recall.ranking import RECIPE, Recipe
from palimpsest.domain.ports import Assistants, Clock, Counts, Embedder
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.fresh_passages import EmbedAside
from palimpsest.memory.recall.recall import Recall
from palimpsest.settings.policy import Policy
from palimpsest.store.engine.engines import engine_of
from palimpsest.store.journal import Journal

if TYPE_CHECKING:
    from palimpsest.memory.erasure.forgetting import Forgetting
    from palimpsest.memory.erasure.retention import Sweeper
    from palimpsest.memory.erasure.retiring import Retiring
    from palimpsest.memory.index.item_keys import ItemKeys
    from palimpsest.memory.recall.indexing import Indexer
    from palimpsest.store.search.derived import Derived

T = TypeVar("T")


class Archive:
    """Everything that reads and writes one database. Await `close` in the end; the embedder is its owner's to close."""

    def __init__(
        self,
        policy: Policy,  # its `data` is the folder
        counts: Counts,
        embedder: Embedder,
        clock: Clock = time.time,
        *,
        secret: Callable[[], bytes] = lambda: b"",  # under which names are hashed; read when something needs it
        keeps_to_secret: bool = False,  # whether to refuse a database that was written with another one
        on_replaced: Callable[[], None] = lambda: None,  # as of `engine_of`
        current: Callable[[], Policy] | None = None,  # the policy in force when it is called; None: always `policy`
        assistants: Assistants | None = None,  # language models that help memory; None: none do
        # waits a moment for a model that is being loaded; see `Recall`
        model_loaded: Callable[[], Awaitable[bool]] | None = None,
        embed_aside: EmbedAside | None = None,  # embeds what was said last; see `Recall`
    ) -> None:
        self.counts = counts
        self.secret = secret
        self.current = current or (lambda: policy)
        self.assistants = assistants
        self.clock = clock
        self._model_loaded = model_loaded
        self._embed_aside = embed_aside
        self.embedder = embedder
        self.database = engine_of(
            *(policy.data, policy.archive.synchronous, policy.store.url, policy.store.password_file),
            on_replaced=on_replaced,
            secret=secret if keeps_to_secret else None,
        )
        self.journal = Journal(self.database)
        self.tables = PassageTables(embedder.name, embedder.dimensions)
        self._keys: ItemKeys | None = None
        self._made: dict[object, Any] = {}

    def recall(self, recipe: Recipe = RECIPE, embedder: Embedder | None = None, clock: Clock | None = None) -> Recall:
        """Make a recall over the shared tables, with `embedder` and `clock` where they differ from the archive's."""
        return Recall(
            self.database,
            self.tables,
            embedder or self.embedder,
            self.counts,
            clock or self.clock,
            recipe,
            self._model_loaded,
            self.keys,
            self._embed_aside,
            lambda: self.current().recall,
        )

    def keys(self) -> ItemKeys | None:
        """The keys of items; None until the policy first wants them."""
        if self._keys is None and self.current().consolidation.recall != "off":
            from palimpsest.memory.index.item_keys import ItemKeys

            self._keys = ItemKeys(
                *(self.embedder.name, self.embedder.dimensions),
                lambda: (self.current().consolidation.recall, self.current().consolidation.share_between_users),
            )
        return self._keys

    def forget(self) -> None:
        """Drop the words that are kept in memory."""
        self.tables.forget()
        if self._keys is not None:
            self._keys.forget()

    def service(self, make: Callable[[Archive], T]) -> T:
        """The service of a feature over this archive, made at the first call."""
        if make not in self._made:
            self._made[make] = make(self)
        service: T = self._made[make]
        return service

    def indexer(self, batch_passages: int | None = None, lease_seconds: float | None = None) -> Indexer:
        """Make a worker that gives passages their vectors; see `Indexer`."""
        from palimpsest.memory.recall.indexing import BATCH_PASSAGES, LEASE_SECONDS, Indexer

        sizes = batch_passages or BATCH_PASSAGES, lease_seconds or LEASE_SECONDS
        return Indexer(self.derived, self.embedder, self.counts, *sizes)

    @cached_property
    def derived(self) -> Derived:
        """What follows from the journal: what of it waits to be made, and making it anew."""
        from palimpsest.store.search.derived import Derived

        return Derived(self.database, self.clock)

    @cached_property
    def forgetting(self) -> Forgetting:
        """The service that erases on request."""
        from palimpsest.memory.erasure.forgetting import Forgetting

        return Forgetting(self.database, self.secret(), self.clock, backups=lambda: self.current().retention.backups)

    @cached_property
    def retiring(self) -> Retiring:
        """The service that retires on request, and undoes that."""
        from palimpsest.memory.erasure.retiring import Retiring

        return Retiring(self.database, self.secret(), self.clock)

    @cached_property
    def sweeper(self) -> Sweeper:
        """The service that erases by age and for room."""
        from palimpsest.memory.erasure.retention import Sweeper

        return Sweeper(self.database, self.secret(), lambda: self.current().retention, self.counts, self.clock)

    async def close(self) -> None:
        """Close the database."""
        await self.database.close()
