"""
Memory as one service beside forwarding: opened and closed as a whole, supervised, and with one account of its state.

Nothing in here can cancel, close or delay what forwards requests. A store that fails is opened again, the model is
picked up when it arrives, a background task that fails is run again; `/readyz`, the gauges and the log say so alike.

What only some servers do is imported where it is made: when the policy switches it on, or when it is asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import structlog

from palimpsest.core.redaction import redaction
from palimpsest.domain import AssistRole, Mode, Turn, frozen
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.domain.ports import Assistant, Clock, Counts, Retriever, Tracer
from palimpsest.domain.word_cache import forget_words
from palimpsest.memory.archive import Archive
from palimpsest.memory.embedding.embedder import LocalEmbedder, Use
from palimpsest.memory.extension import CandidateSelector, Extension, ExtensionSource, QueryPlanner
from palimpsest.memory.operation.follower import Follower
from palimpsest.memory.recall.assisted import AssistedRecall
from palimpsest.memory.recall.reminders import KnownReminders
from palimpsest.memory.recording.archive_process import ArchiveProcess
from palimpsest.memory.recording.archivist import Archivist
from palimpsest.memory.recording.queue_room import LIMITS, ArchiveLimits
from palimpsest.memory.recording.spool import Spool
from palimpsest.memory.request.recent_readings import RecentReadings
from palimpsest.memory.supervision import Supervisor
from palimpsest.memory.tokens import counter
from palimpsest.memory.tokens.counter import TokenCounter
from palimpsest.memory.tokens.known_models import KnownModels
from palimpsest.memory.tokens.windows import Windows
from palimpsest.memory.traffic import Traffic
from palimpsest.settings.policy import Policy
from palimpsest.store.data_dir import refuse_network_file_system
from palimpsest.store.operation import changes
from palimpsest.store.operation.secret import SECRET_ENV, keep_secret
from palimpsest.telemetry.tracing import NO_TRACER

if TYPE_CHECKING:
    from palimpsest.memory.recording.archive_writer import ArchiveWriter
    from palimpsest.upstream.litellm_library import LiteLLMThread

START_SECONDS = 5.0  # requests are served after this even if the store is still being opened
DRAIN_SECONDS = 5.0  # for what was heard last; a store that is slower than that is failing
LOOK_SECONDS = 5.0  # between two looks at how memory is, for the gauges and the log
ANSWER_SECONDS = 2.0  # a store that needs longer to count is no use to a request either
HEAVY_THREADS = 2  # large bodies are read beside the event loop; more would only wait for one another
FOLLOW_SECONDS = 0.5  # between looks whether there is a database, while memory is off
LOADING_SHARE = 0.5  # of the deadline that a request waits for a model that is being loaded; the rest is for the search

OFF = "memory is off (memory.mode): requests pass, and nothing is read or written"
SILENT = "the store does not answer: requests pass without memory; the log says why"
REPLACED = "the database file was removed or replaced since the start, and created again: its earlier contents are gone"
LOADING = "the embedding model is loading: recall waits for it within its deadline, or else searches by words"
BEHIND = 1_000  # passages that wait: half a minute of embedding on a busy machine
MISSING = "the embedding model is missing: recall is lexical only; run palimpsest model install"

log = structlog.get_logger()


@frozen
class MemoryState:
    """How memory is at one moment."""

    store: Literal["ready", "failed", "off"]
    embedder: Literal["ready", "loading", "missing", "off"]
    pending: int | None = 0  # turns that are not journalled yet, and passages that are not indexed; None: not known
    reasons: tuple[str, ...] = ()  # why it is not as it should be, in words that name nobody
    pending_seconds: float = 0.0  # since the oldest of the passages that are not indexed was said

    @property
    def is_ready(self) -> bool:
        """Whether requests get memory, or are configured not to."""
        return self.store != "failed"


class MemoryService:
    """
    One per app; implements `ports.Assistants`.

    Await `open` before the first request, and `close` after the last one, whatever `open` did.
    """

    def __init__(
        self,
        policy: Policy,
        secret: bytes,
        counts: Counts,
        clock: Clock = time.time,
        model: LocalEmbedder | None = None,  # None: the one that the policy names
        limits: ArchiveLimits = LIMITS,  # of the archive, but for how long an answer waits: that is as the policy says
        tracer: Tracer = NO_TRACER,
        environment: Mapping[str, str] = MappingProxyType({}),  # holds the keys of language models
        # where LiteLLM runs; called if it has to. None: elsewhere
        litellm_thread: Callable[[], LiteLLMThread] | None = None,
        archives_apart: bool = False,  # whether turns are written and indexed by a process of its own
        sources: Sequence[ExtensionSource] = (),  # of what policies may switch on
    ) -> None:
        self.policy = policy
        self.counts = counts
        self.clock = clock
        self._is_open = False
        self._is_followed = False
        self._process = ArchiveProcess(policy, secret, counts) if archives_apart else None
        loads = Use.QUESTIONS if archives_apart else Use.QUESTIONS | Use.PASSAGES
        self.model = model or LocalEmbedder(policy.model, counts, loads)
        self.archive = Archive(
            *(policy, counts, self.model, clock),
            model_loaded=self._loaded,
            embed_aside=self.model.embed_aside,
            secret=lambda: secret,
            keeps_to_secret=True,
            on_replaced=self._replaced,
            current=lambda: self.policy,
            assistants=self,
        )
        self._indexer = None if archives_apart else self.archive.indexer()
        self._secret = secret
        self._switched_on: dict[str, asyncio.Task[None]] = {}  # tasks that not every policy wants
        self.supervisor = Supervisor(counts)
        self._uncounted = ""  # why tokens are not
        self._reported: tuple[str, ...] = ()
        self.journal = self.archive.journal
        self.recall = self.archive.recall()
        self.database = self.archive.database
        self.environment = environment
        self.litellm_thread = litellm_thread
        self._sources = sources
        self._extensions: dict[str, Extension] = {}
        self.assisted = self.assist(self.recall)
        self.recent = RecentReadings()
        # what else is wrong, "" where nothing is: said with the rest
        self.concerns: list[Callable[[], str]] = []
        self.traffic = Traffic()
        self.follower = Follower(self.archive.database, counts)
        self.follower.listen(changes.ERASURES, "forgetting", self._forget)
        self.reminders = KnownReminders(self.archive.database, clock)
        self.follower.listen(changes.REMINDERS, "reminders", self.reminders.learn)
        self.tokens = TokenCounter()
        self.windows = Windows(policy.pressure, clock)
        self._models = KnownModels(self.archive.database, clock, self.windows, self.tokens)
        self.follower.listen(changes.MODELS, "models", self._models.learn)
        self.executor = ThreadPoolExecutor(HEAVY_THREADS, "heavy")
        self.archivist = Archivist(
            self._process or self._make_writer(),
            *(counts, clock),
            on_usage=self._learn,
            on_written=self._written,
            tracer=tracer,
            limits=replace(limits, commit_wait_seconds=policy.memory.deadline_ms / 1000),
            spool=Spool(policy.data),
        )
        self._extend(policy)

    @property
    def _is_off(self) -> bool:
        return self.policy.memory.mode is Mode.OFF

    def of(self, role: AssistRole) -> Assistant | None:
        """The model in a role; see `Assistants`."""
        return next((model for one in self._extensions.values() if (model := one.of(role)) is not None), None)

    @property
    def planner(self) -> QueryPlanner | None:
        """The planner of look-ups that the policy wants; None: none."""
        return next((one.planner for one in self._extensions.values() if one.planner is not None), None)

    @property
    def selector(self) -> CandidateSelector | None:
        """The selector that orders candidates by the policy; None: none."""
        return next((one.selector for one in self._extensions.values() if one.selector is not None), None)

    def assist(self, recall: Retriever) -> AssistedRecall:
        """A recall with planner and selector in front of and behind it."""
        return AssistedRecall(recall, self, lambda: self.policy.memory.deadline_ms / 1000)

    def _make_writer(self) -> ArchiveWriter:
        """A new writer that archives in this process."""
        from palimpsest.memory.recording.archive_writer import ArchiveWriter

        return ArchiveWriter(self.journal, self.counts, self._secret, self.clock, self.policy.archive.redact)

    async def open(self) -> None:
        """
        Open the store and start the background tasks; returns when memory can be used, or cannot be for now.

        While memory is off, the database is only opened where there is one: keys and switches stand there.

        Raises:
            PolicyError: the data folder is on a network file system.
        """
        self.counts.gauge("memory_on", not self._is_off)
        if self._is_off:
            await self._follow()
        else:
            await self._start()

    async def apply(self, policy: Policy) -> None:
        """
        Apply another policy; running work is not disturbed.

        Raises `PolicyError`: as of `open`; nothing has changed.
        """
        if policy.memory.mode is not Mode.OFF:
            await self._start()
            self._extend(policy)
            for one in [*self._extensions.values()]:
                await one.apply(policy)
                await one.open()
        if policy.archive.redact is not self.policy.archive.redact:
            self.recent.forget()  # names stand there as they are stored
        self.policy = policy
        self.counts.gauge("memory_on", not self._is_off)
        self.archivist.apply(policy)
        self.windows.apply(policy.pressure)
        if self._is_open:
            self._switch_on()

    async def _start(self) -> None:
        """Start all background tasks, and wait a few seconds for store, tokenizers and archive process."""
        if self._is_open:
            return
        refuse_network_file_system(self.policy.data)
        self._is_open = True
        for one in [*self._extensions.values()]:
            await one.apply(self.policy)
        start = self.supervisor.start
        start("archivist", self.archivist.write)
        first = (start("tokens", self._load), start("store", self._open_store))
        await asyncio.wait(first, timeout=START_SECONDS)
        if self._process is not None:
            self._process.begin()
            with suppress(TimeoutError):
                async with asyncio.timeout(START_SECONDS):
                    await self._process.ready()
        await self._follow()
        self.counts.gauge("store_up", not self.database.error)  # until it is looked at for the first time
        start("assistants", self._load_extensions)
        # after the above, as a model takes the machine
        watch = self._watch_model
        start("model", watch if self._indexer is None else partial(self._indexer.await_model, watch))
        if self._indexer is not None:
            start("index", partial(self._indexer.run, lambda: not self.archivist.is_failing))
        start("erasure", lambda: self.archive.forgetting.finish())
        start("retention", lambda: self.archive.sweeper.run())
        start("state", self._report)
        start("models", self._models.run)
        self._switch_on()

    def _extend(self, policy: Policy) -> None:
        """Create the extensions that a policy needs and that do not exist yet; under others they stay idle."""
        for source in self._sources:
            if source.name not in self._extensions and source.extends(policy):
                self._extensions[source.name] = source.extension(self)

    async def _load_extensions(self) -> None:
        for one in [*self._extensions.values()]:
            await one.open()

    def _switch_on(self) -> None:
        """Start the tasks that the policy wants and that do not run; others rest or end."""
        for extension in self._extensions.values():
            for name, task in extension.tasks().items():
                if name not in self._switched_on or self._switched_on[name].done():
                    self._switched_on[name] = self.supervisor.start(name, task)

    async def _follow(self) -> None:
        """Look once at what the database says has changed, and follow it from now on."""
        if self._is_followed:
            return
        self._is_followed = True
        if self._is_off and self.database.is_there:
            await self._open_store()
        if self._is_open or self.database.is_there:
            await self.follower.look()
        self.supervisor.start("follower", self._follow_on)

    async def _follow_on(self) -> None:
        """Wait until there is a database, then follow its changes."""
        while not self._is_open and not self.database.is_there:  # noqa: ASYNC110  # no file tells us that it is there
            await asyncio.sleep(FOLLOW_SECONDS)
        await self._open_store()
        await self.follower.follow()

    async def _watch_model(self) -> None:
        await self.model.watch()
        if self.model.ready:
            with suppress(MemoryFault):  # said already; the first request tries it again
                await self.recall.warm()

    async def _loaded(self) -> bool:
        """Wait a moment for a model that is being loaded; whether it is ready."""
        return await self.model.loaded(LOADING_SHARE * self.policy.memory.deadline_ms / 1000)

    async def close(self) -> None:
        """Write what waits, then end all tasks, threads and connections."""
        async with AsyncExitStack() as ending:  # each of these, whatever becomes of the others; the last one first
            ending.callback(self.executor.shutdown, wait=False, cancel_futures=True)
            ending.push_async_callback(self.archive.close)
            ending.push_async_callback(self.model.close)
            for one in self._extensions.values():
                ending.push_async_callback(one.close)
            ending.push_async_callback(self.supervisor.stop)
            ending.push_async_callback(self._keep_models)
            ending.push_async_callback(self.archivist.drain, DRAIN_SECONDS)

    async def _keep_models(self) -> None:
        with suppress(MemoryFault, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._models.write()

    async def state(self) -> MemoryState:
        """How memory is now. Sets the gauges, and writes to the log what has changed."""
        if self._is_off:
            return MemoryState("off", "off", reasons=(*self._concerns(), OFF))
        pending, waits_since, cause = None, 0.0, ""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                waiting = await self.journal.pending()
                waits_since = await self.journal.oldest_pending() if waiting else 0.0
                pending = self.archivist.backlog + waiting
        except TimeoutError:
            cause = f"it has not answered for {ANSWER_SECONDS:g} s"
        except MemoryFault as fault:
            cause = str(fault)
        state = MemoryState(
            "failed" if pending is None or self.archivist.is_failing else "ready",
            "ready" if self.model.ready else "loading" if self.model.is_loading else "missing",
            pending,
            tuple(self._reasons(pending)),
            max(self.clock() - waits_since, 0.0) if waits_since else 0.0,
        )
        self.counts.gauge("queue_bytes", self.archivist.room.bytes)
        self.counts.gauge("archive_lag_seconds", self.archivist.lag_seconds)
        self.counts.gauge("store_up", state.is_ready)
        self.counts.gauge("embedder_ready", self.model.ready)
        if pending is not None:
            self.counts.gauge("pending", pending)
            self.counts.gauge("pending_seconds", state.pending_seconds)
        self._say(state, cause)
        return state

    def _reasons(self, pending: int | None) -> Iterator[str]:
        """All current troubles in words."""
        yield from self._concerns()
        for one in [*self._extensions.values()]:
            yield from one.troubles()
        yield from self.supervisor.troubles
        yield from self.follower.troubles
        yield from self.archivist.troubles
        yield from self._indexer.troubles if self._indexer else ()
        reasons = (
            (bool(self.archive.database.replaced), REPLACED),
            (pending is None, SILENT),
            (self.model.ready and (pending or 0) >= BEHIND, _behind(pending or 0)),
            (self.model.is_loading, LOADING),
            (not self.model.ready and not self.model.is_loading, MISSING),
        )
        yield from (words for holds, words in reasons if holds)
        yield from filter(None, (self.windows.trouble, self._uncounted))

    def _concerns(self) -> Iterator[str]:
        yield from filter(None, (concern() for concern in self.concerns))

    def _say(self, state: MemoryState, cause: str) -> None:
        """Log what is wrong when that changes; a model that is being loaded is nothing wrong."""
        reasons = tuple(reason for reason in state.reasons if reason != LOADING)
        if reasons == self._reported:
            return
        self._reported = reasons
        if reasons:
            log.warning("memory is impaired", reason="; ".join((*reasons, cause)).removesuffix("; "))
        else:
            log.info("memory has recovered")

    async def _report(self) -> None:
        """Log the state of memory every few seconds; forever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.state()

    async def _open_store(self) -> None:
        """Open the database, or leave that to the index, which tries again every few seconds."""
        try:
            await self.archive.database.open()
        except MemoryFault as fault:
            log.error("the store cannot be opened, requests pass without memory until it can", reason=str(fault))

    async def _forget(self) -> None:
        forget_words((self.model.forget, self.recent.forget, self.archive.forget))

    def _replaced(self) -> None:
        """Count it, and put back the secret: where it went with the database, the next start would make another one."""
        self.counts.fault("database_replaced")
        if not self.environment.get(SECRET_ENV):
            with suppress(PolicyError):  # whoever makes the database anew says why the folder cannot be used
                keep_secret(self.policy.data, self._secret)

    async def _load(self) -> None:
        """Load what the first request would wait for; without tokenizers requests pass without memory."""
        in_thread = partial(asyncio.get_running_loop().run_in_executor, self.executor)
        await in_thread(redaction.warm)
        try:
            await in_thread(counter.warm)
        except MemoryFault as fault:
            self._uncounted = f"tokens cannot be counted, requests pass without memory: {fault}"
            log.error("tokens cannot be counted, requests pass without memory", reason=str(fault))

    def _written(self) -> None:
        """Tell indexer and extensions that turns were written."""
        if self._indexer is not None:
            self._indexer.wake()
        for one in self._extensions.values():
            one.note_written()

    def _learn(self, turn: Turn, prompt_tokens: int) -> None:
        """Take in how many tokens the upstream counted for the prompt of a turn."""
        self.tokens.learn(turn.model, turn.tokens, prompt_tokens)
        self.windows.note_answered(turn.upstream, turn.model, prompt_tokens)


def _behind(pending: int) -> str:
    """The trouble that passages wait, with their number in steps of ten, so that small changes are not logged."""
    at_least = 10 ** (len(str(pending)) - 1)
    return f"indexing is behind: more than {at_least:,} passages wait, the newest go first; they are found by words"
