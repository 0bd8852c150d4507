"""A turn whose request was forwarded before it was read. The answer may end before anybody knows what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from palimpsest.domain import Cost, Turn

Commit = asyncio.Future[Cost | None]
"""The commit of an answer; its result is what the request cost, None where nobody counted."""


class DeferredTurn:
    """
    One turn that is still being read; made by `Archivist.expect`. Call `settle` once, whatever comes of the reading.

    Until then it has its place in the archive's queue, so that no more bytes wait here than may wait there.
    """

    def __init__(self, take: Callable[[Turn | None, bool], None]) -> None:
        self._take = take
        self._turn: Turn | None = None
        self._is_settled = False
        self._waiting: Callable[[], None] | None = None
        self.committed: Commit | None = None  # of an answer that ended before the turn was read

    @property
    def is_dropped(self) -> bool:
        """Whether it was not archived: there was nothing to archive, or it is archived later."""
        return self._is_settled and self._turn is None

    def settle(self, turn: Turn | None, is_lost: bool = False) -> None:
        """Archive the turn, which was read, with its answer; None: there is none, or it was unreadable (`is_lost`)."""
        self._turn, self._is_settled = turn, True
        self._take(turn, is_lost)
        if self._waiting is not None:
            self._waiting()

    def when_read(self, hear: Callable[[Turn | None], Commit]) -> Commit:
        """Hand over the answer when the turn has been read, at once where it has; returns the commit."""
        if self._is_settled:
            return hear(self._turn)
        self.committed = committed = asyncio.get_running_loop().create_future()

        def finish(done: Commit) -> None:
            if not committed.done():
                committed.set_result(done.result())

        self._waiting = lambda: hear(self._turn).add_done_callback(finish)
        return committed
