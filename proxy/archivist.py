"""
How does what passed become a record? Overhear, journal, then index in the background.

The edge hands over synchronously and goes on; one task writes everything that waits in one transaction, another embeds.
Nothing here delays a reply but the commit of its own end, and that for `commit_wait_ms` at most. While the store fails,
turns wait in memory, up to `queue_turns`; beyond, they are counted as lost. What itself cannot be stored, however well
the store is, is set aside (`quarantine`), and the rest is written.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import structlog

from proxy.core.identity import tenant_key
from proxy.core.records import heard_of, record_of
from proxy.core.redaction import redact
from proxy.domain import Completion, Ending, Heard, RawHeaders, Record, SetAside, Turn
from proxy.errors import DataFault, MemoryFault
from proxy.policy import ArchivePolicy
from proxy.ports import Clock, Counts, Embedder, Journal, Wire
from proxy.store.derived import Derived
from proxy.wire.overhear import Ear

FIRST_RETRY_SECONDS = 0.05  # a lock is gone in milliseconds
LAST_RETRY_SECONDS = 5.0  # a full disk is not
LEASE_SECONDS = 30.0  # a batch takes a second or two; a worker that died holds it up for so long
LOOK_SECONDS = 5.0  # between looks for passages that another worker or an earlier run left, and for a missing model
GATHER_SECONDS = 0.003  # a request waits so long for a fast answer, to be written with it, in half the time
REFUSING_STATUS = 400
DIGEST_BYTES = 16  # of what was set aside, so that equal content can be told
INLINE_CHARS = 8 * 1024  # read in 2 ms; less than that is no worth waking a thread, which costs 0.5 ms where it slept

WARMING = "api_key=none"  # whatever a rule might look at

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Ended:
    """An answer as it was overheard, not yet read."""

    turn: Turn
    wire: Wire
    payloads: Sequence[bytes]
    streamed: bool
    ending: Ending
    at: float
    committed: asyncio.Future[None]


@dataclass(slots=True)
class _Batch:
    """What is written in one transaction."""

    records: list[Record] = field(default_factory=list)
    heard: list[tuple[_Ended, Heard]] = field(default_factory=list)
    broken: list[SetAside] = field(default_factory=list)  # what could not be read
    turns: int = 0  # that were taken for it

    def __len__(self) -> int:
        return len(self.records) + len(self.heard)

    def halves(self) -> tuple[_Batch, _Batch]:
        """Of two or more; requests stay in front of answers."""
        middle = len(self) // 2
        requests, answers = min(middle, len(self.records)), max(middle - len(self.records), 0)
        return (
            _Batch(self.records[:requests], self.heard[:answers]),
            _Batch(self.records[requests:], self.heard[answers:]),
        )


class Archivist:
    """One per app. Run `write` and `index` in the app's task group, and await `drain` before they are cancelled."""

    def __init__(
        self,
        journal: Journal,
        derived: Derived,
        embedder: Embedder,
        policy: ArchivePolicy,
        counts: Counts,
        secret: bytes,
        clock: Clock,
        on_usage: Callable[[Turn, int], None] = lambda turn, prompt_tokens: None,
    ) -> None:
        """
        Args:
            on_usage: told how many prompt tokens the upstream counted for a turn.
        """
        self._journal = journal
        self._derived = derived
        self._embedder = embedder
        self._policy = policy
        self._counts = counts
        self._secret = secret
        self._clock = clock
        self._on_usage = on_usage
        self._clean = redact if policy.redact else str
        self._waiting: deque[Turn | _Ended] = deque()
        self._turns = 0  # that wait or are being written
        self._unanswered: set[str] = set()  # turns that were taken and whose answer is still to come
        self._writing = 0  # requests and answers that are being written
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._fresh = asyncio.Event()
        self._lost = 0
        self.is_failing = False  # the last attempt to write was in vain; later answers say so
        self._worker = secrets.token_hex(8)
        self._thread = ThreadPoolExecutor(1, "archivist")

    def __repr__(self) -> str:
        return f"<Archivist [{self._turns} queued, {len(self._unanswered)} unanswered, {self._lost} lost]>"

    @property
    def backlog(self) -> int:
        """Requests and answers that were taken and are not on the disk yet."""
        return len(self._waiting) + self._writing

    def note(self, turn: Turn) -> None:
        """Take a request to be written; returns at once."""
        if self._turns >= self._policy.queue_turns:
            self._lose(1)
            return
        self._turns += 1
        self._unanswered.add(turn.id)
        self._counts.gauge("queued", self._turns)
        self._put(turn)

    def listen(self, turn: Turn, wire: Wire, status: int, headers: RawHeaders) -> Listening:
        """Overhear the answer to a turn; status 0: nobody answered."""
        return Listening(self, self._policy, turn, wire, status, headers)

    def hear(self, turn: Turn, wire: Wire, ear: Ear, ending: Ending) -> asyncio.Future[None]:
        """Take an answer to be written; returns at once. The result comes with its commit."""
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if turn.id not in self._unanswered:  # its request was lost
            committed.set_result(None)
            return committed
        self._unanswered.remove(turn.id)
        payloads, streamed = ([], False) if ending is Ending.REFUSED else ear.heard()
        if ear.deaf_because and ending is not Ending.REFUSED:
            self._counts.fault("overhear")
            log.warning("an answer could not be overheard", reason=ear.deaf_because)
        self._put(_Ended(turn, wire, payloads, streamed, ending, self._clock(), committed))
        return committed

    async def write(self) -> None:
        """Write what waits, all of it at once; forever."""
        # the rules of redaction take a third of a second to load: not while the first answer waits for its commit
        await asyncio.get_running_loop().run_in_executor(self._thread, self._clean, WARMING)
        while True:
            await self._wake.wait()
            batch = await self._take(_Batch())
            if not batch.heard:
                with suppress(TimeoutError):
                    async with asyncio.timeout(GATHER_SECONDS):
                        await self._wake.wait()
                    batch = await self._take(batch)
            await self._archive(batch)
            self._writing = 0
            self._turns -= batch.turns
            self._counts.gauge("queued", self._turns)
            self._fresh.set()
            if not self._waiting:
                self._idle.set()

    async def index(self) -> None:
        """Embed what has no vector yet; forever. A rebuild that was begun anywhere goes on here."""
        while True:
            self._fresh.clear()
            try:
                if not self.is_failing:  # turns come first, and nothing else shall make the store look well
                    await self._catch_up()
            except MemoryFault as fault:
                self._counts.fault("index")
                log.warning("indexing failed, it is tried again", reason=str(fault))
            except Exception:  # a guard: a passage that breaks something must not end the indexing of all others
                self._counts.fault("index")
                log.exception("indexing failed, it is tried again")
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._fresh.wait()

    async def _catch_up(self) -> None:
        while await self._derived.rebuild():
            pass
        while self._embedder.ready and await self._embed():
            pass
        self._counts.gauge("pending", await self._journal.pending())

    async def drain(self, seconds: float) -> None:
        """Wait until everything that was taken is written, but no longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._lose(self._turns)
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _take(self, batch: _Batch) -> _Batch:
        """The batch and all that waits."""
        self._wake.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        self._writing += len(taken)
        if sum(map(_size, taken)) <= INLINE_CHARS:
            return self._read(batch, taken)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, batch, taken)

    def _read(self, batch: _Batch, taken: Sequence[Turn | _Ended]) -> _Batch:
        """Everything that takes time and no I/O: redaction, passages, answers put together."""
        for item in taken:
            batch.turns += isinstance(item, Turn)
            try:
                if isinstance(item, Turn):
                    batch.records.append(record_of(item, tenant_key(self._secret, item.tenant), self._clean))
                else:
                    completion = item.wire.reply(item.payloads, item.streamed) if item.payloads else Completion()
                    key = tenant_key(self._secret, item.turn.tenant)
                    batch.heard.append((item, heard_of(item.turn, completion, item.ending, item.at, key, self._clean)))
            except Exception as failure:  # a guard: one turn that breaks something must not take the others with it
                batch.broken.append(self._set_aside(item, "reading", failure))
        return batch

    async def _archive(self, batch: _Batch) -> None:
        """Write all of it, or, where one thing breaks, all but that."""
        await self._quarantine(batch.broken)
        try:
            await self._until_written(lambda: self._journal.write(batch.records, [said for _, said in batch.heard]))
        except Exception as failure:  # a guard, as above
            if len(batch) > 1:
                for half in batch.halves():
                    await self._archive(half)
            else:
                items = [record.turn for record in batch.records] + [ended for ended, _ in batch.heard]
                await self._quarantine([self._set_aside(item, "writing", failure) for item in items])
            return
        for ended, said in batch.heard:
            if not ended.committed.done():
                ended.committed.set_result(None)
            if said.answer.prompt_tokens:
                self._report(ended.turn, said.answer.prompt_tokens)

    def _report(self, turn: Turn, prompt_tokens: int) -> None:
        try:
            self._on_usage(turn, prompt_tokens)
        except Exception:  # a guard: whoever counts tokens must not stop the archive
            self._counts.fault("usage")
            log.exception("reported usage could not be taken in")

    def _set_aside(self, item: Turn | _Ended, doing: str, failure: Exception) -> SetAside:
        """Count a turn that cannot be stored, and say of it what can be said without its words."""
        turn = item if isinstance(item, Turn) else item.turn
        reason = str(failure) if isinstance(failure, MemoryFault) else f"{doing}: {type(failure).__name__}"
        self._counts.fault("quarantine")
        log.error("a turn cannot be stored and is set aside", reason=reason, turn=turn.id, exc_info=failure)
        self._lose(1)
        said = hashlib.blake2b(key=self._secret[:64], digest_size=DIGEST_BYTES)
        if isinstance(item, Turn):
            for new in item.new:
                said.update(new.print.full.to_bytes(8, "big"))
            return SetAside(turn.id, "request", reason, _size(item), said.digest(), self._clock())
        for payload in item.payloads:
            said.update(payload)
        return SetAside(turn.id, "answer", reason, _size(item), said.digest(), self._clock())

    async def _quarantine(self, broken: Sequence[SetAside]) -> None:
        if not broken:
            return
        try:
            await self._until_written(lambda: self._journal.set_aside(broken))
        except DataFault as fault:
            log.error("what was set aside could not even be listed", reason=str(fault))

    async def _until_written(self, write: Callable[[], Awaitable[None]]) -> None:
        """
        Try until it is written: a fault of the machine is waited for.

        Raises:
            DataFault: it can never be written, as is true of whatever else is raised here.
        """
        pause = FIRST_RETRY_SECONDS
        while True:
            started = perf_counter()
            try:
                await write()
            except DataFault:
                raise
            except MemoryFault as fault:
                self._counts.fault("journal")
                self._counts.gauge("store_up", 0)
                self.is_failing = True
                log.warning("the journal cannot be written, it is tried again", reason=str(fault), turns=self._turns)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)
            else:
                self._counts.gauge("store_up", 1)
                self.is_failing = False
                self._counts.observe("journal", perf_counter() - started)
                return

    async def _embed(self) -> bool:
        """One batch; False when nothing waits."""
        embedder = self._embedder
        waiting = await self._derived.claim(self._policy.index_batch, self._worker, LEASE_SECONDS, embedder.name)
        if not waiting:
            return False
        started = perf_counter()
        vectors = await embedder.embed_passages([passage.text for passage in waiting])
        await self._derived.save_vectors(
            embedder.name, {passage.memory: vector for passage, vector in zip(waiting, vectors, strict=True)}
        )
        self._counts.observe("index", perf_counter() - started)
        return True

    def _put(self, item: Turn | _Ended) -> None:
        self._waiting.append(item)
        self._idle.clear()
        self._wake.set()

    def _lose(self, turns: int) -> None:
        if turns:
            self._lost += turns
            self._counts.turns_lost(turns)
            log.error("turns are lost: they could not be written", turns=turns)


def _size(taken: Turn | _Ended) -> int:
    """Characters or bytes that are to be read."""
    if isinstance(taken, _Ended):
        return sum(map(len, taken.payloads))
    return sum(len(new.message.text) + sum(len(call.arguments) for call in new.message.calls) for new in taken.new)


class Listening:
    """Implements `proxy.ports.Listener` for one answer."""

    def __init__(
        self, archivist: Archivist, policy: ArchivePolicy, turn: Turn, wire: Wire, status: int, headers: RawHeaders
    ) -> None:
        self._archivist = archivist
        self._turn = turn
        self._wire = wire
        self._is_refused = status == 0 or status >= REFUSING_STATUS
        self._ear = Ear(headers, policy.answer_bytes)
        self._patience_seconds = policy.commit_wait_ms / 1000

    def feed(self, data: bytes) -> int:
        """How many leading bytes may be forwarded now."""
        return len(data) if self._is_refused else self._ear.feed(data)

    def finish(self, ending: Ending) -> Patience:
        """Hand over what was heard; awaiting the result waits for the commit."""
        if self._is_refused:
            ending = Ending.REFUSED
        elif ending is Ending.COMPLETE and self._ear.overflowed:
            ending = Ending.TOO_LARGE
        return Patience(self._archivist.hear(self._turn, self._wire, self._ear, ending), self._patience_seconds)


class Patience:
    """Wait for a commit, but not for ever; need not be awaited."""

    def __init__(self, committed: asyncio.Future[None], seconds: float) -> None:
        self._committed = committed
        self._seconds = seconds

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await asyncio.wait([self._committed], timeout=self._seconds)
