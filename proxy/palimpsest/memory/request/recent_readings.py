"""
The last request of each conversation as it was read, so that the next one is read from where it goes on.

Kept in memory, per process, and only what some newer request has not replaced. It holds texts: `forget` drops all of it
when anything was erased.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from palimpsest.core.reading import Reading
from palimpsest.domain import PersistentList, Speaker, frozen
from palimpsest.domain.ports import Wire
from palimpsest.wire.layout import repeats, same_bytes

MOST_BYTES = 64 * 1024 * 1024  # of one process: some 300 conversations of 80 messages, or 25 of 1,000
OPENING_BYTES = 256  # of a body: requests of a conversation begin alike; what is shorter is read in no time
OF_OPENING = 32  # readings whose bodies begin alike, at most
COMPARED = 4  # of these, the newest are compared with a request that continues none of them whole


@frozen
class Summed:
    """Numbers, one for each message, and their sum."""

    each: PersistentList[int]
    total: int

    @classmethod
    def of(cls, each: Sequence[int]) -> Summed:
        """These numbers, added up."""
        return cls(PersistentList.of(each), sum(each))

    def then(self, kept: int, further: Sequence[int]) -> Summed:
        """A copy with the first numbers kept and others appended."""
        gone = self.total if not kept else sum(self.each[kept:]) if kept < len(self.each) else 0
        return Summed(self.each.then(kept, further), self.total - gone + sum(further))


@frozen
class RecentReading:
    """One request as it was read, with the tokens of each message and of the tools (`TokenCounter.messages`)."""

    turn: str  # its `Turn.id`; "" where it is not archived
    speaker: Speaker
    wire: Wire
    reading: Reading
    encoding: str
    message_tokens: Summed
    tools_tokens: int
    message_bytes: Summed  # of memory that each message takes
    outside_bytes: int  # that what stands beside them takes: tools, for one

    @property
    def size_bytes(self) -> int:
        return len(self.reading.chat.body) + self.outside_bytes + self.message_bytes.total


_Opening = tuple[str, str, bytes]


class RecentReadings:
    """Call every method on the event loop."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self.erasures = 0  # rises with every `forget`: what was begun before must not be remembered
        self._openings: OrderedDict[_Opening, list[RecentReading]] = OrderedDict()  # newest last, both

    def __repr__(self) -> str:
        count = sum(map(len, self._openings.values()))
        return f"<RecentReadings [{count} requests, {self._bytes} bytes]>"

    def find(self, tenant: str, wire: Wire, body: bytes) -> tuple[RecentReading | None, int, bool]:
        """
        The earlier reading that this request continues.

        Returns:
            Also how many bytes both begin with, and whether this one repeats all of the other's list.
        """
        opening = _opening(tenant, wire, body)
        found = self._openings.get(opening, ())
        most, best = 0, None
        for compared, read in enumerate(reversed(found)):
            layout = read.reading.chat.layout
            assert layout is not None
            if repeats(body, layout):
                self._openings.move_to_end(opening)
                return read, layout.last, True
            if compared < COMPARED and (same := same_bytes(body, layout)) > most:
                most, best = same, read
        return best, most, False

    def remember(self, tenant: str, body: bytes, read: RecentReading, repeated: RecentReading | None) -> None:
        """Keep what was read of a request that has a layout. `repeated`: by the new request, as a whole; dropped."""
        if len(body) < OPENING_BYTES:
            return
        opening = _opening(tenant, read.wire, body)
        listed = self._openings.setdefault(opening, [])
        self._openings.move_to_end(opening)
        if repeated:
            self._drop(listed, repeated)
        listed.append(read)
        self._bytes += read.size_bytes
        if len(listed) > OF_OPENING:
            self._drop(listed, listed[0])
        while self._bytes > self._most_bytes:
            oldest, few = next(iter(self._openings.items()))
            self._drop(few, few[0])
            if not few:
                del self._openings[oldest]

    def forget(self) -> None:
        """Drop everything."""
        self.erasures += 1
        self._openings.clear()
        self._bytes = 0

    def _drop(self, listed: list[RecentReading], gone: RecentReading) -> None:
        for at, read in enumerate(listed):
            if read is gone:  # equal ones may be those of another request
                del listed[at]
                self._bytes -= read.size_bytes
                return


def _opening(tenant: str, wire: Wire, body: bytes) -> _Opening:
    return tenant, getattr(wire, "__name__", ""), body[:OPENING_BYTES]
