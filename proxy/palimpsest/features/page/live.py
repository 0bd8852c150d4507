"""
The newest turns as a stream of server-sent events, read once a second however many readers there are.

What passes faster than it is shown is counted: each event says how many turns a reader has missed so far, and its id,
which a browser sends when it comes back, from where to count on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from jinja2 import Environment

from palimpsest.edge.admin.paging import MAX_PAGE
from palimpsest.features.page.asking import Answer
from palimpsest.features.page.views import LIVE_TURNS

PERIOD_SECONDS = 1.0
READERS = 40  # at once: each holds a connection
STREAM_SECONDS = 4.0  # a stop of the proxy waits for open streams; a browser asks again
COUNTED_PAGES = 10  # of turns that passed between two looks: more than pass in a second
RETRY = b"retry: 1000\n\n"  # milliseconds until then


class Turns:
    """The turns that one reader, and all with the same rights, may see, as the API lists them."""

    def __init__(self, ask: Callable[..., Awaitable[Answer]], templates: Environment) -> None:
        self._ask = ask
        self._templates = templates

    async def newest(self) -> tuple[Sequence[Mapping[str, Any]], str]:
        """So many as are shown, the newest first, and the cursor to those before."""
        return await self._page({"limit": LIVE_TURNS})

    async def between(self, turn: str, cursor: str) -> int:
        """How many turns behind a cursor are newer than this one, as far as is looked; 0 where it was erased."""
        if (await self._ask("/turns/{turn}", {"turn": turn}, {})).status >= 400:
            return 0
        found = 0
        for _ in range(COUNTED_PAGES):
            listed, cursor = await self._page({"limit": str(MAX_PAGE), "cursor": cursor})
            names = [one["turn"] for one in listed]
            if turn in names or not cursor:
                return found + (names.index(turn) if turn in names else 0)
            found += len(names)
        return found

    async def _page(self, given: Mapping[str, str]) -> tuple[Sequence[Mapping[str, Any]], str]:
        answer = await self._ask("/turns", {}, given)
        return (answer.value["turns"], answer.value["next"] or "") if answer.status < 400 else ([], "")

    def rows(self, turns: Sequence[Mapping[str, Any]]) -> str:
        """These turns as HTML."""
        return self._templates.get_template("rows.html").render(turns=turns)

    def missed(self, count: int) -> str:
        """That so many were not shown, as HTML; "" for none."""
        return self._templates.get_template("missed.html").render(count=count) if count else ""


@dataclass(slots=True)
class _Reading:
    """What was read last: the turns, as HTML too, and how many more passed since those that readers saw last."""

    at: float = -PERIOD_SECONDS
    turns: Sequence[str] = ()
    cursor: str = ""
    rows: str = ""
    more: dict[str, int] = field(default_factory=dict)


class Feed:
    """The rows of the newest turns as HTML, for all readers with the same key."""

    def __init__(self) -> None:
        self._readers = 0
        self._latest: dict[str, _Reading] = {}
        self._reading = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        """Whether there are as many readers as may be."""
        return self._readers >= READERS

    async def events(self, key: str, seen: str, turns: Turns) -> AsyncIterator[bytes]:
        """
        An event whenever the rows change, for some seconds.

        Args:
            key: readers with the same share what one of them reads.
            seen: id of the event that the reader had last, or of the newest turn that it saw; "": none.
        """
        self._readers += 1
        newest, _, told = seen.partition(":")
        missed = int(told) if told.isdecimal() and len(told) < 10 else 0
        sent: tuple[str, int] | None = None
        until = monotonic() + STREAM_SECONDS
        try:
            yield RETRY
            while monotonic() < until:
                reading, more = await self._read(key, newest, turns)
                missed += more
                newest = reading.turns[0] if reading.turns else ""
                if (reading.rows, missed) != sent:
                    sent = reading.rows, missed
                    lines = (turns.missed(missed) + reading.rows).splitlines()
                    data = b"".join(b"data: %b\n" % line.encode() for line in lines)
                    yield b"id: %b:%d\n%b\n" % (newest.encode(), missed, data)
                await asyncio.sleep(PERIOD_SECONDS)
        finally:
            self._readers -= 1
            if not self._readers:
                self._latest.clear()

    async def _read(self, key: str, seen: str, turns: Turns) -> tuple[_Reading, int]:
        """What there is now, and how many more turns passed since the one that was seen."""
        async with self._reading:
            reading = self._latest.setdefault(key, _Reading())
            if monotonic() - reading.at >= PERIOD_SECONDS:
                listed, cursor = await turns.newest()
                reading = _Reading(monotonic(), [one["turn"] for one in listed], cursor, turns.rows(listed))
                self._latest[key] = reading
            if not seen or not reading.cursor or seen in reading.turns:
                return reading, 0
            if seen not in reading.more:
                reading.more[seen] = await turns.between(seen, reading.cursor)
            return reading, reading.more[seen]
