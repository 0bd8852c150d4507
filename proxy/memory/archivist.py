"""
The archivist: takes requests and answers as they pass, and writes them in the background.

The edge hands over synchronously and goes on; one task writes everything that waits in one transaction.
Nothing here delays a reply but the commit of its own end, and that for `commit_wait_ms` at most. While the store fails,
turns wait in memory, up to `queue_turns` and `queue_bytes`; beyond, they are counted as lost. What itself cannot be
stored, however well the store is, is set aside (`quarantine`), and the rest is written. No tenant waits for the texts
of another (`memory/readers.py`).
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from sys import getsizeof
from time import monotonic, perf_counter

import structlog

from proxy.core.archive.records import heard_of, record_of
from proxy.core.caller.identity import tenant_key
from proxy.core.redaction.redaction import is_withheld, redact
from proxy.domain import Completion, Ending, RawHeaders, SetAside, Turn
from proxy.errors import DataFault, MemoryFault
from proxy.memory.answer_counts import count_answer
from proxy.memory.late_turn import LateTurn
from proxy.memory.memory_spans import create_span
from proxy.memory.queue_room import LIMITS, ArchiveLimits, QueueRoom
from proxy.memory.readers import SLOW_SECONDS, Readers
from proxy.memory.turn_recorder import TurnRecorder
from proxy.memory.write_batch import AnswerItem, Batch, Item, RequestItem, Result
from proxy.ports import Clock, Counts, Tracer, Wire
from proxy.store.journal import Journal
from proxy.tracing import NO_TRACER
from proxy.wire.message import bytes_of
from proxy.wire.response_tap import ResponseTap
from proxy.wire.values import chars_of

FIRST_RETRY_SECONDS = 0.05  # a lock is gone in milliseconds
LAST_RETRY_SECONDS = 5.0  # a full disk is not
GATHER_SECONDS = 0.025  # a request waits so long for a fast answer, to be written with it, in half the time
MOST_PAUSE_SECONDS = 0.01  # between transactions, which pause as long as the last one took: what comes shares the next
NO_ANSWER = (Ending.REFUSED, Ending.UNANSWERED)
DIGEST_BYTES = 16  # of what was set aside, so that equal content can be told
BATCH_CHARS = 1024 * 1024  # of one transaction, written in some 100 ms: others wait for it
STUCK_SECONDS = 5.0  # a text or a transaction that takes longer is said: the largest ones take less

WARMING = "api_key=none"  # whatever a rule might look at

log = structlog.get_logger()


class Archivist:
    """One per app. Run `write` in a supervised task, and await `drain` before that is cancelled."""

    def __init__(
        self,
        journal: Journal,
        counts: Counts,
        secret: bytes,
        clock: Clock,
        on_usage: Callable[[Turn, int], None] = lambda turn, prompt_tokens: None,
        on_written: Callable[[], None] = lambda: None,
        redacts: bool = True,
        limits: ArchiveLimits = LIMITS,
        tracer: Tracer = NO_TRACER,
    ) -> None:
        """
        Args:
            on_usage: told how many prompt tokens the upstream counted for a turn.
            on_written: called after each transaction.
            redacts: whether credentials are replaced before they reach the disk.
        """
        self._journal = journal
        self._limits = limits
        self._counts = counts
        self._tracer = tracer
        self._secret = secret
        self._clock = clock
        self._on_usage = on_usage
        self._on_written = on_written
        self._clean = self._redacted if redacts else str
        self._readers = Readers[Item, Result](self._read, self._wake_from_thread)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.room = QueueRoom(limits, counts)
        self._late_turns = 0  # whose requests were forwarded and are still being read; they have their room
        self._unanswered: set[str] = set()  # turns that were taken and whose answer is still to come
        self._writing = 0  # requests and answers that are being written
        self._writing_since: float | None = None
        self._taken_at: dict[int, float] = {}  # what is not on the disk yet, by id(), the oldest first
        self._pause_until = 0.0  # by `monotonic`
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._lost = 0
        self._is_set_aside = False
        self._cannot_write = False  # the last attempt was in vain

    def __repr__(self) -> str:
        return f"<Archivist [{self.room.turns} queued, {len(self._unanswered)} unanswered, {self._lost} lost]>"

    def apply(self, *, redacts: bool, commit_wait_seconds: float) -> None:
        """Go by another policy; arguments as of the constructor and of `ArchiveLimits`."""
        self._clean = self._redacted if redacts else str
        self._limits = replace(self._limits, commit_wait_seconds=commit_wait_seconds)

    @property
    def backlog(self) -> int:
        """Requests and answers that were taken and are not on the disk yet."""
        return len(self._readers) + self._writing + self._late_turns

    @property
    def lag_seconds(self) -> float:
        """How long the oldest of them has waited."""
        return monotonic() - next(iter(self._taken_at.values())) if self._taken_at else 0.0

    @property
    def is_failing(self) -> bool:
        """Whether nothing can be written now, or is written much too slowly; answers say so, and do not wait."""
        return self._cannot_write or self._is_stuck or self._readers.is_exhausted

    def is_behind(self, tenant: str) -> bool:
        """Whether what this tenant said before is not on the disk though it should be."""
        return self.is_failing or tenant in self._readers.held_up(STUCK_SECONDS)

    @property
    def troubles(self) -> tuple[str, ...]:
        """What keeps turns from the disk, and what was kept from it; in words that name nobody."""
        held_up = self._readers.held_up(STUCK_SECONDS)
        told = (
            (self._cannot_write, "turns cannot be written and wait in memory; the log says why"),
            (self._is_stuck, f"writing turns has taken longer than {STUCK_SECONDS:g} s, and the rest wait in memory"),
            (self._readers.is_exhausted, "slow texts hold up the archive, and turns wait in memory"),
            (
                bool(held_up),
                f"a text has been read for the archive for more than {STUCK_SECONDS:g} s; "
                "turns of its conversation wait in memory",
            ),
            (self._is_set_aside, "turns that cannot be stored were set aside since the start; the log says why"),
        )
        return tuple(words for holds, words in told if holds)

    @property
    def _is_stuck(self) -> bool:
        return self._writing_since is not None and monotonic() - self._writing_since > STUCK_SECONDS

    def note(self, turn: Turn) -> None:
        """Take a request to be written; returns at once."""
        chars, size_bytes = turn.chars, turn.size_bytes
        if chars is None:
            chars = sum(chars_of(new.message.raw) for new in turn.new)
        if size_bytes is None:
            size_bytes = sum(bytes_of(new.message) for new in turn.new)
        if not self.room.take_turn(size_bytes):
            self._lose(1)
            return
        self._unanswered.add(turn.id)
        self._put(RequestItem(turn, chars, size_bytes))

    def expect(self, size_bytes: int) -> LateTurn | None:
        """
        Keep a place for a turn that is still being read; None: there is none left, and the turn counts as lost.

        Args:
            size_bytes: of its request.
        """
        if not self.room.take_turn(size_bytes):
            self._lose(1)
            return None
        self._late_turns += 1
        self._idle.clear()
        return LateTurn(functools.partial(self._take_late, size_bytes))

    def _take_late(self, size_bytes: int, turn: Turn | None, is_lost: bool) -> None:
        """Take a turn that a place was kept for; None: nothing came of it."""
        self._late_turns -= 1
        self.room.give_back(1, size_bytes)
        if turn is not None:
            self.note(turn)
        self._lose(int(is_lost))
        self._look_whether_idle()

    def listen(self, turn: Turn | LateTurn, wire: Wire, status: int, headers: RawHeaders) -> TurnRecorder:
        """The recorder of the answer to a turn; status 0: nobody answered."""
        return TurnRecorder(self, self._limits, turn, wire, status, headers)

    def take_answer(
        self, turn: Turn, wire: Wire, ending: Ending, tap: ResponseTap | None = None
    ) -> asyncio.Future[None]:
        """
        Take an answer to be written; returns at once. The result comes with its commit.

        Args:
            tap: what heard it; None: there was no answer, or one that says nothing.
        """
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if turn.id not in self._unanswered:  # its request was lost
            committed.set_result(None)
            return committed
        self._unanswered.remove(turn.id)
        payloads, streamed = ([], False) if tap is None or ending in NO_ANSWER else tap.heard()
        if tap is not None and tap.deaf_because:
            self._counts.fault("overhear")
            log.warning("an answer could not be read", reason=tap.deaf_because)
        chars, size_bytes = sum(map(len, payloads)), sum(map(getsizeof, payloads))
        if not self.room.take_answer(size_bytes):
            payloads, chars, size_bytes, ending = [], 0, 0, Ending.TOO_LARGE
        span = create_span(self._tracer, turn)
        self._put(AnswerItem(turn, wire, payloads, streamed, ending, self._clock(), committed, chars, size_bytes, span))
        return committed

    async def write(self) -> None:
        """Write what waits, all of it at once; forever."""
        self._loop = asyncio.get_running_loop()
        await self._warm()
        while True:
            # a thread that is held up is looked after even where nothing else happens
            await self._woken(SLOW_SECONDS if self._readers.is_busy else None)
            batch = self._collected(Batch())
            while len(batch) and (seconds := self._room_seconds(batch)) > 0:
                await self._woken(seconds)
                batch = self._collected(batch)
            if not batch.items and not batch.broken:
                continue
            self._writing_since = monotonic()
            try:
                await self._archive(batch)
            except Exception:  # a bug of ours: run again by the supervisor, without what brought it about
                self._lose(batch.turns)
                raise
            finally:
                batch.end_waiting()
                for item in batch.everything:
                    self._taken_at.pop(id(item), None)
                ended = monotonic()
                self._pause_until = ended + min(ended - self._writing_since, MOST_PAUSE_SECONDS)
                self._writing_since = None
                self._writing = 0
                self.room.give_back(batch.turns, batch.size_bytes)
                self._look_whether_idle()
            self._on_written()

    def _room_seconds(self, batch: Batch) -> float:
        """How long others may still join a batch, which began when its first item was collected."""
        pause = self._pause_until - monotonic()
        if batch.chars >= BATCH_CHARS:
            return 0.0
        return pause if batch.heard else max(pause, batch.began_at + GATHER_SECONDS - monotonic())

    def _look_whether_idle(self) -> None:
        if not self.backlog:
            self._idle.set()

    def _redacted(self, text: str) -> str:
        cleaned = redact(text)
        if is_withheld(cleaned, text):
            self._counts.fault("redaction")
            log.warning("a text is not stored: it has more possible credentials than can be checked")
        return cleaned

    async def _warm(self) -> None:
        """The rules of redaction take a moment to compile: not while the first answer waits for its commit."""
        try:
            await asyncio.to_thread(self._clean, WARMING)
        except Exception:  # a guard: each turn that needs them is set aside with the reason
            self._counts.fault("archivist")
            log.exception("the rules of redaction cannot be loaded")

    async def _woken(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    def _wake_from_thread(self) -> None:
        with suppress(RuntimeError):  # the app has ended meanwhile
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._wake.set)

    def _collected(self, batch: Batch) -> Batch:
        """The batch and what has been read by now."""
        self._readers.work()
        for item, result in self._readers.collect(BATCH_CHARS - batch.chars):
            batch.add(item, result)
            self._writing += 1
        if self._readers.has_results:
            self._wake.set()  # for the next batch
        return batch

    async def drain(self, seconds: float) -> None:
        """Wait until everything that was taken is written, but no longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._lose(self.room.turns)
        finally:
            self._readers.close()

    def _read(self, item: Item) -> Result:
        """Everything that takes time and no I/O: redaction, passages, answers put together."""
        try:
            key = tenant_key(self._secret, item.turn.tenant)
            if isinstance(item, RequestItem):
                return record_of(item.turn, key, self._clean)
            completion = item.wire.reply(item.payloads, item.streamed) if item.payloads else Completion()
            heard = heard_of(item.turn, completion, item.ending, item.at, key, self._clean)
            count_answer(self._counts, item.turn, item.payloads, item.streamed, heard)
            return heard
        except Exception as failure:  # a guard: one turn that breaks something must not take the others with it
            return failure

    async def _archive(self, batch: Batch) -> None:
        """Write all of it, or, where one thing breaks, all but that."""
        await self._quarantine([self._set_aside(item, "reading", failure) for item, failure in batch.broken])
        records, heard = [record for _, record in batch.records], [said for _, said in batch.heard]
        try:
            await self._until_written(lambda: self._journal.write(records, heard))
        except Exception as failure:  # a guard, as above
            if len(batch) > 1:
                for half in batch.halves():
                    await self._archive(half)
            else:
                await self._quarantine([self._set_aside(item, "writing", failure) for item in batch.items])
            return
        for ended, said in batch.heard:
            ended.span.end()
            if not ended.committed.done():
                ended.committed.set_result(None)
            if said.answer.prompt_tokens:
                self._report(ended.turn, said.answer.prompt_tokens)

    def _report(self, turn: Turn, prompt_tokens: int) -> None:
        try:
            self._on_usage(turn, prompt_tokens)
        except Exception:  # a guard: whoever counts tokens must not stop the archive
            self._counts.fault("usage")
            log.exception("reported usage could not be processed")

    def _set_aside(self, item: Item, doing: str, failure: Exception) -> SetAside:
        """Count a turn that cannot be stored, and say of it what can be said without its words."""
        turn, self._is_set_aside = item.turn, True
        if isinstance(item, AnswerItem):
            item.span.fail("set_aside")
        reason = str(failure) if isinstance(failure, MemoryFault) else f"{doing}: {type(failure).__name__}"
        self._counts.fault("quarantine")
        ids = {"turn": turn.id, "request": turn.request or None}
        log.error("a turn cannot be stored and is set aside", reason=reason, **ids, exc_info=failure)
        self._lose(1)
        said = hashlib.blake2b(key=self._secret[:64], digest_size=DIGEST_BYTES)
        if isinstance(item, RequestItem):
            for new in turn.new:
                said.update(new.print.full.to_bytes(8, "big"))
            return SetAside(turn.id, "request", reason, item.chars, said.digest(), self._clock())
        for payload in item.payloads:
            said.update(payload)
        return SetAside(turn.id, "answer", reason, item.chars, said.digest(), self._clock())

    async def _quarantine(self, broken: Sequence[SetAside]) -> None:
        if not broken:
            return
        try:
            await self._until_written(lambda: self._journal.set_aside(broken))
        except DataFault as fault:
            log.error("the turns that were set aside could not be listed", reason=str(fault))

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
                self._cannot_write = True
                log.warning("the journal cannot be written; retrying", reason=str(fault), turns=self.room.turns)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)
            else:
                self._cannot_write = False
                self._counts.observe("journal", perf_counter() - started)
                return

    def _put(self, item: Item) -> None:
        self._taken_at[id(item)] = monotonic()
        self._readers.put(item)
        self._idle.clear()
        self._wake.set()

    def _lose(self, turns: int) -> None:
        if turns:
            self._lost += turns
            self._counts.turns_lost(turns)
            log.error("turns are lost: they could not be written", turns=turns)
