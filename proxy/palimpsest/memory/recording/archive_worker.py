"""
The archive process from the inside: it writes the turns that it is sent, and gives passages their vectors.

It ends when its owner closes the other end of the socket, which it also does by dying; what was sent until then is
written first. Signals are for the owner to handle: Ctrl-C and a stop of the whole service reach this process too.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from palimpsest.domain import Turn
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.word_cache import forget_words
from palimpsest.memory.embedding.embedder import LocalEmbedder, Use
from palimpsest.memory.operation.follower import Follower
from palimpsest.memory.recall.indexing import Indexer
from palimpsest.memory.recording import archive_frames as frames
from palimpsest.memory.recording.archive_writer import ArchiveWriter
from palimpsest.memory.recording.write_batch import AnswerItem, Item, Outcome, RequestItem, WriterState
from palimpsest.memory.supervision import Supervisor
from palimpsest.store.engine.engines import engine_of
from palimpsest.store.journal import Journal
from palimpsest.store.operation import changes
from palimpsest.store.search.derived import Derived
from palimpsest.telemetry import logs

TELL_SECONDS = 0.5  # between words on how it is: well within what the owner takes for silence
DRAIN_SECONDS = 4.0  # for what was sent last; the owner waits a second longer for the end


log = structlog.get_logger()


class RelayedCounts:
    """Calls of counters, until they are sent to the owner. Implements `palimpsest.domain.ports.ArchiveCounts`."""

    def __init__(self) -> None:
        self._calls = deque[tuple[str, tuple[Any, ...]]]()  # threads count, too

    def fault(self, where: str) -> None:
        self._calls.append(("fault", (where,)))

    def observe(self, stage: str, seconds: float) -> None:
        self._calls.append(("observe", (stage, seconds)))

    def add(self, name: str, amount: float, *labels: str) -> None:
        self._calls.append(("add", (name, amount, *labels)))

    def gauge(self, name: str, value: float, *labels: str) -> None:
        """Drop a gauge: the owner sets its own."""

    @property
    def are_any(self) -> bool:
        return bool(self._calls)

    def take(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """Remove and return the calls since the last time."""
        return tuple(self._calls.popleft() for _ in range(len(self._calls)))


class ArchiveWorker:
    """The work of the process, between its first frame and the end of its owner."""

    def __init__(self, begin: frames.Begin, writer: asyncio.StreamWriter) -> None:
        policy = begin.policy
        self._stream = writer
        self._counts = counts = RelayedCounts()
        self._database = engine_of(  # the owner counts where that is replaced
            *(policy.data, policy.archive.synchronous, policy.store.url, policy.store.password_file),
            secret=lambda: begin.secret,
        )
        journal = Journal(self._database)
        self._writer = ArchiveWriter(journal, counts, begin.secret, time.time, policy.archive.redact)
        self._embedder = LocalEmbedder(policy.model, counts, loads=Use.PASSAGES)
        self._indexer = Indexer(Derived(self._database, time.time), self._embedder, counts)
        self._follower = Follower(self._database, counts)
        self._follower.listen(changes.ERASURES, "forgetting", self._forget_words)
        self._supervisor = Supervisor(counts)
        self._open: OrderedDict[str, Turn] = OrderedDict()  # whose answers are still to come
        self._under_way: set[int] = set()  # items that are not settled
        self._idle = asyncio.Event()

    async def run(self, received: AsyncIterator[Any]) -> None:
        """Take frames until the other end is closed, and write what they brought."""
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._database.close)
            ending.push_async_callback(self._embedder.close)
            supervisor = self._supervisor
            ending.push_async_callback(supervisor.stop)
            with suppress(MemoryFault):  # whoever writes tries again, and says why it cannot
                await self._database.open()
            self._report_progress(())
            supervisor.start("archivist", partial(self._writer.write, self._done))
            supervisor.start("follower", self._follower.follow)
            supervisor.start("model", partial(self._indexer.await_model, self._embedder.watch))
            supervisor.start("index", partial(self._indexer.run, lambda: not self._writer.state.is_failing))
            supervisor.start("state", self._tell_on)
            async for frame in received:
                self._take(frame)
                del frame  # words of users, until the next comes
            self._look_whether_idle()
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await self._idle.wait()

    def _take(self, frame: Item | frames.AnswerFrame | frames.Unsent | frames.Applied) -> None:
        """Take in a frame: apply a policy, give up what could not be sent, or put an item to be written."""
        match frame:
            case frames.Applied():
                self._writer.apply(frame.policy)
                logs.configure(frame.policy.log)
                return
            case frames.Unsent():
                self._give_up(frame.number, frame.turn_id, frame.reason)
                return
            case RequestItem():
                self._open[frame.turn.id] = frame.turn
                if len(self._open) > frames.OPEN_TURNS:
                    self._open.popitem(last=False)
                item: Item = frame
            case AnswerItem():
                self._open.pop(frame.turn.id, None)
                item = frame
            case frames.AnswerFrame():
                turn = self._open.pop(frame.turn_id, None)
                if turn is None:
                    self._give_up(frame.answer["number"], frame.turn_id, "its request could not be sent")
                    return
                item = AnswerItem(turn=turn, **frame.answer)
        self._under_way.add(item.number)
        self._idle.clear()
        self._writer.put(item)

    def _give_up(self, number: int, turn_id: str, reason: str) -> None:
        self._counts.fault("quarantine")
        log.error("a turn cannot be handed to the archive and is given up", reason=reason, turn=turn_id)
        self._report_progress((Outcome(number, is_lost=True),))

    def _done(self, outcomes: Sequence[Outcome]) -> None:
        """Report outcomes, and wake the indexer."""
        self._under_way.difference_update(outcome.number for outcome in outcomes)
        self._report_progress(tuple(outcomes))
        self._look_whether_idle()
        self._indexer.wake()

    def _look_whether_idle(self) -> None:
        if not self._under_way:
            self._idle.set()

    def _report_progress(self, outcomes: tuple[Outcome, ...]) -> None:
        self._stream.write(frames.pack(frames.Progress(outcomes, self._state(), self._counts.take())))

    def _state(self) -> WriterState:
        state = self._writer.state
        others = (*self._supervisor.troubles, *self._follower.troubles, *self._indexer.troubles)
        return replace(state, troubles=(*others, *state.troubles))

    async def _tell_on(self) -> None:
        """Report the state while something is under way or has changed; forever."""
        before = None
        while True:
            if self._under_way or self._counts.are_any or before != self._state():
                before = self._state()
                self._report_progress(())
            await asyncio.sleep(TELL_SECONDS)

    async def _forget_words(self) -> None:
        forget_words(())


async def main(sent: socket.socket, reports: socket.socket) -> None:
    """Write the archive for the process that holds the other ends of two socket pairs."""
    gc.freeze()  # what was imported stays: looking through it for garbage is a quarter of a start
    stream, _kept = await asyncio.open_connection(sock=sent)
    _, writer = await asyncio.open_connection(sock=reports)
    received = frames.unpacked(stream)
    async for begin in received:
        logs.configure(begin.policy.log)
        await ArchiveWorker(begin, writer).run(received)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    asyncio.run(main(*(socket.socket(fileno=int(number)) for number in sys.argv[1:])))
