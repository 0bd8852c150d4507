"""Pure work beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from palimpsest.memory.request.sized_executor import INLINE_BYTES, LARGE_BYTES, SizedExecutor

from tests.running import PATIENCE_SECONDS


@pytest.mark.parametrize(("size_bytes", "is_inline"), [(INLINE_BYTES, True), (INLINE_BYTES + 1, False)])
async def test_only_large_work_is_handed_to_a_thread(size_bytes: int, is_inline: bool) -> None:
    with ThreadPoolExecutor(1) as executor:
        thread = await SizedExecutor(executor).run(size_bytes, threading.get_ident)
    assert (thread == threading.get_ident()) is is_inline


async def test_very_large_work_leaves_a_thread_to_the_rest() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        work = SizedExecutor(executor)
        large = [asyncio.create_task(work.run(LARGE_BYTES + 1, free.wait, PATIENCE_SECONDS)) for _ in range(3)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                assert await work.run(INLINE_BYTES + 1, len, "four") == 4
        finally:
            free.set()
        assert await asyncio.gather(*large) == [True] * 3


async def test_very_large_work_that_nobody_waits_for_any_more_still_leaves_a_thread_to_the_rest() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        work = SizedExecutor(executor)
        given_up, large = (
            asyncio.create_task(work.run(LARGE_BYTES + 1, free.wait, PATIENCE_SECONDS)) for _ in range(2)
        )
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                assert await work.run(INLINE_BYTES + 1, len, "four") == 4
        finally:
            free.set()
        assert await large


async def test_very_large_work_that_fails_makes_way_for_the_next() -> None:
    with ThreadPoolExecutor(1) as executor:
        work = SizedExecutor(executor)
        with pytest.raises(ValueError, match="invalid literal"):
            await work.run(LARGE_BYTES + 1, int, "none")
        assert await work.run(LARGE_BYTES + 1, int, "1") == 1
