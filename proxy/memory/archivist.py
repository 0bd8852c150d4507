"""
How does what passed become a record? Overhear, journal, then index in the background.

The edge hands over synchronously and goes on; one task writes everything that waits in one transaction, another embeds.
Nothing here delays a reply but the commit of its own end, and that for `commit_wait_ms` at most. While the store fails,
turns wait in memory, up to `queue_turns` and `queue_bytes`; beyond, they are counted as lost. What itself cannot be
stored, however well the store is, is set aside (`quarantine`), and the rest is written. No tenant waits for the texts
of another (`memory/readers.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any

import structlog

from proxy.core.archive.records import heard_of, record_of
from proxy.core.caller.identity import tenant_key
from proxy.core.redaction.redaction import is_withheld, redact
from proxy.domain import Completion, Ending, Heard, RawHeaders, Record, SetAside, Turn
from proxy.errors import DataFault, MemoryFault
from proxy.memory.readers import SLOW_SECONDS, Readers
from proxy.ports import Clock, Counts, Wire
from proxy.store.journal import Journal
from proxy.wire.response_tap import ResponseTap
from proxy.wire.values import chars_of

FIRST_RETRY_SECONDS = 0.05  # a lock is gone in milliseconds
LAST_RETRY_SECONDS = 5.0  # a full disk is not
GATHER_SECONDS = 0.003  # a request waits so long for a fast answer, to be written with it, in half the time
FIRST_ERROR_STATUS = 400
DENIED = (401, 403)  # nobody vouches for this credential: it makes no tenant
DIGEST_BYTES = 16  # of what was set aside, so that equal content can be told
BATCH_CHARS = 1024 * 1024  # of one transaction, written in some 100 ms: others wait for it
STUCK_SECONDS = 5.0  # a text or a transaction that takes longer is said: the largest ones take less

WARMING = "api_key=none"  # whatever a rule might look at

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How much may wait to be written, and for how long an answer waits for it."""

    queue_turns: int = 1000  # so that a stuck disk fills no memory; more count as lost
    queue_bytes: int = 128 * 1024 * 1024  # of these turns and their answers, for the same reason: four of the largest
    answer_bytes: int = 8 * 1024 * 1024  # longest answer that is read whole; of longer ones the beginning is kept
    commit_wait_seconds: float = 0.25  # that the end of an answer waits for its commit: a slow disk is not felt


