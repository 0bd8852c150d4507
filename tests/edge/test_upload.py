from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from palimpsest.edge.upload import LARGE_AT_ONCE, SMALL_BYTES, ClientGone, Copies, Upload

from tests.running import PATIENCE_SECONDS


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


GZIP = [(b"content-encoding", b"gzip")]
LIMIT_BYTES = 4 * SMALL_BYTES
SMALL, LARGE, BOMB = (gzip.compress(bytes(size)) for size in (1000, LIMIT_BYTES - 1, 16 * LIMIT_BYTES))


def copies(wait_seconds: float = PATIENCE_SECONDS) -> Copies:
    return Copies(LIMIT_BYTES, wait_seconds)


async def test_what_fits_is_decoded() -> None:
    for sent, size in ((SMALL, 1000), (LARGE, LIMIT_BYTES - 1)):
        async with copies().copy(sent, GZIP) as body:
            assert body == bytes(size)


async def test_what_is_not_compressed_is_as_it_was_sent() -> None:
    async with copies().copy(b"{}", []) as body:
        assert body == b"{}"


@pytest.mark.parametrize(
    ("sent", "encodings"),
    [
        (b"{}", [b"rot13"]),
        (b"{}", [b"gzip"]),
        (zlib.compress(b"{}"), [b"gzip"]),
        (gzip.compress(b"{}"), [b"deflate"]),
        (SMALL[:-1], [b"gzip"]),
        (SMALL + b" ", [b"gzip"]),
        (SMALL, [b"gzip", b"rot13"]),
        (gzip.compress(SMALL), [b"gzip"] * 3),
    ],
    ids=[
        "unknown",
        "not in it",
        "zlib",
        "gzip",
        "cut off",
        "something behind it",
        "one of two unknown",
        "three said, two there",
    ],
)
async def test_what_cannot_be_decoded_as_a_whole_is_not_read(sent: bytes, encodings: list[bytes]) -> None:
    async with copies().copy(sent, [(b"content-encoding", encoding) for encoding in encodings]) as body:
        assert body == b""


async def test_encodings_in_several_headers_are_undone_one_after_the_other() -> None:
    async with copies().copy(gzip.compress(SMALL), GZIP * 2) as body:
        assert body == bytes(1000)


async def test_what_holds_more_than_memory_reads_is_not_decoded() -> None:
    for limit_bytes in (LIMIT_BYTES, 100):
        async with Copies(limit_bytes, PATIENCE_SECONDS).copy(BOMB, GZIP) as body:
            assert body is None


async def test_large_ones_wait_for_their_turn_and_small_ones_do_not() -> None:
    shared, inside, full, leave = copies(), 0, asyncio.Event(), asyncio.Event()

    async def read() -> None:
        nonlocal inside
        async with shared.copy(LARGE, GZIP):
            inside += 1
            if inside == LARGE_AT_ONCE:
                full.set()
            await leave.wait()

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        for _ in range(3 * LARGE_AT_ONCE):
            tasks.create_task(read())
        await full.wait()
        async with shared.copy(SMALL, GZIP) as body:
            assert body is not None and inside == LARGE_AT_ONCE
        leave.set()
    assert inside == 3 * LARGE_AT_ONCE


async def test_who_waits_too_long_is_not_decoded() -> None:
    shared = copies(wait_seconds=0.01)
    async with shared.copy(LARGE, GZIP), shared.copy(LARGE, GZIP), shared.copy(LARGE, GZIP) as body:
        assert body is None
    async with shared.copy(LARGE, GZIP) as body:
        assert body is not None
