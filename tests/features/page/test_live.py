"""The live stream: an event for each change, and one reading for all who look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from palimpsest.features.page.live import READERS, RETRY, Feed


async def test_rows_are_sent_when_they_change_and_read_once_for_all() -> None:
    feed, readings = Feed(), 0

    async def read() -> str:
        nonlocal readings
        readings += 1
        return f"<tr>{readings}</tr>\n<tr></tr>"

    both = [feed.events("key", read), feed.events("key", read)]
    assert await asyncio.gather(*map(anext, both)) == [RETRY, RETRY]
    first = await asyncio.gather(*map(anext, both))
    assert first == [b"data: <tr>1</tr>\ndata: <tr></tr>\n\n"] * 2
    assert readings == 1
    second = await asyncio.gather(*map(anext, both))
    assert second == [b"data: <tr>2</tr>\ndata: <tr></tr>\n\n"] * 2
    for one in both:
        await one.aclose()


async def test_no_more_readers_than_may_be_and_those_who_leave_make_room() -> None:
    feed = Feed()

    async def read() -> str:
        return "<tr></tr>"

    readers: list[AsyncIterator[bytes]] = [feed.events("key", read) for _ in range(READERS)]
    await asyncio.gather(*map(anext, readers))
    assert feed.is_full
    await readers[0].aclose()  # type: ignore[attr-defined]
    assert not feed.is_full
    for one in readers[1:]:
        await one.aclose()  # type: ignore[attr-defined]


async def test_a_stream_ends_by_itself_so_that_no_stop_waits_for_a_page() -> None:
    async def read() -> str:
        return "<tr></tr>"

    assert [event async for event in Feed().events("key", read)] == [RETRY, b"data: <tr></tr>\n\n"]
