from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from palimpsest.edge.upload import ClientGone, Upload


async def nothing() -> dict[str, Any]:
    raise AssertionError("nobody reads")


async def test_nothing_is_begun_for_a_client_that_has_left_already() -> None:
    upload = Upload(nothing, 100, lambda call: call is None)
    with pytest.raises(ClientGone), upload.attended():
        pytest.fail("begun")


async def test_a_client_that_leaves_afterwards_cancels_nothing() -> None:
    calls: list[Callable[[], object] | None] = []

    def when_left(call: Callable[[], object] | None) -> bool:
        calls.append(call)
        return True

    with Upload(nothing, 100, when_left).attended():
        await asyncio.sleep(0)
    assert calls[-1] is None


async def test_a_cancellation_from_elsewhere_is_no_leaving() -> None:
    async def work() -> None:
        with Upload(nothing, 100, lambda _call: True).attended():
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
