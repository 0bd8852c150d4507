"""
Pure work beside the event loop, where there is much of it: every other request waits for what runs on the loop.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import nullcontext
from typing import TypeVar

INLINE_BYTES = 64 * 1024  # read in about a millisecond; handing work to a thread costs half of that
LARGE_BYTES = 1024 * 1024  # takes half a second; such work waits for its like, so that a thread is left for the rest

T = TypeVar("T")


class OffLoop:
    """Runs functions on the threads of an executor, or at once where they have little to do."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._large = asyncio.Semaphore(1)

    async def run(self, size_bytes: int, function: Callable[..., T], *args: object) -> T:
        """
        The result of `function(*args)`.

        Args:
            size_bytes: of the text that it reads, about.
        """
        if size_bytes <= INLINE_BYTES:
            return function(*args)
        work = functools.partial(function, *args)
        async with self._large if size_bytes > LARGE_BYTES else nullcontext():
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
