"""An executor that runs long pure work off the event loop, where every other request would wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import TypeVar

INLINE_BYTES = 64 * 1024  # read in about a millisecond; handing work to a thread costs half of that
LARGE_BYTES = 1024 * 1024  # takes half a second; such work waits for its like, so that a thread is left for the rest

T = TypeVar("T")


class SizedExecutor:
    """Runs functions on the threads of an executor, or at once where they have little to do."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._large = asyncio.Semaphore(1)

    async def run(self, size_bytes: int, function: Callable[..., T], *args: object) -> T:
        """The result of `function(*args)`. `size_bytes`: of the text that it reads, about."""
        if size_bytes <= INLINE_BYTES:
            return function(*args)
        work = partial(function, *args)
        loop = asyncio.get_running_loop()
        if size_bytes <= LARGE_BYTES:
            return await loop.run_in_executor(self._executor, work)
        await self._large.acquire()

        def make_way(_: object) -> None:
            with suppress(RuntimeError):  # the app has ended meanwhile
                loop.call_soon_threadsafe(self._large.release)

        try:
            running = self._executor.submit(work)
        except BaseException:
            self._large.release()
            raise
        running.add_done_callback(make_way)  # who is cancelled leaves its thread at work
        return await asyncio.wrap_future(running)
