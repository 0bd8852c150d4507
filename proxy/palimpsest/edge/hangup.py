"""SIGHUP: the operator's sign that the configuration is to be read anew, or that the terminal of the proxy is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

STDERR = 2


class Terminal:
    """The terminal that this process was started in, if it was."""

    def __init__(self) -> None:
        self._was_there = os.isatty(STDERR)

    @property
    def is_gone(self) -> bool:
        """Whether it was closed, which sends a SIGHUP too: then the proxy ends, as any program does."""
        return self._was_there and not os.isatty(STDERR)


@contextmanager
def on_hangup(reload: Callable[[], Awaitable[object]]) -> Iterator[None]:
    """Call this for each SIGHUP; outside the main thread, and where there is no such signal, nothing changes."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "SIGHUP"):
        yield
        return
    loop, running, terminal = asyncio.get_running_loop(), set[asyncio.Task[object]](), Terminal()

    async def work() -> object:
        return await reload()

    def begin() -> None:
        if terminal.is_gone:
            signal.raise_signal(signal.SIGTERM)
            return
        task = loop.create_task(work())
        running.add(task)
        task.add_done_callback(running.discard)

    before = signal.signal(signal.SIGHUP, lambda _signal, _frame: loop.call_soon_threadsafe(begin))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
