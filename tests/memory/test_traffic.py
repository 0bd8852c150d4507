"""Background work gives way to requests."""

from __future__ import annotations

import asyncio

from palimpsest.memory.traffic import QUIET_SECONDS, Traffic


async def test_it_is_quiet_a_moment_after_the_last_request() -> None:
    traffic = Traffic()
    assert traffic.is_quiet
    traffic.begin()
    assert not traffic.is_quiet
    traffic.end()
    assert not traffic.is_quiet
    await asyncio.sleep(QUIET_SECONDS)
    assert traffic.is_quiet


async def test_a_pause_outlasts_the_request_that_comes_within_it() -> None:
    traffic = Traffic()
    waiting = asyncio.create_task(traffic.pause(0.2))
    traffic.begin()
    await asyncio.sleep(0.5)
    traffic.end()
    assert not waiting.done()
    await asyncio.wait_for(waiting, 5)


async def test_a_request_stops_what_gives_way_to_it() -> None:
    traffic, begun, stopped = Traffic(), asyncio.Event(), asyncio.Event()

    async def work() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "done"

    beside = asyncio.create_task(traffic.run_beside(work()))
    await begun.wait()
    traffic.begin()
    assert await beside is None
    assert stopped.is_set()


async def test_work_that_no_request_stops_is_done() -> None:
    async def work() -> str:
        return "done"

    assert await Traffic().run_beside(work()) == "done"


async def test_who_waits_for_work_and_is_cancelled_ends_it() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    beside = asyncio.create_task(Traffic().run_beside(work()))
    await begun.wait()
    beside.cancel()
    await asyncio.wait((beside,))
    await asyncio.wait_for(stopped.wait(), 5)
    assert beside.cancelled()
