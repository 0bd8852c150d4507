"""What runs apart holds up nobody here, and is ended when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest
from palimpsest.upstream.litellm_library import LoopThread

from tests.running import PATIENCE_SECONDS


async def test_what_blocks_there_does_not_block_here() -> None:
    free = threading.Event()

    async def block() -> str:
        assert free.wait(PATIENCE_SECONDS)
        return threading.current_thread().name

    async with LoopThread("elsewhere") as apart:
        blocked = asyncio.create_task(apart.run(block()))
        await asyncio.sleep(0)
        free.set()
        assert await blocked == "elsewhere"


async def test_a_failure_there_is_a_failure_here() -> None:
    async def fail() -> None:
        raise KeyError("x")

    async with LoopThread("elsewhere") as apart:
        with pytest.raises(KeyError):
            await apart.run(fail())


async def test_who_stops_waiting_stops_the_work() -> None:
    stopped = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(PATIENCE_SECONDS)
        finally:
            stopped.set()

    async with LoopThread("elsewhere") as apart:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await apart.run(work())
        assert await asyncio.to_thread(stopped.wait, PATIENCE_SECONDS)


@pytest.mark.parametrize("in_a_step", [False, True])
async def test_a_generator_that_is_given_up_is_stopped_in_mid_wait(in_a_step: bool) -> None:
    ended: list[type[BaseException]] = []

    async def count() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.sleep(PATIENCE_SECONDS)
            yield 2
        except BaseException as cause:
            ended.append(type(cause))
            raise

    async with LoopThread("elsewhere") as apart:
        source = count()
        assert await apart.step(source) == 1
        if in_a_step:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await apart.step(source)
        await apart.close(source)
    assert ended == [asyncio.CancelledError]


async def test_a_generator_that_is_over_says_so() -> None:
    async def nothing() -> AsyncGenerator[int, None]:
        return
        yield 1

    async with LoopThread("elsewhere") as apart:
        source = nothing()
        assert await apart.step(source) is None
        await apart.close(source)


async def test_what_still_runs_at_the_end_is_ended() -> None:
    apart = LoopThread("elsewhere")
    async with apart:
        left = asyncio.create_task(apart.run(asyncio.sleep(PATIENCE_SECONDS)))
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await left
    assert not any(thread.name == "elsewhere" for thread in threading.enumerate())
