"""
The archivist: takes requests and answers as they pass, and has them written in the background.

The edge hands over synchronously and goes on; a writer (`memory/recording/archive_writer.py`) writes everything that
waits in one transaction. Nothing here delays a reply but the commit of its own end, and that for `commit_wait_seconds`
at most. While the store fails, turns wait in memory, up to `queue_turns` and `queue_bytes`, and beyond that in the
spool, in order. Only what that cannot take either is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, takewhile
from sys import getsizeof
from time import monotonic

import structlog

from palimpsest.domain import Cost, Ending, RawHeaders, Turn, frozen
from palimpsest.domain.ports import Clock, Counts, Span, Tracer, Wire
from palimpsest.memory.recording.deferred_turn import Commit, DeferredTurn
from palimpsest.memory.recording.queue_room import LIMITS, ArchiveLimits, QueueRoom
from palimpsest.memory.recording.spool import Spool
from palimpsest.memory.recording.turn_recorder import TurnRecorder
from palimpsest.memory.recording.write_batch import AnswerItem, Item, Outcome, RequestItem, Writer
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.tracing import NO_SPAN, NO_TRACER
from palimpsest.wire.message import bytes_of
from palimpsest.wire.response_tap import ResponseTap
from palimpsest.wire.values import chars_of

NO_ANSWER = (Ending.REFUSED, Ending.UNANSWERED)
LAG_SECONDS = 1.0  # that a turn may wait before answers say so: a machine that is not overloaded writes within a tenth
SPOOLED = "turns wait in a file until they can be written; the log says why"

log = structlog.get_logger()


@frozen
class _QueuedItem:
    """A request or an answer that is not on the disk yet."""

    item: Item
    at: float  # by `monotonic`
    span: Span = NO_SPAN  # of an answer; ends with the commit
    commit: Commit | None = None  # where a request waits for it


class Archivist:
    """One per app. Run `write` in a supervised task, and await `drain` before that is cancelled."""

    def __init__(
        self,
        writer: Writer,
        counts: Counts,
        clock: Clock,
        # told how many prompt tokens the upstream counted for a turn
        on_usage: Callable[[Turn, int], None] = lambda turn, prompt_tokens: None,
        on_written: Callable[[], None] = lambda: None,  # called after each transaction
        limits: ArchiveLimits = LIMITS,
        tracer: Tracer = NO_TRACER,
        spool: Spool | None = None,  # takes what finds no room in memory; None: that is lost
    ) -> None:
        self._writer = writer
        self._limits = limits
        self._counts = counts
        self._tracer = tracer
        self._clock = clock
        self._on_usage = on_usage
        self._on_written = on_written
        self.room = QueueRoom(limits, counts)
        self._spool = spool
        self._unanswered: set[str] = set()  # turns that were taken and whose answer is still to come
        self._numbers = count()
        self._taken: dict[int, _QueuedItem] = {}  # by number, the oldest first
        self._commits: dict[str, Commit] = {}  # of answers, by turn: their ends wait for them
        self._idle = asyncio.Event()
        self._idle.set()
        self._lost = 0
        self._is_late = False  # whether a turn has waited too long

    def __repr__(self) -> str:
        return f"<Archivist [{self.room.turns} queued, {len(self._unanswered)} unanswered, {self._lost} lost]>"

    def apply(self, policy: Policy) -> None:
        """Apply another policy."""
        self._writer.apply(policy)
        self._limits = replace(self._limits, commit_wait_seconds=policy.memory.deadline_ms / 1000)

    @property
    def backlog(self) -> int:
        """Requests and answers that were taken and are not on the disk yet."""
        return len(self._taken) + self.room.late_turns + self._spooled

    @property
    def lag_seconds(self) -> float:
        """How long the oldest of them has waited."""
        return monotonic() - next(iter(self._taken.values())).at if self._taken else 0.0

    @property
    def is_failing(self) -> bool:
        """Whether nothing can be written now, or is written much too slowly; answers say so, and do not wait."""
        return self._writer.state.is_failing

    def is_behind(self, tenant: str) -> bool:
        """Whether a tenant's earlier messages are still not on the disk, though they should be."""
        state = self._writer.state
        return state.is_failing or tenant in state.held_up

    def is_uncertain(self, tenant: str, size_bytes: int = 0) -> bool:
        """Whether an earlier turn of this tenant, or the next one, of this size, gets lost if this process ends now."""
        return self.is_behind(tenant) or bool(self._spooled) or not self.room.has_turn(size_bytes) or self._lags(tenant)

    def commit_of(self, turn: str) -> Commit | None:
        """The commit of the answer to a turn; None: it is on the disk, or nothing is known of it."""
        return self._commits.get(turn)

    def newest_commit(self, tenant: str) -> Commit | None:
        """The commit of the newest item of a tenant that waits to be written, and so of all; None: none waits."""
        for number, taken in reversed(self._taken.items()):
            if taken.item.tenant == tenant:
                commit: Commit = taken.commit or asyncio.get_running_loop().create_future()
                self._taken[number] = replace(taken, commit=commit)
                return commit
        return None

    @property
    def troubles(self) -> tuple[str, ...]:
        """What keeps turns from being written, and how many were lost, in words that name nobody."""
        return (*self._writer.state.troubles, *([SPOOLED] if self._spooled else []))

    @property
    def _spooled(self) -> int:
        """Requests and answers that wait in the spool."""
        return len(self._spool) if self._spool else 0

    def _lags(self, tenant: str) -> bool:
        """Whether a turn of this tenant has waited for longer than it should; the log says so, once."""
        due = monotonic() - LAG_SECONDS
        late = {taken.item.tenant for taken in takewhile(lambda taken: taken.at < due, self._taken.values())}
        if late and not self._is_late:
            log.warning("an earlier turn still waits for the disk", seconds=round(self.lag_seconds, 1))
        self._is_late = bool(late)
        return tenant in late

    def note(self, turn: Turn) -> None:
        """Take a request to be written; returns at once."""
        chars, size_bytes = turn.chars, turn.size_bytes
        if chars is None:
            chars = sum(chars_of(new.message.raw) for new in turn.new)
        if size_bytes is None:
            size_bytes = sum(bytes_of(new.message) for new in turn.new)
        item = RequestItem(next(self._numbers), turn, chars, size_bytes)
        if not self._spooled and self.room.reserve_turn(size_bytes):
            self._put(_QueuedItem(item, monotonic()))
        elif not self._spools(item):
            self._lose(1)
            return
        self._unanswered.add(turn.id)

    def expect(self, size_bytes: int) -> DeferredTurn | None:
        """Reserve room for a turn whose request is still being read; None: there is none, and the turn is lost."""
        if not self.room.reserve_late_request(size_bytes):
            self._lose(1)
            return None
        self._idle.clear()
        return DeferredTurn(partial(self._take_late, size_bytes))

    def _take_late(self, size_bytes: int, turn: Turn | None, is_lost: bool) -> None:
        """Take a turn for which room was reserved; None: there is none to write."""
        self.room.release_late_request(size_bytes)
        if turn is not None:
            self.note(turn)
        self._lose(int(is_lost))
        self._look_whether_idle()

    def listen(self, turn: Turn | DeferredTurn, wire: Wire, status: int, headers: RawHeaders) -> TurnRecorder:
        """The recorder of the answer to a turn; status 0: nobody answered."""
        return TurnRecorder(self, self._limits, turn, wire, status, headers)

    def take_answer(self, turn: Turn, wire: Wire, ending: Ending, tap: ResponseTap | None = None) -> Commit:
        """Take an answer, which the tap heard, to be written; returns its commit at once, which brings the cost."""
        committed: Commit = asyncio.get_running_loop().create_future()
        if turn.id not in self._unanswered:  # its request was lost
            committed.set_result(None)
            return committed
        self._unanswered.remove(turn.id)
        payloads, streamed = ([], False) if tap is None or ending in NO_ANSWER else tap.payloads()
        if tap is not None and tap.deaf_because:
            self._counts.fault("overhear")
            log.warning("an answer could not be read", reason=tap.deaf_because)
        chars, size_bytes = sum(map(len, payloads)), sum(map(getsizeof, payloads))
        item = AnswerItem(next(self._numbers), turn, chars, size_bytes, wire, payloads, streamed, ending, self._clock())
        self._commits[turn.id] = committed
        if not self._spooled and self.room.reserve_answer(size_bytes):
            self._put(_QueuedItem(item, monotonic(), self._span(turn)))
        elif not self._spools(item):
            self._counts.fault("queue")
            if self._spooled:  # its request is there, before which it cannot be written
                self._committed(turn.id)
            else:
                item = replace(item, chars=0, size_bytes=0, payloads=[], ending=Ending.TOO_LARGE)
                self._put(_QueuedItem(item, monotonic(), self._span(turn)))
        return committed

    async def write(self) -> None:
        """Have what waits written; forever."""
        await self._writer.write(self._done)

    async def drain(self, seconds: float) -> None:
        """Wait until everything that was taken is written, but no longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._lose(self.room.turns + (self._spool.turns if self._spool else 0))
        finally:
            self._writer.close()
            if self._spool is not None:
                self._spool.close()

    def _put(self, taken: _QueuedItem) -> None:
        self._taken[taken.item.number] = taken
        self._idle.clear()
        self._writer.put(taken.item)

    def _span(self, turn: Turn) -> Span:
        """Of the writing of a turn, where its request is traced."""
        if not turn.traceparent:
            return NO_SPAN
        from palimpsest.memory.recording.memory_spans import create_span

        return create_span(self._tracer, turn)

    def _spools(self, item: Item) -> bool:
        """Write an item to the spool. False: that failed, or there is no spool."""
        if self._spool is None or not self._spool.put(item):
            return False
        self.room.set_spooled(self._spool.turns)
        self._idle.clear()
        return True

    def _unspool(self) -> None:
        """Take items from the spool while there is room; half of it stays free for new ones."""
        while self._spooled and self.room.is_half_empty:
            assert self._spool is not None
            lost = self._spool.turns
            try:
                item = self._spool.take()
            except OSError as failure:
                log.error("the spool cannot be read", reason=str(failure))
                self._lose(lost)
                self.room.set_spooled(0)
                for turn in [*self._commits]:
                    self._committed(turn)
                return
            assert item is not None
            self.room.set_spooled(self._spool.turns)
            self.room.reserve_unchecked(int(isinstance(item, RequestItem)), item.size_bytes)
            self._put(_QueuedItem(item, monotonic()))

    def _committed(self, turn: str, cost: Cost | None = None) -> None:
        """Release the end of an answer, which waits for its commit; `cost` is that of its request."""
        commit = self._commits.pop(turn, None)
        if commit is not None and not commit.done():
            commit.set_result(cost)

    def _done(self, outcomes: Sequence[Outcome]) -> None:
        """Release the ends of answers, written or not, and the room that they took."""
        turns, size_bytes = 0, 0
        for outcome in outcomes:
            taken = self._taken.pop(outcome.number)
            turns += isinstance(taken.item, RequestItem)
            size_bytes += taken.item.size_bytes
            if outcome.is_lost:
                taken.span.fail("set_aside")
                self._lose(1)
            taken.span.end()
            if taken.commit is not None and not taken.commit.done():
                taken.commit.set_result(None)
            if isinstance(taken.item, AnswerItem):
                self._committed(taken.item.turn.id, outcome.cost)
            if outcome.prompt_tokens:
                self._report(taken.item.turn, outcome.prompt_tokens)
        self.room.release(turns, size_bytes)
        self._unspool()
        self._look_whether_idle()
        self._on_written()

    def _report(self, turn: Turn, prompt_tokens: int) -> None:
        """Report the tokens that a provider counted."""
        try:
            self._on_usage(turn, prompt_tokens)
        except Exception:  # a guard: whoever counts tokens must not stop the archive
            self._counts.fault("usage")
            log.exception("reported usage could not be processed")

    def _look_whether_idle(self) -> None:
        if not self.backlog:
            self._idle.set()

    def _lose(self, turns: int) -> None:
        """Count and log turns that are lost."""
        if turns:
            self._lost += turns
            self._counts.add("turns_lost", turns)
            log.error("turns are lost: they could not be written", turns=turns)
