"""
Indexing: passages that have no vector get one, in batches that are claimed, embedded and saved.

Any number of processes may index one database. A passage that a model twice fails to embed
alone, though it embeds another text, is set aside: it is still found by its words, and does not hold up others.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import perf_counter

import structlog

from palimpsest.domain.errors import DataFault, MemoryFault
from palimpsest.domain.ports import ArchiveCounts, Embedder, Vectors
from palimpsest.store.search.derived import Derived, WaitingPassage

BATCH_PASSAGES = 64  # embedded at a time: more saves little, and holds up what is said meanwhile, and a stop
LEASE_SECONDS = 30.0  # a batch takes a second or two; a worker that died holds it up for so long
LOOK_SECONDS = 5.0  # between looks for passages that another worker or an earlier run left
PROBE = "ok"  # a text that every model embeds: whether it does tells a broken model from a bad passage

SET_ASIDE = "passages that cannot be embedded were set aside since the start, and are found by words; the log says why"

log = structlog.get_logger()


class Indexer:
    """One worker of the index."""

    def __init__(
        self,
        derived: Derived,
        embedder: Embedder,
        counts: ArchiveCounts,
        batch_passages: int = BATCH_PASSAGES,  # claimed and saved at a time
        # after which other workers take over what this one has claimed and not saved
        lease_seconds: float = LEASE_SECONDS,
        look_seconds: float = LOOK_SECONDS,  # between two looks, where nobody wakes it
    ) -> None:
        self._derived = derived
        self._embedder = embedder
        self._counts = counts
        self._batch_passages = batch_passages
        self._lease_seconds = lease_seconds
        self._look_seconds = look_seconds
        self._worker = secrets.token_hex(8)
        self._fresh = asyncio.Event()
        self._has_set_aside = False

    @property
    def troubles(self) -> tuple[str, ...]:
        """Which kinds of passages are not found by their meaning, in words that name nobody."""
        return (SET_ASIDE,) if self._has_set_aside else ()

    def wake(self) -> None:
        """Look for passages now."""
        self._fresh.set()

    async def await_model(self, watch: Callable[[], Awaitable[None]]) -> None:
        """Wait for the model by `watch`, then look at once for what was said before it was there."""
        await watch()
        self.wake()

    async def run(self, may_index: Callable[[], bool]) -> None:
        """
        Index whatever comes; forever. A rebuild that was begun anywhere goes on here.

        Args:
            may_index: asked before each look; False while the store is needed for something more urgent.
        """
        while True:
            self._fresh.clear()
            try:
                if may_index():
                    await self._catch_up()
            except MemoryFault as fault:
                self._counts.fault("index")
                log.warning("indexing failed; retrying", reason=str(fault))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await self._fresh.wait()

    async def index_batch(self) -> bool:
        """
        Give one batch of passages their vectors. False: no passage waits that another worker has not claimed.
        Raises `MemoryFault`: the model or the store could not do its work; the lease of the batch runs out.
        """
        waiting = await self._derived.claim(
            self._batch_passages, self._worker, self._lease_seconds, self._embedder.name
        )
        if not waiting:
            return False
        started = perf_counter()
        await self._save(await self._vectors(waiting))
        self._counts.observe("index", perf_counter() - started)
        return True

    async def _catch_up(self) -> None:
        """Index until nothing waits, or the model is not ready."""
        while await self._derived.rebuild_step():
            pass
        while self._embedder.ready and await self.index_batch():
            pass

    async def _vectors(self, waiting: Sequence[WaitingPassage]) -> dict[int, Vectors]:
        """
        The vectors of passages, by memory; those that fail are set aside.

        One text may bring the model down for its whole batch, so halves are tried alone.
        """
        texts = [*dict.fromkeys(passage.text for passage in waiting)]  # what is said twice has one vector
        try:
            vectors = dict(zip(texts, await self._embedder.embed_passages(texts), strict=True))
        except Exception as failure:  # a guard: whatever a text does to the model must not stay with its batch
            if not self._embedder.ready:
                raise
            log.warning("passages could not be embedded, fewer are tried", passages=len(waiting), reason=str(failure))
            if len(waiting) > 1:
                middle = len(waiting) // 2
                return await self._vectors(waiting[:middle]) | await self._vectors(waiting[middle:])
            return await self._last_attempt(waiting[0])
        return {passage.memory: vectors[passage.text] for passage in waiting}

    async def _last_attempt(self, passage: WaitingPassage) -> dict[int, Vectors]:
        """Embed a passage alone that failed in a batch; empty: set aside. Raises `MemoryFault`: any text would fail."""
        await self._embedder.embed_passages([PROBE])
        try:
            (vector,) = await self._embedder.embed_passages([passage.text])
        except Exception as failure:  # a guard, as above
            await self._set_aside(passage.memory, f"embedding: {failure}")
            return {}
        return {passage.memory: vector}

    async def _save(self, vectors: dict[int, Vectors]) -> None:
        """Save vectors; one that cannot be stored is set aside, and the others are saved."""
        try:
            await self._derived.save_vectors(self._embedder.name, vectors)
        except DataFault as failure:
            memories = list(vectors)
            if len(memories) == 1:
                await self._set_aside(memories[0], str(failure))
                return
            middle = len(memories) // 2
            for half in (memories[:middle], memories[middle:]):
                await self._save({memory: vectors[memory] for memory in half})

    async def _set_aside(self, memory: int, reason: str) -> None:
        """Give a passage up that cannot be embedded."""
        self._has_set_aside = True
        self._counts.fault("quarantine")
        log.error("a passage cannot be embedded and is set aside; it is found by its words alone", reason=reason)
        await self._derived.set_aside(memory, reason)
