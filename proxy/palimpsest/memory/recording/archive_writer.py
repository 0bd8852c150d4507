"""
The archive writer: reads requests and answers for the archive and writes them, all that waits in one transaction.

A fault of the machine is waited for: what cannot be written now is tried again. What itself cannot be stored, however
well the store is, is set aside (`quarantine`), and the rest is written. No tenant waits for the texts of another
(`memory/recording/readers.py`). It runs beside the requests, or in a process of its own
(`memory/recording/archive_process.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, TypeVar

import structlog

from palimpsest.core.archive.records import answer_record, record_of
from palimpsest.core.block.quotation import count_quoted
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.redaction.redaction import is_withheld, redact
from palimpsest.domain import AnswerRecord, Completion, Quarantined, Turn, Usage
from palimpsest.domain.errors import DataFault, MemoryFault
from palimpsest.domain.ports import ArchiveCounts, Clock
from palimpsest.memory.recording.batch import Batch, Result
from palimpsest.memory.recording.readers import SLOW_SECONDS, Readers
from palimpsest.memory.recording.write_batch import (
    GATHER_SECONDS,
    STUCK_SECONDS,
    Item,
    Outcome,
    Report,
    RequestItem,
    WriterState,
)
from palimpsest.store.journal import Journal
from palimpsest.wire.account import account_of

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import Policy

FIRST_RETRY_SECONDS = 0.05  # a lock is gone in milliseconds
LAST_RETRY_SECONDS = 5.0  # a full disk is not
MOST_PAUSE_SECONDS = 0.01  # between transactions, which pause as long as the last one took: what comes shares the next
DIGEST_BYTES = 16  # of what was set aside, so that equal content can be told
BATCH_CHARS = 1024 * 1024  # of one transaction, written in some 100 ms: others wait for it

UNKNOWN = "unknown"  # why a provider read anew what it did

WARMING = "api_key=none"  # whatever a rule might look at

log = structlog.get_logger()

T = TypeVar("T")


class ArchiveWriter:
    """Implements `Writer`. Run `write` in a supervised task."""

    def __init__(
        self, journal: Journal, counts: ArchiveCounts, secret: bytes, clock: Clock, redacts: bool = True
    ) -> None:
        self._journal = journal
        self._counts = counts
        self._secret = secret
        self._clock = clock
        self._clean = self._redacted if redacts else str
        self._readers = Readers[Item, Result](self._read, self._wake_from_thread)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writing_since: float | None = None
        self._pause_until = 0.0  # by `monotonic`
        self._wake = asyncio.Event()
        self._is_set_aside = False
        self._cannot_write = False  # the last attempt was in vain

    @property
    def state(self) -> WriterState:
        """Whether writing fails, the tenants that are held up, and the troubles in words."""
        held_up = frozenset(self._readers.held_up(STUCK_SECONDS))
        is_stuck = self._writing_since is not None and monotonic() - self._writing_since > STUCK_SECONDS
        is_held_up = self._readers.are_light_threads_held_up
        reasons = (
            (self._cannot_write, "turns cannot be written and wait in memory; the log says why"),
            (is_stuck, f"writing turns has taken longer than {STUCK_SECONDS:g} s, and the rest wait in memory"),
            (is_held_up, "slow texts hold up all threads that read turns; longer ones that come now wait in memory"),
            (
                bool(held_up),
                f"a text has been read for the archive for more than {STUCK_SECONDS:g} s; "
                "turns of its conversation wait in memory",
            ),
            (self._is_set_aside, "turns that cannot be stored were set aside since the start; the log says why"),
        )
        is_failing = self._cannot_write or is_stuck or is_held_up
        return WriterState(is_failing, held_up, tuple(words for holds, words in reasons if holds))

    def apply(self, policy: Policy) -> None:
        """Apply another policy to items that are read from now on."""
        self._clean = self._redacted if policy.archive.redact else str

    def put(self, item: Item) -> None:
        """Take an item; returns at once."""
        self._readers.put(item)
        self._wake.set()

    def close(self) -> None:
        """Begin nothing new; what is being read goes on."""
        self._readers.close()

    async def write(self, report: Report) -> None:
        """Write what waits, all of it at once; forever."""
        self._loop = asyncio.get_running_loop()
        await self._warm()
        while True:
            # a thread that is held up is looked after even where nothing else happens
            await self._wait_for_work(SLOW_SECONDS if self._readers.is_busy else None)
            batch = self._collected(Batch())
            while len(batch) and (seconds := self._room_seconds(batch)) > 0:
                await self._wait_for_work(seconds)
                batch = self._collected(batch)
            if not batch.items and not batch.broken:
                continue
            self._writing_since = monotonic()
            done: list[Outcome] = []
            try:
                await self._archive(batch, done)
            except Exception:  # a bug of ours: run again by the supervisor, without what brought it about
                known = {outcome.number for outcome in done}
                lost = [item.number for item in batch.everything if item.number not in known]
                done.extend(Outcome(number, is_lost=True) for number in lost)
                raise
            finally:
                ended = monotonic()
                self._pause_until = ended + min(ended - self._writing_since, MOST_PAUSE_SECONDS)
                self._writing_since = None
                report(done)

    def _room_seconds(self, batch: Batch) -> float:
        """How long others may still join a batch, which began when its first item was collected."""
        pause = self._pause_until - monotonic()
        if batch.chars >= BATCH_CHARS:
            return 0.0
        return pause if batch.heard else max(pause, batch.began_at + GATHER_SECONDS - monotonic())

    def _redacted(self, text: str) -> str:
        """The text without credentials; one that took too long is withheld and counted."""
        cleaned = redact(text)
        if is_withheld(cleaned, text):
            self._counts.fault("redaction")
            log.warning("a text is not stored: it has more possible credentials than can be checked")
        return cleaned

    async def _warm(self) -> None:
        """Compile the rules of redaction, so that the first answer does not wait for that."""
        try:
            await asyncio.to_thread(self._clean, WARMING)
        except Exception:  # a guard: each turn that needs them is set aside with the reason
            self._counts.fault("archivist")
            log.exception("the rules of redaction cannot be loaded")

    async def _wait_for_work(self, seconds: float | None) -> None:
        """Wait until there is work, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    def _wake_from_thread(self) -> None:
        with suppress(RuntimeError):  # the app has ended meanwhile
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._wake.set)

    def _collected(self, batch: Batch) -> Batch:
        """The batch with what has been read by now."""
        self._readers.work()
        for item, result in self._readers.collect(BATCH_CHARS - batch.chars):
            batch.add(item, result)
        if self._readers.has_results:
            self._wake.set()  # for the next batch
        return batch

    def _read(self, item: Item) -> Result:
        """Read an item, which takes time and no I/O: redaction, passages, answers put together."""
        try:
            key = tenant_key(self._secret, item.turn.tenant)
            if isinstance(item, RequestItem):
                return record_of(item.turn, key, self._clean)
            completion = item.wire.reply(item.payloads, item.streamed) if item.payloads else Completion()
            usage = count_usage(self._counts, item.payloads, item.streamed)
            heard = answer_record(item.turn, completion, item.ending, item.at, key, self._clean, usage)
            count_quotations(self._counts, item.turn, heard)
            return heard
        except Exception as failure:  # a guard: one turn that breaks something must not take the others with it
            return failure

    async def _archive(self, batch: Batch, done: list[Outcome]) -> None:
        """Write a batch, or, where one item breaks, all but that; `done` gets what became of each."""
        broken = [(item, self._set_aside(item, "reading", failure)) for item, failure in batch.broken]
        await self._quarantine(broken, done)
        records, heard = [record for _, record in batch.records], [said for _, said in batch.heard]
        try:
            costs = await self._until_written(lambda: self._journal.write(records, heard))
        except Exception as failure:  # a guard, as above
            if len(batch) > 1:
                for half in batch.halves():
                    await self._archive(half, done)
            else:
                await self._quarantine(
                    [(item, self._set_aside(item, "writing", failure)) for item in batch.items], done
                )
            return
        done.extend(Outcome(item.number) for item, _ in batch.records)
        for item, said in batch.heard:
            cost = costs.get(item.turn.id)
            done.append(Outcome(item.number, prompt_tokens=said.answer.prompt_tokens or 0, cost=cost))
            if cost is not None:
                cause = cost.rebuild or UNKNOWN
                self._counts.add("cache_rebuilds", 1, cause)
                self._counts.add("cache_rebuilt_tokens", cost.rebuilt_tokens or 0, cause)

    def _set_aside(self, item: Item, doing: str, failure: Exception) -> Quarantined:
        """Count a turn that cannot be stored, and describe it without its words."""
        turn, self._is_set_aside = item.turn, True
        reason = str(failure) if isinstance(failure, MemoryFault) else f"{doing}: {type(failure).__name__}"
        self._counts.fault("quarantine")
        ids = {"turn": turn.id, "request": turn.request or None}
        log.error("a turn cannot be stored and is set aside", reason=reason, **ids, exc_info=failure)
        said = hashlib.blake2b(key=self._secret[:64], digest_size=DIGEST_BYTES)
        if isinstance(item, RequestItem):
            for new in turn.new:
                said.update(new.fingerprint.full.to_bytes(8, "big"))
            return Quarantined(turn.id, "request", reason, item.chars, said.digest(), self._clock())
        for payload in item.payloads:
            said.update(payload)
        return Quarantined(turn.id, "answer", reason, item.chars, said.digest(), self._clock())

    async def _quarantine(self, broken: Sequence[tuple[Item, Quarantined]], done: list[Outcome]) -> None:
        """List turns that cannot be stored as set aside, and report them as lost."""
        if not broken:
            return
        try:
            await self._until_written(lambda: self._journal.set_aside([said for _, said in broken]))
        except DataFault as fault:
            log.error("the turns that were set aside could not be listed", reason=str(fault))
        done.extend(Outcome(item.number, is_lost=True) for item, _ in broken)

    async def _until_written(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write, again after each fault of the machine; whatever else is raised, as `DataFault`: it never can be."""
        pause = FIRST_RETRY_SECONDS
        while True:
            started = perf_counter()
            try:
                result = await write()
            except DataFault:
                raise
            except MemoryFault as fault:
                self._counts.fault("journal")
                self._cannot_write = True
                log.warning("the journal cannot be written; retrying", reason=str(fault))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)
            else:
                self._cannot_write = False
                self._counts.observe("journal", perf_counter() - started)
                return result


def count_usage(counts: ArchiveCounts, payloads: Sequence[bytes], streamed: bool) -> Usage:
    """Count the tokens of one answer and its prompt, as the provider does; never raises."""
    try:
        account = account_of(payloads, streamed)
        usage = Usage(
            account.input_tokens, account.output_tokens, account.cache_read_tokens, account.cache_write_tokens
        )
        counts.add("prompt_tokens", usage.input_tokens or 0)
        counts.add("cache_read_tokens", usage.cache_read_tokens or 0)
        counts.add("cache_write_tokens", usage.cache_write_tokens or 0)
    except Exception:  # a guard: what is only counted must not keep an answer from the archive
        _failed(counts)
        return Usage()
    return usage


def count_quotations(counts: ArchiveCounts, turn: Turn, heard: AnswerRecord) -> None:
    """Count the passages that a request was shown, and those that its answer quotes; never raises."""
    if turn.block is None or heard.entry is None or turn.is_bare:
        return
    try:
        question = "\n".join(new.message.text for new in turn.new)
        repeated, shown = count_quoted(turn.block.text, heard.entry.text, question)
        counts.add("passages_shown", shown)
        counts.add("passages_quoted", repeated)
    except Exception:  # a guard, as above
        _failed(counts)


def _failed(counts: ArchiveCounts) -> None:
    counts.fault("answer_counts")
    log.exception("an answer could not be counted")
