"""A wait for a future that is limited in time, and leaves the future as it is."""

from __future__ import annotations

import asyncio
from typing import Any


async def await_for(future: asyncio.Future[Any], seconds: float) -> None:
    """
    Wait until a future is done, but no longer than so many seconds; look at it to see which.

    As `asyncio.wait` for one future, which takes twice the processor time, and each request waits like this twice: for
    memory, and for its commit. The future is neither cancelled nor asked for its result, however the wait ends.
    """
    if future.done():
        return
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def end(_done: asyncio.Future[Any] | None = None) -> None:
        if not over.done():
            over.set_result(None)

    timer = loop.call_later(seconds, end)
    future.add_done_callback(end)
    try:
        await over
    finally:
        timer.cancel()
        future.remove_done_callback(end)