LIMITS = ArchiveLimits()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, not yet read."""

    turn: Turn
    chars: int

    @property
    def tenant(self) -> str:
        return self.turn.tenant

    @property
    def conversation(self) -> str:
        return self.turn.conversation


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
    chars: int

    @property
    def tenant(self) -> str:
        return self.turn.tenant

    @property
    def conversation(self) -> str:
        return self.turn.conversation


_Item = _Asked | _Ended
_Read = Record | Heard | Exception
"""What became of an item; an exception where it cannot be read."""


@dataclass(slots=True)
class _Batch:
    """What is written in one transaction."""

    records: list[tuple[_Asked, Record]] = field(default_factory=list)
    heard: list[tuple[_Ended, Heard]] = field(default_factory=list)
    broken: list[tuple[_Item, Exception]] = field(default_factory=list)  # what could not be read
    turns: int = 0
    chars: int = 0

    def add(self, item: _Item, result: _Read) -> None:
        self.turns += isinstance(item, _Asked)
        self.chars += item.chars
        if isinstance(result, Exception):
            self.broken.append((item, result))
        elif isinstance(item, _Asked):
            assert isinstance(result, Record)
            self.records.append((item, result))
        else:
            assert isinstance(result, Heard)
            self.heard.append((item, result))

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
        counts: Counts,
        secret: bytes,
        clock: Clock,
        on_usage: Callable[[Turn, int], None] = lambda turn, prompt_tokens: None,
        on_written: Callable[[], None] = lambda: None,
        redacts: bool = True,
        limits: ArchiveLimits = LIMITS,
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
        self._secret = secret
        self._clock = clock
        self._on_usage = on_usage
        self._on_written = on_written
        self._clean = self._redacted if redacts else str
        self._readers = Readers[_Item, _Read](self._read, self._wake_from_thread)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns = 0  # that wait or are being written
        self._chars = 0  # of what waits or is being written
        self._unanswered: set[str] = set()  # turns that were taken and whose answer is still to come
        self._writing = 0  # requests and answers that are being written
        self._writing_since: float | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._lost = 0
        self._is_set_aside = False
        self._cannot_write = False  # the last attempt was in vain

    def __repr__(self) -> str:
        return f"<Archivist [{self._turns} queued, {len(self._unanswered)} unanswered, {self._lost} lost]>"

    @property
    def backlog(self) -> int:
        """Requests and answers that were taken and are not on the disk yet."""
        return len(self._readers) + self._writing

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
                f"a text has been read for the archive for {max(held_up.values(), default=0.0):.0f} s; "
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
        chars = sum(chars_of(new.message.raw) for new in turn.new)
        if self._turns >= self._limits.queue_turns or not self._has_room(chars):
            self._lose(1)
            return
        self._turns += 1
        self._unanswered.add(turn.id)
        self._counts.gauge("queued", self._turns)
        self._put(_Asked(turn, chars))

    def listen(self, turn: Turn, wire: Wire, status: int, headers: RawHeaders) -> Listening:
        """Overhear the answer to a turn; status 0: nobody answered."""
        return Listening(self, self._limits, turn, wire, status, headers)

    def hear(self, turn: Turn, wire: Wire, ear: ResponseTap, ending: Ending) -> asyncio.Future[None]:
        """Take an answer to be written; returns at once. The result comes with its commit."""
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if turn.id not in self._unanswered:  # its request was lost
            committed.set_result(None)
            return committed
        self._unanswered.remove(turn.id)
        has_failed = ending in (Ending.REFUSED, Ending.UNANSWERED)
        payloads, streamed = ([], False) if has_failed else ear.heard()
        if ear.deaf_because and not has_failed:
            self._counts.fault("overhear")
            log.warning("an answer could not be overheard", reason=ear.deaf_because)
        chars = sum(map(len, payloads))
        if not self._has_room(chars):
            self._counts.fault("queue")
            payloads, chars, ending = [], 0, Ending.TOO_LARGE
        self._put(_Ended(turn, wire, payloads, streamed, ending, self._clock(), committed, chars))
        return committed

    async def write(self) -> None:
        """Write what waits, all of it at once; forever."""
        self._loop = asyncio.get_running_loop()
        await self._warm()
        while True:
            # a thread that is held up is looked after even where nothing else happens
            await self._woken(SLOW_SECONDS if self._readers.is_busy else None)
            batch = self._collected(_Batch())
            if batch.turns and not batch.heard:
                await self._woken(GATHER_SECONDS)
                batch = self._collected(batch)
            if not batch.turns and not batch.heard:
                continue
            self._writing_since = monotonic()
            try:
                await self._archive(batch)
            except Exception:  # a bug of ours: run again by the supervisor, without what brought it about
                self._lose(batch.turns)
                raise
            finally:
                self._writing_since = None
                self._writing = 0
                self._turns -= batch.turns
                self._chars -= batch.chars
                self._counts.gauge("queued", self._turns)
            self._on_written()
            if not self._readers:
                self._idle.set()

    def _redacted(self, text: str) -> str:
        cleaned = redact(text)
        if is_withheld(cleaned, text):
            self._counts.fault("redaction")
            log.warning("a text is not stored: it holds more beginnings of credentials than can be looked at")
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

    def _collected(self, batch: _Batch) -> _Batch:
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
            self._lose(self._turns)
        finally:
            self._readers.close()

    def _read(self, item: _Item) -> _Read:
        """Everything that takes time and no I/O: redaction, passages, answers put together."""
        try:
            key = tenant_key(self._secret, item.turn.tenant)
            if isinstance(item, _Asked):
                return record_of(item.turn, key, self._clean)
            completion = item.wire.reply(item.payloads, item.streamed) if item.payloads else Completion()
            return heard_of(item.turn, completion, item.ending, item.at, key, self._clean)
        except Exception as failure:  # a guard: one turn that breaks something must not take the others with it
            return failure

    async def _archive(self, batch: _Batch) -> None:
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
                items: list[_Item] = [item for item, _ in batch.records]
                items += [item for item, _ in batch.heard]
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

    def _set_aside(self, item: _Item, doing: str, failure: Exception) -> SetAside:
        """Count a turn that cannot be stored, and say of it what can be said without its words."""
        turn, self._is_set_aside = item.turn, True
        reason = str(failure) if isinstance(failure, MemoryFault) else f"{doing}: {type(failure).__name__}"
        self._counts.fault("quarantine")
        log.error("a turn cannot be stored and is set aside", reason=reason, turn=turn.id, exc_info=failure)
        self._lose(1)
        said = hashlib.blake2b(key=self._secret[:64], digest_size=DIGEST_BYTES)
        if isinstance(item, _Asked):
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
                self._cannot_write = True
                log.warning("the journal cannot be written, it is tried again", reason=str(fault), turns=self._turns)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)
            else:
                self._cannot_write = False
                self._counts.observe("journal", perf_counter() - started)
                return

    def _has_room(self, chars: int) -> bool:
        return self._chars + chars <= self._limits.queue_bytes

    def _put(self, item: _Item) -> None:
        self._chars += item.chars
        self._readers.put(item)
        self._idle.clear()
        self._wake.set()

    def _lose(self, turns: int) -> None:
        if turns:
            self._lost += turns
            self._counts.turns_lost(turns)
            log.error("turns are lost: they could not be written", turns=turns)


class Listening:
    """Implements `proxy.ports.Listener` for one answer."""

    def __init__(
        self, archivist: Archivist, limits: ArchiveLimits, turn: Turn, wire: Wire, status: int, headers: RawHeaders
    ) -> None:
        self._archivist = archivist
        self._turn = turn
        self._wire = wire
        self._failed = Ending.REFUSED if status in DENIED else Ending.UNANSWERED
        self._has_failed = status == 0 or status >= FIRST_ERROR_STATUS
        self._ear = ResponseTap(headers, limits.answer_bytes)
        self._commit_wait_seconds = limits.commit_wait_seconds

    def feed(self, data: bytes) -> int:
        """How many leading bytes may be forwarded now."""
        return len(data) if self._has_failed else self._ear.feed(data)

    def finish(self, ending: Ending) -> Patience:
        """Hand over what was heard; awaiting the result waits for the commit."""
        if self._has_failed:
            ending = self._failed
        elif ending is Ending.COMPLETE and self._ear.overflowed:
            ending = Ending.TOO_LARGE
        is_behind = self._archivist.is_behind(self._turn.tenant)  # then its commit will not come in time anyway
        seconds = 0.0 if is_behind else self._commit_wait_seconds
        return Patience(self._archivist.hear(self._turn, self._wire, self._ear, ending), seconds)


class Patience:
    """Wait for a commit, but not for ever; need not be awaited."""

    def __init__(self, committed: asyncio.Future[None], seconds: float) -> None:
        self._committed = committed
        self._seconds = seconds

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await asyncio.wait([self._committed], timeout=self._seconds)
