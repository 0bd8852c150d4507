"""
Threads that read what is to be archived: redaction, passages, answers put together.

One text may take seconds. So light and heavy texts have threads of their own, tenants take turns
(`core/archive/fair_queue`), and a thread that is held up by one text gets a substitute.
What is tiny is read on the event loop instead.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, Protocol, TypeVar

from palimpsest.core.archive.fair_queue import FairQueue

INLINE_CHARS = 8 * 1024  # read in 2 ms; less than that is no worth waking a thread, which costs 0.5 ms where it slept
HEAVY_CHARS = 64 * 1024  # a long message; read in some 50 ms
SLOW_SECONDS = 0.1  # then a thread gets a substitute: well before an answer stops waiting for its commit
LIGHT_THREADS, LIGHT_THREADS_MAX = 1, 6  # more only wait for one another: the interpreter runs one at a time
HEAVY_THREADS, HEAVY_THREADS_MAX = 1, 2  # each of these slows down everything else
MOST_OF_TENANT = 2  # at once, so that no tenant holds up all threads


class Item(Protocol):
    """What is to be read."""

    @property
    def tenant(self) -> str: ...

    @property
    def conversation(self) -> str: ...

    @property
    def chars(self) -> int:
        """How much there is to read, about."""


T = TypeVar("T", bound=Item)
R = TypeVar("R")


@dataclass(slots=True)
class _Lane:
    """Threads for texts of one weight."""

    threads: int
    threads_max: int
    running: int = 0  # threads that exist
    idle: int = 0  # of these
    ready: threading.Condition = field(default_factory=threading.Condition)


class Readers(Generic[T, R]):
    """
    Items in, results out, in order within each conversation. Call every method on one thread, and `close` in the end.

    Args:
        read: makes the result of one item, on any thread; must not raise.
        wake: called on a thread of ours when there is a new result.
    """

    def __init__(self, read: Callable[[T], R], wake: Callable[[], None]) -> None:
        self._read = read
        self._wake = wake
        self._lock = threading.Lock()  # guards all of the following
        self._queue = FairQueue[T](MOST_OF_TENANT)
        self._results: deque[tuple[T, R]] = deque()
        self._reading: dict[int, tuple[T, float]] = {}  # by thread, with the time when it began
        self._is_closed = False
        self._light = _Lane(LIGHT_THREADS, LIGHT_THREADS_MAX, ready=threading.Condition(self._lock))
        self._heavy = _Lane(HEAVY_THREADS, HEAVY_THREADS_MAX, ready=threading.Condition(self._lock))

    def __repr__(self) -> str:
        return f"<Readers [{len(self._queue)} wait, {len(self._reading)} being read, {len(self._results)} read]>"

    def __len__(self) -> int:
        """Items that wait, are being read, or were read and are not collected."""
        with self._lock:
            return len(self._queue) + len(self._reading) + len(self._results)

    @property
    def has_results(self) -> bool:
        return bool(self._results)

    @property
    def is_busy(self) -> bool:
        """Whether something waits or is being read, so that results are to come."""
        with self._lock:
            return bool(self._queue or self._reading)

    def put(self, item: T) -> None:
        with self._lock:
            self._queue.put(item.tenant, item.conversation, item)

    def work(self) -> None:
        """Read tiny texts here and the rest on threads; start more of these where some are held up."""
        room_chars = INLINE_CHARS
        while (item := self._next(lambda item: item.chars <= room_chars)) is not None:  # noqa: B023 - called at once
            room_chars -= item.chars
            self._keep(item, self._read(item))
        with self._lock:
            if not self._queue:  # a thread that wakes for nothing costs as much as reading a short text
                return
            for lane, weighs in ((self._light, _is_light), (self._heavy, _is_heavy)):
                slow = sum(
                    weighs(item) and monotonic() - since > SLOW_SECONDS for item, since in self._reading.values()
                )
                if lane.idle:
                    lane.ready.notify()
                elif lane.running < min(lane.threads + slow, lane.threads_max):
                    lane.running += 1
                    threading.Thread(target=self._run, args=(lane, weighs), name="archivist", daemon=True).start()

    def collect(self, chars: int) -> list[tuple[T, R]]:
        """Remove and return results, light ones first, until they are of so many characters."""
        with self._lock:
            light: deque[tuple[T, R]] = deque()
            heavy: deque[tuple[T, R]] = deque()
            behind = set()  # conversations, so that each stays in order
            for item, result in self._results:
                key = (item.tenant, item.conversation)
                if _is_heavy(item) or key in behind:
                    behind.add(key)
                    heavy.append((item, result))
                else:
                    light.append((item, result))
            collected, self._results = [], light + heavy
            while self._results and chars > 0:
                chars -= self._results[0][0].chars
                collected.append(self._results.popleft())
        return collected

    def held_up(self, seconds: float) -> dict[str, float]:
        """Tenants of texts that have been read for longer than this, with the seconds."""
        now = monotonic()
        with self._lock:
            return {item.tenant: now - since for item, since in self._reading.values() if now - since > seconds}

    @property
    def are_light_threads_held_up(self) -> bool:
        """Whether each thread for light texts, of as many as may be, has been held up by one text."""
        with self._lock:
            light = [since for item, since in self._reading.values() if _is_light(item)]
            return len(light) >= LIGHT_THREADS_MAX and monotonic() - max(light) > SLOW_SECONDS

    def close(self) -> None:
        """Begin nothing new. What is being read goes on, but the end of the process does not wait for it."""
        with self._lock:
            self._is_closed = True
            for lane in (self._light, self._heavy):
                lane.ready.notify_all()

    def _run(self, lane: _Lane, weighs: Callable[[T], bool]) -> None:
        """Read until nothing waits; then wait, or end, where this thread was a substitute."""
        while True:
            with self._lock:
                item = None
                while not self._is_closed and (item := self._queue.take(weighs)) is None:
                    if lane.running > lane.threads:
                        break
                    lane.idle += 1
                    lane.ready.wait()
                    lane.idle -= 1
                if item is None:
                    lane.running -= 1
                    return
                self._reading[threading.get_ident()] = (item, monotonic())
            result = self._read(item)
            self._keep(item, result)
            self._wake()

    def _next(self, is_wanted: Callable[[T], bool]) -> T | None:
        with self._lock:
            return self._queue.take(is_wanted)

    def _keep(self, item: T, result: R) -> None:
        """Keep a result, and release its conversation."""
        with self._lock:
            self._reading.pop(threading.get_ident(), None)
            self._results.append((item, result))
            self._queue.done(item.tenant, item.conversation)


def _is_heavy(item: Item) -> bool:
    return item.chars > HEAVY_CHARS


def _is_light(item: Item) -> bool:
    return not _is_heavy(item)
