"""
The embedding model in two processes, found, fetched and loaded in the background.

Questions are embedded here, on a thread of their own; passages in a process of their own (`PassageProcess`). Without a
model nothing waits: `ready` is False, recall is lexical, and `watch` picks the model up when it arrives. The process
ends when there have been no passages for a while.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Flag, auto
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import ArchiveCounts, Vectors
from palimpsest.memory.embedding.embedding_worker import PassageProcess
from palimpsest.memory.embedding.encoder import Encoder, load_encoder, vectors_name
from palimpsest.memory.embedding.model import chosen_model, discard, install, locate

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import ModelPolicy

QUESTION_THREADS = 1  # of one embedding run; requests need the other cores
PASSAGE_THREADS = 2  # at most, at low priority: twice the passages where the other core is idle, few where it is not
QUESTION_CHARS = 240  # some 50 tokens: 3 ms on one core, a fifth of what 256 would take
REMEMBERED_QUESTIONS = 256  # half a megabyte; a retry and the next step of a tool loop ask the same again
WAITING_QUESTIONS = 32  # a tenth of a second of work; whoever comes behind would give up before its turn
LOOK_SECONDS = 2.0  # between two looks for a model that somebody puts in place: a few stat calls
REST_SECONDS = 60.0  # a start takes half a second in the background; a conversation has a turn every minute or so
HUNG_SECONDS = 60.0  # then a process that embeds passages has hung: it starts in a second or two
PASSAGE_SECONDS = 5.0  # and as many for each passage: a hundred times what it takes on a machine that is not busy
FETCH_PAUSE_SECONDS = 30.0  # after the first fetch that failed; doubles each time
FETCH_PAUSE_SECONDS_MAX = 3600.0

T = TypeVar("T")

log = structlog.get_logger(__name__)

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container (cgroup v2): microseconds of processor time, and of the period


class Use(Flag):
    """What a model is loaded for as soon as there is one."""

    QUESTIONS = auto()
    PASSAGES = auto()


class LocalEmbedder:
    """The model that policy names, on this machine's processor. Run `watch` in the background; `close` in the end."""

    def __init__(
        self,
        policy: ModelPolicy,
        counts: ArchiveCounts,
        # what the model is loaded for as soon as it is found; it is fetched only for questions. Passages are embedded
        # in any case, by a process that is started then
        loads: Use = Use.QUESTIONS | Use.PASSAGES,
        rest_seconds: float = REST_SECONDS,
        hung_seconds: float = HUNG_SECONDS,
        passage_seconds: float = PASSAGE_SECONDS,
    ) -> None:
        self.status = "not loaded yet"  # for /readyz: words, never a path of the client's
        self._policy = policy
        self._model = chosen_model(policy)
        self.name, self.dimensions = vectors_name(self._model), self._model.dimensions
        self._counts = counts
        self._loads = loads
        self._is_loaded = False
        self._encoder: Encoder | None = None
        self._passages: PassageProcess | None = None
        self._refused: tuple[Path, int] | None = None  # a damaged model: not loaded again until it changes
        self._stopping = False
        self._loading: asyncio.Event | None = None
        self._rest_seconds = rest_seconds
        self._hung_seconds = hung_seconds
        self._passage_seconds = passage_seconds
        self._resting: asyncio.TimerHandle | None = None
        self._remembered: OrderedDict[tuple[str, ...], _Question] = OrderedDict()
        self._unfinished = 0  # questions that wait for the thread, or are being embedded
        self._question_thread = ThreadPoolExecutor(1, "embed-question")
        self._passage_thread = ThreadPoolExecutor(1, "embed-passages")
        counts.gauge("embedder_ready", 0)

    @property
    def ready(self) -> bool:
        return self._is_loaded

    @property
    def is_loading(self) -> bool:
        """Whether a model was found, and will be ready in a moment."""
        return self._loading is not None

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the forms of one question, shape (n, dimensions); asked twice at once, computed once."""
        forms = tuple(map(gist, texts))
        question = self._remembered.get(forms)
        if question is None:
            question = self._remembered[forms] = self._begin(forms)
            if len(self._remembered) > REMEMBERED_QUESTIONS:
                self._remembered.popitem(last=False)
        self._remembered.move_to_end(forms)
        question.waiting += 1
        try:
            return await asyncio.shield(question.vectors)  # others may wait for it too
        finally:
            question.waiting -= 1
            # what has begun goes on: a retry will ask the same
            if not question.waiting and question.work.cancel() and self._remembered.get(forms) is question:
                del self._remembered[forms]

    async def embed_aside(self, texts: Sequence[str]) -> Vectors:
        """As `embed_queries`, for questions that nobody waits for: they are neither kept nor counted."""
        encoder = self._encoder
        if encoder is None:
            raise MemoryFault(f"embedding a question: {self.status}")
        forms = tuple(map(gist, texts))
        return await asyncio.get_running_loop().run_in_executor(self._question_thread, encoder.embed, forms)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, (n, dimensions), at low priority; a call after a failure starts another process."""
        if self._passages is None:
            raise MemoryFault(f"embedding passages: {self.status}")
        seconds = self._hung_seconds + self._passage_seconds * len(texts)
        giving_up = asyncio.get_running_loop().call_later(seconds, self._passages.interrupt)
        try:
            vectors: Vectors = await self._on_passage_thread(self._passages.embed, texts)
        finally:
            giving_up.cancel()
        self._rest_later()
        return vectors

    def forget(self) -> None:
        """Drop the questions that are kept in memory."""
        self._remembered.clear()

    async def warm(self) -> bool:
        """Load the model, if this machine has one. Returns `ready`."""
        try:
            folder = locate(self._policy)
        except MemoryFault as fault:
            if self.status != str(fault):  # it is looked for every few seconds
                self._say(str(fault))
            return False
        if self.ready or folder is None or self._refused == self._version(folder):
            return self.ready
        version, self._loading = self._version(folder), asyncio.Event()
        try:
            await self._load(folder)
        except MemoryFault as fault:
            self._refused = version
            self._say(str(fault))
            return False
        finally:
            self._loading.set()
            self._loading = None
        self._is_loaded, self.status = True, "ready"
        self._counts.gauge("embedder_ready", 1)
        if Use.QUESTIONS in self._loads:
            log.info("embedding model loaded", name=self._model.name, folder=str(folder))
        return True

    async def loaded(self, seconds: float) -> bool:
        """Wait while the model is being loaded, but no longer than this. Returns `ready`."""
        if self._loading is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._loading.wait()
        return self.ready

    async def watch(self) -> None:
        """Return when the model is loaded. Until then look for it, and fetch it where policy allows."""
        now = asyncio.get_running_loop().time
        pause, next_fetch = FETCH_PAUSE_SECONDS, now()
        while not (await self.warm() or self._stopping):
            if now() < next_fetch or Use.QUESTIONS not in self._loads:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            await self._fetch()
            pause, next_fetch = min(2 * pause, FETCH_PAUSE_SECONDS_MAX), now() + pause

    async def close(self) -> None:
        """End the threads and the process. Work that is under way fails."""
        self._stopping = True
        if self._resting:
            self._resting.cancel()
        if passages := self._passages:
            self._passages = None
            passages.interrupt()
            await self._on_passage_thread(passages.close)
        for thread in (self._question_thread, self._passage_thread):
            thread.shutdown(wait=False, cancel_futures=True)

    async def _load(self, folder: Path) -> None:
        """Load the model for questions and start the process for passages, one beside the other."""
        self._passages = passages = PassageProcess(self._model, folder, min(PASSAGE_THREADS, usable_cores()))
        loading: list[asyncio.Future[Any]] = []
        if Use.QUESTIONS in self._loads:
            load = partial(load_encoder, self._model, folder, QUESTION_THREADS, for_questions=True)
            loading.append(asyncio.get_running_loop().run_in_executor(self._question_thread, load))
        if Use.PASSAGES in self._loads:
            loading.append(self._on_passage_thread(passages.start))
        try:
            self._encoder = (await asyncio.gather(*loading))[0]
        except MemoryFault:
            await asyncio.wait(loading)
            await self._on_passage_thread(passages.close)
            raise
        self._rest_later()

    def _on_passage_thread(self, work: Callable[..., T], *args: object) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._passage_thread, work, *args)

    def _rest_later(self) -> None:
        """End the passage process once it has embedded nothing for a while; the next passage starts it again."""
        if self._resting:
            self._resting.cancel()
        if passages := self._passages:
            loop = asyncio.get_running_loop()
            self._resting = loop.call_later(self._rest_seconds, self._on_passage_thread, passages.close)

    def _begin(self, forms: tuple[str, ...]) -> _Question:
        """Start embedding a question on the question thread; raises MemoryFault where it cannot, or too many wait."""
        encoder, started = self._encoder, perf_counter()
        if encoder is None:
            raise MemoryFault(f"embedding a question: {self.status}")
        if self._unfinished >= WAITING_QUESTIONS:
            raise MemoryFault(f"embedding a question: {WAITING_QUESTIONS} others wait for the model")

        def end(done: asyncio.Future[Vectors]) -> None:
            """Count the finished question, and forget one that failed, so that it is tried again."""
            self._unfinished -= 1
            if not done.cancelled():
                self._counts.observe("embed_query", perf_counter() - started)
            if (done.cancelled() or done.exception()) and self._remembered.get(forms) is question:
                del self._remembered[forms]

        work = self._question_thread.submit(encoder.embed, forms)
        self._unfinished += 1
        question = _Question(work, asyncio.wrap_future(work))
        question.vectors.add_done_callback(end)
        return question

    async def _fetch(self) -> None:
        """Install the model on the passage thread; a fault becomes the status."""
        if self._refused and self._refused == self._version(self._refused[0]):
            discard(self._policy, self._refused[0])
        try:
            await self._on_passage_thread(install, self._policy, self._progress)
        except MemoryFault as fault:
            self._say(str(fault))
        except _Stopped:
            return

    def _progress(self, text: str) -> None:
        if self._stopping:
            raise _Stopped
        self.status = text

    def _version(self, folder: Path) -> tuple[Path, int]:
        """The folder and the time of the model's first file, which changes when the model does."""
        try:
            return folder, (folder / self._model.files[0]).stat().st_mtime_ns
        except OSError:
            return folder, 0

    def _say(self, trouble: str) -> None:
        self.status = trouble
        if Use.QUESTIONS in self._loads:  # else who embeds them says so
            log.warning("no embedding model: recall uses words alone", reason=trouble)


def gist(text: str) -> str:
    """
    The beginning and the end of a long question: what it is about stands there, its quotations in between.

    Time grows with length, and a request waits for it.
    """
    if len(text) <= QUESTION_CHARS:
        return text
    half = QUESTION_CHARS // 2
    return f"{text[:half].rsplit(None, 1)[0]} {text[-half:].split(None, 1)[-1]}"


@dataclass(slots=True)
class _Question:
    """A question that is, will be or was embedded."""

    work: Future[Vectors]
    vectors: asyncio.Future[Vectors]
    waiting: int = 0  # requests


class _Stopped(Exception):
    """The proxy stops: a fetch need not go on."""


def usable_cores(quota: Path = QUOTA) -> int:
    """
    Whole cores, at least 1.

    Whoever takes more threads than a container's quota has cores is stopped for the rest of each period, and everything
    else in the container with it, however low its priority.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        allowed, period = quota.read_text().split()
        if allowed != "max":
            cores = min(cores, int(allowed) // int(period))
    return max(cores, 1)
