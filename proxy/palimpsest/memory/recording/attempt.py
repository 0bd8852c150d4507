"""One request on its way through memory, and the requests that were forwarded before they were read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import takewhile

from palimpsest.core.decision import Decision
from palimpsest.domain import Block, Note, Turn
from palimpsest.memory.recording.deferred_turn import DeferredTurn
from palimpsest.memory.request.arrival import Arrival


@dataclass(slots=True)
class Attempt:
    """One request on its way through memory."""

    arrival: Arrival
    deadline: float  # by the event loop's clock; then nothing more is looked for
    created_at: float  # Unix seconds
    turn_id: str
    compacted: tuple[Block, ...] = ()  # what stands in it for items of ours
    turn: Turn | None = None  # as what it is archived, once that is known
    decision: Decision | None = None  # once there is one
    was_forwarded: bool = False  # as the client sent it, because the deadline passed, or elsewhere
    bare_note: Note = Note.DEADLINE  # why that is so
    late: DeferredTurn | None = None  # and this takes its turn, when that has been read
    traceparent: str = ""  # of the request, if it is traced
    # Done when the request need not wait any longer: memory has decided, or the store fails.
    released: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def release(self, _done: object = None) -> None:
        """End the wait for memory, whatever it has by then."""
        if not self.released.done():
            self.released.set_result(None)

    @property
    def is_from_elsewhere(self) -> bool:
        """Whether it went to its provider from another machine, and is only brought here."""
        return self.bare_note is not Note.DEADLINE


class UnreadAttempts:
    """Requests that were forwarded and are still being read, in the order in which they arrived."""

    def __init__(self) -> None:
        self._openings: dict[DeferredTurn, memoryview] = {}  # how their bodies begin

    def add(self, late: DeferredTurn, body: bytes) -> None:
        """Note a request; a later one that begins with the first half of its body goes on from it."""
        self._openings[late] = memoryview(body)[: len(body) // 2]

    def remove(self, late: DeferredTurn) -> None:
        """Take away a request that has been read, or given up."""
        self._openings.pop(late, None)

    def before(self, attempt: Attempt) -> list[DeferredTurn]:
        """Those that arrived earlier than a request, and that it goes on from."""
        earlier = takewhile(lambda item: item[0] is not attempt.late, self._openings.items())
        return [late for late, opening in earlier if attempt.arrival.body.startswith(opening)]
