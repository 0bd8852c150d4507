"""
The archive process from the outside: it reads, writes and indexes turns, so that requests never pay for that.

What is put goes there at once, and is kept here until it is done with. A process that dies is started again and given
all of that once more, in the same order; what is on the disk already is not written twice. Where it dies again and
again before anything is done with, the oldest item is given up, which may be what kills it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import Process
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from time import monotonic

import structlog

from proxy.domain import Turn
from proxy.errors import faults
from proxy.memory.archive_frames import OPEN_TURNS, AnswerFrame, Applied, Begin, Frame, Told, Unsent, pack, unpacked
from proxy.memory.archive_writer import GATHER_SECONDS, STUCK_SECONDS, Report, WriterState
from proxy.memory.write_batch import AnswerItem, Item, Outcome, RequestItem
from proxy.ports import ArchiveCounts
from proxy.settings.policy import Policy

INLINE_CHARS = 64 * 1024  # packed in half a millisecond; more on a thread, while the event loop goes on
STARTS_IN_VAIN = 3  # then the oldest item is given up; whoever kills processes for want of memory rarely hits so often
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.1, 30.0  # before the start of another: doubles while they end at once
STEADY_SECONDS = 5.0  # a process that has run for so long did not end at once, and another is started without a pause
CLOSE_SECONDS = 5.0  # to write what it was given last, and to close the database
MODULE = "proxy.memory.archive_worker"

STARTING = "the archive process is being started; turns wait in memory"
SILENT = f"the archive process has not answered for {STUCK_SECONDS:g} s; turns wait in memory"

log = structlog.get_logger()


class ArchiveProcess:
    """Implements `proxy.memory.archive_writer.Writer`. Run `write` in a supervised task: it starts the process."""

    def __init__(
        self, policy: Policy, secret: bytes, counts: ArchiveCounts, patience_seconds: float = STUCK_SECONDS
    ) -> None:
        """
        Args:
            patience_seconds: without a process, or without a word from it, that are no failure yet: one that died is
                there again sooner, and answers wait for their commits as long as they may.
        """
        self._policy = policy
        self._secret = secret
        self._counts = counts
        self._waiting: dict[int, Item] = {}  # that are not done with, by number, the oldest first
        self._link: _Link | None = None
        self._state = WriterState()
        self._heard_at = monotonic()
        self._patience_seconds = patience_seconds
        self._may_begin = asyncio.Event()
        self._ready = asyncio.Event()
        self._starts_in_vain = 0  # one behind the other, before anything was done with
        self.pid: int | None = None

    def __repr__(self) -> str:
        return f"<ArchiveProcess {self.pid} [{len(self._waiting)} items]>"

    @property
    def state(self) -> WriterState:
        if (self._link is None or self._waiting) and monotonic() - self._heard_at > self._patience_seconds:
            trouble = STARTING if self._link is None else SILENT
            return replace(self._state, is_failing=True, troubles=(*self._state.troubles, trouble))
        return self._state

    def begin(self) -> None:
        """Let it use the database from now on: it is there, and has been migrated."""
        self._may_begin.set()

    async def ready(self) -> None:
        """Return when the process takes turns."""
        await self._ready.wait()

    def put(self, item: Item) -> None:
        """Take an item; returns at once."""
        if not self._waiting:
            self._heard_at = monotonic()
        self._waiting[item.number] = item
        if self._link is not None:
            self._link.send(item)

    def apply(self, policy: Policy) -> None:
        """Go by another policy: what is put from now on is written by it."""
        self._policy = policy
        if self._link is not None:
            self._link.send(Applied(policy))

    def close(self) -> None:
        """Nothing more will be put: what was is written when `write` is cancelled."""

    async def write(self, report: Report) -> None:
        """
        Run a process, and another when it has ended; forever.

        Raises:
            MemoryFault: none could be started.
        """
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            started = monotonic()
            status = await self._run(report)
            self._counts.fault("archivist")
            log.error("the archive process has ended and is started again", status=status, items=len(self._waiting))
            if monotonic() - started > STEADY_SECONDS:
                pause_seconds = FIRST_PAUSE_SECONDS
                continue
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LAST_PAUSE_SECONDS)

    async def _run(self, report: Report) -> int | None:
        """One process, until it ends; its status."""
        process, stream, writers = await _start()
        try:
            self.pid = process.pid
            await self._may_begin.wait()
            self._lose_what_kills(report)
            self._link = link = _Link(writers[0].write)
            link.send(Begin(self._policy, self._secret))
            for item in [*self._waiting.values()]:
                link.send(item)
            async for told in unpacked(stream):
                self._hear(told, report)
        finally:
            if self._link is not None:
                self._link.flush()
                self._link, self._heard_at = None, monotonic()
            await _end(process, writers)
        return process.returncode

    def _hear(self, told: Told, report: Report) -> None:
        self._heard_at, self._state = monotonic(), told.state
        self._ready.set()
        for name, args in told.counted:
            getattr(self._counts, name)(*args)
        for outcome in told.outcomes:
            del self._waiting[outcome.number]
            self._starts_in_vain = 0
        if told.outcomes:
            report(told.outcomes)

    def _lose_what_kills(self, report: Report) -> None:
        """Give up the oldest item, where several processes were given all of them and got nothing done."""
        if self._starts_in_vain >= STARTS_IN_VAIN:
            number, item = next(iter(self._waiting.items()))
            log.error("a turn is given up: the archive process ends again and again", turn=item.turn.id)
            del self._waiting[number]
            report([Outcome(number, is_lost=True)])
            self._starts_in_vain = 0
        self._starts_in_vain += bool(self._waiting)


class _Link:
    """
    What is sent to one process, in order; long items are packed on a thread.

    A request waits for its answer, or another's, for as long as it would wait in the process: one piece costs less.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._open: OrderedDict[str, Turn] = OrderedDict()  # what the process holds, until their answers come
        self._gathered: list[bytes] = []  # requests that wait
        self._gathering: asyncio.TimerHandle | None = None
        self._behind: deque[Frame] = deque()  # long items, and whatever came after them
        self._packing: asyncio.Task[None] | None = None

    def send(self, what: Item | Begin | Applied) -> None:
        frame = self._answer(what) if isinstance(what, AnswerItem) else what
        if isinstance(what, RequestItem):
            self._open[what.turn.id] = what.turn
            if len(self._open) > OPEN_TURNS:
                self._open.popitem(last=False)
        if self._behind or (isinstance(what, RequestItem | AnswerItem) and what.chars > INLINE_CHARS):
            self.flush()
            self._behind.append(frame)
            if self._packing is None:
                self._packing = asyncio.create_task(self._pack())
            return
        self._gathered.append(self._packed(frame))
        if not isinstance(what, RequestItem):
            self.flush()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Send what waits."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._gathered:
            self._write(b"".join(self._gathered))
            self._gathered.clear()

    async def _pack(self) -> None:
        while self._behind:
            frame = await asyncio.to_thread(self._packed, self._behind[0])
            self._write(frame)
            self._behind.popleft()
        self._packing = None

    def _packed(self, frame: Frame) -> bytes:
        try:
            return pack(frame)
        except Exception as failure:  # a guard: one turn that cannot be sent must not take the others with it
            if isinstance(frame, RequestItem):
                self._open.pop(frame.turn.id, None)
                return pack(Unsent(frame.number, frame.turn.id, type(failure).__name__))
            if isinstance(frame, AnswerFrame):
                return pack(Unsent(frame.number, frame.turn_id, type(failure).__name__))
            raise

    def _answer(self, item: AnswerItem) -> AnswerFrame:
        turn = item.turn
        is_known = self._open.pop(turn.id, None) is turn
        wire: str = item.wire.__name__  # type: ignore[attr-defined]  # a module
        payloads = tuple(item.payloads)
        known = None if is_known else turn
        return AnswerFrame(
            item.number,
            turn.id,
            known,
            item.chars,
            item.size_bytes,
            wire,
            payloads,
            item.streamed,
            item.ending,
            item.at,
        )


async def _start() -> tuple[Process, asyncio.StreamReader, Sequence[asyncio.StreamWriter]]:
    """
    The process, what it tells, and our ends of both pairs: what is written to the first is sent to it.

    Two socket pairs, one for each direction: whoever dies with something unread breaks off the pair, and what was sent
    must arrive none the less.

    Raises:
        MemoryFault: it cannot be started.
    """
    with faults(OSError, "starting the archive process"), ExitStack() as closing:
        sending, sent = map(closing.enter_context, socket.socketpair())
        hearing, told = map(closing.enter_context, socket.socketpair())
        given = (sent.fileno(), told.fileno())
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", MODULE, *map(str, given)),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=given,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        )
        _, sender = await asyncio.open_connection(sock=sending.dup())
        stream, hearer = await asyncio.open_connection(sock=hearing.dup())
        return process, stream, (sender, hearer)


async def _end(process: Process, writers: Sequence[asyncio.StreamWriter]) -> None:
    """Close our ends, upon which the process writes what it was given, and wait for its end."""
    for writer in writers:
        writer.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await process.wait()
            return
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
