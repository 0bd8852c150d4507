"""The recorder of one turn's answer: hears it pass, hands it over to be written, and waits a moment for the commit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from palimpsest.core.response_headers import cost_fields
from palimpsest.domain import Ending, RawHeaders, Turn
from palimpsest.domain.ports import Wire
from palimpsest.memory.recording.deferred_turn import Commit, DeferredTurn
from palimpsest.memory.recording.queue_room import ArchiveLimits
from palimpsest.memory.timeouts import await_for
from palimpsest.wire.response_tap import ResponseTap

if TYPE_CHECKING:
    from palimpsest.memory.recording.archivist import Archivist

FIRST_ERROR_STATUS = 400
DENIED = (401, 403)  # nobody vouches for this credential: it makes no tenant


class TurnRecorder:
    """Implements `palimpsest.domain.ports.Listener`; made by `Archivist.listen`."""

    def __init__(
        self,
        archivist: Archivist,
        limits: ArchiveLimits,
        turn: Turn | DeferredTurn,
        wire: Wire,
        status: int,
        headers: RawHeaders,
    ) -> None:
        self._archivist = archivist
        self._turn = turn
        self._wire = wire
        self._failed = Ending.REFUSED if status in DENIED else Ending.UNANSWERED
        has_failed = status == 0 or status >= FIRST_ERROR_STATUS
        self._tap = None if has_failed else ResponseTap(headers, limits.answer_bytes)
        self._open_bytes = 0  # of the queue's room, while the answer goes on
        self._has_room = True
        self._commit_wait_seconds = limits.commit_wait_seconds
        self._commit: Commit | None = None
        self._is_dropped = False  # there is no turn, or none yet

    def __repr__(self) -> str:
        turn = self._turn.id if isinstance(self._turn, Turn) else "late"
        return f"<TurnRecorder {turn} [{self._open_bytes} bytes, {self._tap!r}]>"

    def feed(self, data: bytes) -> int:
        """How many leading bytes may be forwarded now."""
        if self._tap is None:
            return len(data)
        free_bytes = self._tap.feed(data)
        if self._has_room and not self._tap.overflowed:
            self._has_room = self._archivist.room.open_answer(len(data))
            self._open_bytes += len(data) * self._has_room
            if not self._has_room:
                self._tap.stop()
        return free_bytes

    def finish(self, ending: Ending) -> None:
        """Hand over the recorded answer."""
        archivist, turn = self._archivist, self._turn
        if archivist.is_behind(turn.tenant if isinstance(turn, Turn) else ""):  # its commit will not come in time
            self._commit_wait_seconds = 0.0
        if self._tap is None:
            ending = self._failed
        elif ending is Ending.COMPLETE and self._tap.overflowed:
            ending = Ending.TOO_LARGE
        hand_over = partial(self._hand_over, ending)
        self._commit = hand_over(turn) if isinstance(turn, Turn) else turn.when_read(hand_over)

    def _hand_over(self, ending: Ending, turn: Turn | None) -> Commit:
        """The commit; where there is no turn, nothing is written."""
        self._archivist.room.close_answer(self._open_bytes)
        if turn is not None:
            return self._archivist.take_answer(turn, self._wire, ending, self._tap)
        self._is_dropped = True
        nothing: Commit = asyncio.get_running_loop().create_future()
        nothing.set_result(None)
        return nothing

    @property
    def is_kept(self) -> bool:
        """Whether nothing more needs to be done for the turn: it is on the disk, or never will be."""
        return self._commit is not None and self._commit.done() and not self._is_dropped

    @property
    def commit(self) -> Commit:
        """Done when it is known what becomes of the turn; call `finish` before."""
        assert self._commit is not None
        return self._commit

    async def committed(self) -> Mapping[str, str | int]:
        """Wait until the turn is written, at most `commit_wait_seconds`; returns the cost fields if it is."""
        if self._commit is None:
            return {}
        await await_for(self._commit, self._commit_wait_seconds)
        cost = self._commit.result() if self._commit.done() else None
        return cost_fields(cost) if cost else {}
