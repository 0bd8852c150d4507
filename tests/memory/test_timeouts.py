from __future__ import annotations

import asyncio

import pytest
from palimpsest.memory.timeouts import await_for

LONG_SECONDS = 60.0


async def test_a_wait_ends_with_what_it_waits_for() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(await_for(future, LONG_SECONDS))
    await asyncio.sleep(0)
    assert not waiting.done()
    future.set_result("done")
    await waiting


async def test_what_is_done_is_not_waited_for() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    future.set_result("done")
    waiting = await_for(future, LONG_SECONDS)
    with pytest.raises(StopIteration):
        waiting.send(None)


async def test_a_failure_of_what_is_waited_for_is_not_raised() -> None:
    async def work() -> None:
        raise ValueError("broken")

    task = asyncio.create_task(work())
    await await_for(task, LONG_SECONDS)
    assert isinstance(task.exception(), ValueError)


@pytest.mark.parametrize("seconds", [0.01, 0.0, -1.0])
async def test_a_wait_that_is_over_leaves_what_it_waited_for(seconds: float) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    await await_for(future, seconds)
    assert not future.done()
    future.set_result(None)  # nobody is told of it any more
    await asyncio.sleep(0)


async def test_a_wait_that_is_cancelled_cancels_nothing_else() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(await_for(future, LONG_SECONDS))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not future.cancelled()
