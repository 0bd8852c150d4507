"""
The archive process from the outside: it reads, writes and indexes turns, so that requests never pay for that.

What is put goes there at once, and is kept here until it is settled. A process that dies is followed by another, which
is given all of that once more, in the same order; what is on the disk already is not written twice. After the first
death another process waits in reserve. Where two die over the same items, the next one is given fewer at a time, until
they are settled; an item over which it dies twice alone is given up.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import Process
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from time import monotonic

import structlog

from palimpsest.domain import Turn
from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.domain.ports import ArchiveCounts
from palimpsest.memory.recording import archive_frames as frames
from palimpsest.memory.recording import write_batch
from palimpsest.settings.policy import Policy

INLINE_BYTES = 256 * 1024  # of memory, packed in a millisecond; more on a thread, while the event loop goes on
DEATHS_ALONE = 2  # over one item; whoever kills processes for want of memory may hit it once
NARROWER = 8  # times fewer items are given to the next process: one of 1,000 is told from the others in four deaths
WIDER = 2  # times more, each time that all of them are settled
HUNG_SECONDS = 60.0  # without a word, while something waits: what is under way takes seconds
LOOK_SECONDS = 5.0  # between looks whether it hangs
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.1, 5.0  # before another, while they end without a word; doubles
CLOSE_SECONDS = 5.0  # to write what it was given last, and to close the database
MODULE = "palimpsest.memory.recording.archive_worker"

STARTING = "the archive process is being started; turns wait in memory"
SILENT = f"the archive process has not answered for {write_batch.STUCK_SECONDS:g} s; turns wait in memory"

log = structlog.get_logger()


class ArchiveProcess:
    """Implements `write_batch.Writer`. Run `write` in a supervised task: it starts the process."""

    def __init__(
        self, policy: Policy, secret: bytes, counts: ArchiveCounts, stuck_seconds: float = write_batch.STUCK_SECONDS
    ) -> None:
        self._policy = policy
        self._secret = secret
        self._counts = counts
        self._waiting: dict[int, write_batch.Item] = {}  # that are not settled, by number, the oldest first
        self._given: frozenset[int] = frozenset()  # those that waited when the process was started
        self._most_out = 0  # items that it is given at a time; 0: all
        self._out: dict[int, None] = {}  # items that it was given and has not settled, in order, where that is limited
        self._unsent: deque[int] = deque()  # those that wait for these
        self._deaths_alone: tuple[int, int] = (-1, 0)  # the item that was out alone last, and deaths over it
        self._has_died = False
        self._reserve: asyncio.Task[_Started] | None = None  # the next process, after the first death
        self._has_spoken = False  # the process that was started last: it did not end before it was sent anything
        self._link: _Link | None = None
        self._state = write_batch.WriterState()
        self._heard_at = monotonic()
        # without a process, or without a word from it, that are no failure yet: one that died is there again sooner,
        # and answers wait for their commits as long as they may
        self._stuck_seconds = stuck_seconds
        self._may_begin = asyncio.Event()
        self._ready = asyncio.Event()
        self.pid: int | None = None

    @property
    def state(self) -> write_batch.WriterState:
        """The last state that the process told; failing, where it has been silent for too long."""
        if (self._link is None or self._waiting) and monotonic() - self._heard_at > self._stuck_seconds:
            trouble = STARTING if self._link is None else SILENT
            return replace(self._state, is_failing=True, troubles=(*self._state.troubles, trouble))
        return self._state

    def begin(self) -> None:
        """Let the process use the database, which is open by now, or takes long."""
        self._may_begin.set()

    async def ready(self) -> None:
        """Return when the process takes turns."""
        await self._ready.wait()

    def put(self, item: write_batch.Item) -> None:
        """Take an item; returns at once."""
        if not self._waiting:
            self._heard_at = monotonic()
        self._waiting[item.number] = item
        if self._link is None:
            return
        if self._most_out:
            self._unsent.append(item.number)
            self._send_more(self._link)
        else:
            self._link.send(item)

    def apply(self, policy: Policy) -> None:
        """Apply another policy to items that are put from now on."""
        self._policy = policy
        if self._link is not None:
            self._link.send(frames.Applied(frames.plain_policy(policy)))

    def close(self) -> None:
        """Note that nothing more will be put: what was is written when `write` is cancelled."""

    async def write(self, report: write_batch.Report) -> None:
        """Run a process, and another when it has ended, forever; raises `MemoryFault`: none could be started."""
        pause_seconds = FIRST_PAUSE_SECONDS
        try:
            while True:
                status = await self._run(await self._next(), report)
                self._has_died = True
                self._counts.fault("archivist")
                log.error(
                    "the archive process has ended, and another takes its place",
                    status=status,
                    items=len(self._waiting),
                )
                if self._has_spoken:
                    pause_seconds = FIRST_PAUSE_SECONDS
                    continue
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, LAST_PAUSE_SECONDS)
        finally:
            if self._reserve is not None:
                await _dismiss(self._reserve)

    async def _next(self) -> _Started:
        """The process in reserve, or a new one."""
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            process, stream, writers = await reserve
            if process.returncode is None:
                return process, stream, writers
            await _end(process, writers)
        return await _start()

    async def _run(self, started: _Started, report: write_batch.Report) -> int | None:
        """Run one process until it ends; its exit status."""
        process, stream, writers = started
        watching = asyncio.create_task(self._watch(process))
        try:
            self.pid = process.pid
            await self._may_begin.wait()
            self._suspect(report)
            self._link = link = _Link(writers[0])
            link.send(frames.Begin(frames.plain_policy(self._policy), self._secret))
            self._out, self._unsent = {}, deque(self._waiting)
            self._send_more(link)
            async for progress in frames.unpacked(stream):
                self._hear(progress, report, link)
        finally:
            watching.cancel()
            if self._link is not None:
                self._link, self._heard_at = None, monotonic()
                link.close()
            await _end(process, writers)
        return process.returncode

    async def _watch(self, process: Process) -> None:
        """Kill a process that hangs."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._link is not None and self._waiting and monotonic() - self._heard_at > HUNG_SECONDS:
                log.error("the archive process hangs and is killed", seconds=HUNG_SECONDS)
                with suppress(ProcessLookupError):
                    process.kill()

    def _hear(self, progress: frames.Progress, report: write_batch.Report, link: _Link) -> None:
        """Take in a report of the process: its state, finished turns, and counts."""
        self._heard_at, self._state, self._has_spoken = monotonic(), progress.state, True
        self._ready.set()
        if self._has_died and self._reserve is None:
            self._reserve = asyncio.create_task(_start())
        for outcome in progress.outcomes:
            del self._waiting[outcome.number]
            self._out.pop(outcome.number, None)
        if self._most_out and not self._out:
            self._most_out *= WIDER
            if self._most_out > len(self._unsent):
                self._most_out = 0
            self._send_more(link)
        if progress.outcomes:
            report(progress.outcomes)
        for name, args in progress.counted:
            try:
                getattr(self._counts, name)(*args)
            except Exception:  # a guard: what is only counted must not keep turns from the archive
                self._counts.fault("answer_counts")
                log.exception("what the archive process counted could not be counted")

    def _send_more(self, link: _Link) -> None:
        """Send what is still to be sent, as much of it as may be out."""
        while self._unsent and (not self._most_out or len(self._out) < self._most_out):
            number = self._unsent.popleft()
            if self._most_out:
                self._out[number] = None
            link.send(self._waiting[number])
        if self._most_out:
            link.flush()

    def _suspect(self, report: write_batch.Report) -> None:
        """Send fewer items at a time where two processes died with the same ones."""
        if not self._has_spoken:
            return
        self._has_spoken = False
        if self._most_out == 1 and self._out:
            self._suspect_alone(next(iter(self._out)), report)
        elif self._out or not self._given.isdisjoint(self._waiting):
            self._most_out = max(1, (len(self._out) or len(self._waiting)) // NARROWER)
        self._given = frozenset(self._waiting)

    def _suspect_alone(self, number: int, report: write_batch.Report) -> None:
        """Give up an item that was sent alone when a process died, if that happened to it before."""
        before, deaths = self._deaths_alone
        self._deaths_alone = number, deaths + 1 if number == before else 1
        if self._deaths_alone[1] >= DEATHS_ALONE:
            item = self._waiting.pop(number)
            log.error("a turn is given up: it makes the archive process fail", turn=item.turn.id)
            report([write_batch.Outcome(number, is_lost=True)])


class _Link:
    """
    What is sent to one process, in order; long items are packed on a thread.

    A request waits for its answer, or another's, for as long as it would wait in the process: one piece costs less.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._open: OrderedDict[str, Turn] = OrderedDict()  # what the process holds, until their answers come
        self._gathered: list[bytes] = []  # requests that wait
        self._gathering: asyncio.TimerHandle | None = None
        self._behind: deque[frames.Frame] = deque()  # long items, and whatever came after them
        self._packing: asyncio.Task[None] | None = None

    def send(self, what: write_batch.Item | frames.Begin | frames.Applied) -> None:
        """Send an item: small ones are gathered for a moment, large ones packed on a thread, in order."""
        frame = self._answer(what) if isinstance(what, write_batch.AnswerItem) else what
        if isinstance(what, write_batch.RequestItem):
            self._open[what.turn.id] = what.turn
            if len(self._open) > frames.OPEN_TURNS:
                self._open.popitem(last=False)
        if self._behind or _size_bytes(frame) > INLINE_BYTES:
            self.flush()
            self._behind.append(frame)
            if self._packing is None:
                self._packing = asyncio.create_task(self._pack())
            return
        self._gathered.append(self._packed(frame))
        if not isinstance(what, write_batch.RequestItem):
            self.flush()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(write_batch.GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Write the small items that were gathered."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._gathered:
            self._write(b"".join(self._gathered))
            self._gathered.clear()

    def close(self) -> None:
        """Write what was gathered, but not what is still being packed, which the next process gets."""
        self.flush()
        if self._packing is not None:
            self._packing.cancel()

    def _write(self, data: bytes) -> None:
        """Write to the process; nothing where it has died: its owner keeps what was not sent."""
        if not self._writer.transport.is_closing():
            with suppress(RuntimeError, OSError):  # uvloop's, of a handle that was closed just now
                self._writer.write(data)

    async def _pack(self) -> None:
        """Pack and write the frames that wait, one after another."""
        try:
            while self._behind:
                frame = await asyncio.to_thread(self._packed, self._behind[0])
                self._write(frame)
                self._behind.popleft()
        finally:
            self._packing = None

    def _packed(self, frame: frames.Frame) -> bytes:
        """The bytes of a frame; of one that cannot be packed, a note that it is lost."""
        try:
            return frames.pack(frame)
        except Exception as failure:  # a guard: one turn that cannot be sent must not take the others with it
            if isinstance(frame, frames.AnswerFrame):
                number, turn_id = frame.answer["number"], frame.turn_id
            elif isinstance(frame, write_batch.Item):
                number, turn_id = frame.number, frame.turn.id
                self._open.pop(turn_id, None)
            else:
                raise
            return frames.pack(frames.Unsent(number, turn_id, type(failure).__name__))

    def _answer(self, item: write_batch.AnswerItem) -> frames.Frame:
        is_known = self._open.pop(item.turn.id, None) is item.turn
        return frames.without_turn(item) if is_known else item


def _size_bytes(frame: frames.Frame) -> int:
    """Memory that a frame takes; 0: it is always small."""
    if isinstance(frame, frames.AnswerFrame):
        return int(frame.answer["size_bytes"])
    if isinstance(frame, write_batch.AnswerItem):
        return frame.size_bytes + (frame.turn.size_bytes or 0)
    return frame.size_bytes if isinstance(frame, write_batch.RequestItem) else 0


_Started = tuple[Process, asyncio.StreamReader, Sequence[asyncio.StreamWriter]]


async def _start() -> _Started:
    """
    Start a process: it, the stream of its reports, and our ends of both socket pairs, sending one first.

    Two socket pairs, one for each direction: whoever dies with something unread breaks off the pair, and what was sent
    must arrive none the less.

    Raises:
        MemoryFault: it cannot be started.
    """
    with faults(OSError, "starting the archive process"), ExitStack() as closing:
        sending, sent = map(closing.enter_context, socket.socketpair())
        hearing, reports = map(closing.enter_context, socket.socketpair())
        given = (sent.fileno(), reports.fileno())
        process = await asyncio.create_subprocess_exec(
            # -P: nothing from the current folder, where anybody may write
            *(sys.executable, "-P", "-m", MODULE, *map(str, given)),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=given,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        )
        _, sender = await asyncio.open_connection(sock=sending.dup())
        stream, hearer = await asyncio.open_connection(sock=hearing.dup())
        return process, stream, (sender, hearer)


async def _end(process: Process, writers: Sequence[asyncio.StreamWriter]) -> None:
    """Close our ends, so that the process writes what it was given, and wait until it ends."""
    for writer in writers:
        writer.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await process.wait()
            return
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _dismiss(reserve: asyncio.Task[_Started]) -> None:
    """End a process in reserve that was given nothing."""
    with suppress(MemoryFault, ProcessLookupError):
        process, _, writers = await reserve
        for writer in writers:
            writer.close()
        process.kill()
        await process.wait()
