"""The live stream: an event for each change, one reading for all who look, and a count of what was not shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from palimpsest.features.page.live import READERS, RETRY, Feed

SHOWN = 2  # rows


class Turns:
    """Turns by number, of which so many are newer than at the reading before."""

    def __init__(self, passing: int = 1) -> None:
        self.passing, self.last, self.readings, self.counts = passing, 0, 0, 0

    async def newest(self) -> tuple[Sequence[Mapping[str, Any]], str]:
        self.readings += 1
        self.last += self.passing
        first = max(0, self.last - SHOWN)
        return [{"turn": str(number)} for number in range(self.last, first, -1)], str(first or "")

    async def between(self, turn: str, cursor: str) -> int:
        self.counts += 1
        return int(cursor) - int(turn)

    def rows(self, turns: Sequence[Mapping[str, Any]]) -> str:
        return "\n".join(f"<tr>{one['turn']}</tr>" for one in turns)

    def missed(self, count: int) -> str:
        return f"<tr>missed {count}</tr>\n" if count else ""


async def test_rows_are_sent_when_they_change_and_read_once_for_all() -> None:
    feed, turns = Feed(), Turns()
    both = [feed.events("key", "", turns), feed.events("key", "", turns)]
    assert await asyncio.gather(*map(anext, both)) == [RETRY, RETRY]
    assert await asyncio.gather(*map(anext, both)) == [b"id: 1:0\ndata: <tr>1</tr>\n\n"] * 2
    assert turns.readings == 1
    assert await asyncio.gather(*map(anext, both)) == [b"id: 2:0\ndata: <tr>2</tr>\ndata: <tr>1</tr>\n\n"] * 2
    assert turns.readings == 2
    for one in both:
        await one.aclose()


async def test_what_passes_faster_than_it_is_shown_is_counted_for_each_reader_from_where_it_was() -> None:
    feed, turns = Feed(), Turns(passing=50)
    turns.last = 100
    reader, late = feed.events("key", "90:7", turns), feed.events("key", "100", turns)
    await asyncio.gather(anext(reader), anext(late))
    first, second = await asyncio.gather(anext(reader), anext(late))
    assert b"id: 150:65\ndata: <tr>missed 65</tr>" in first, (
        "60 since its last event, of which 2 are shown, and 7 before"
    )
    assert b"id: 150:48\n" in second
    first, second = await asyncio.gather(anext(reader), anext(late))
    assert (b"id: 200:113\n" in first, b"id: 200:96\n" in second) == (True, True)
    assert turns.counts == 3, "counted once for all who saw the same last"
    for one in (reader, late):
        await one.aclose()


async def test_no_more_readers_than_may_be_and_those_who_leave_make_room() -> None:
    feed, turns = Feed(), Turns()
    readers: list[AsyncIterator[bytes]] = [feed.events("key", "", turns) for _ in range(READERS)]
    await asyncio.gather(*map(anext, readers))
    assert feed.is_full
    await readers[0].aclose()  # type: ignore[attr-defined]
    assert not feed.is_full
    for one in readers[1:]:
        await one.aclose()  # type: ignore[attr-defined]


async def test_a_stream_ends_by_itself_so_that_no_stop_waits_for_a_page() -> None:
    turns = Turns(passing=0)
    assert [event async for event in Feed().events("key", "", turns)] == [RETRY, b"id: :0\n\n"]
