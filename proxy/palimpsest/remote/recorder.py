"""
The recording of turns that are brought to memory later: requests as they were sent, and answers as they were heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from palimpsest.core.caller.client_table import Signals
from palimpsest.domain import Ending, Json, RawHeaders
from palimpsest.memory.recording.queue_room import LIMITS
from palimpsest.memory.recording.turn_recorder import TurnRecorder
from palimpsest.memory.timeouts import await_for
from palimpsest.remote.courier import Courier, Cover, Taking
from palimpsest.wire.envelope import seal
from palimpsest.wire.response_tap import ResponseTap

OURS = "x-palimpsest-"
ALSO_TOLD = frozenset({"user-agent", "traceparent"})
TOLD_OF_ANSWERS = (b"content-type", b"content-encoding")


def naming(headers: Mapping[str, str], signals: Signals) -> list[tuple[str, str]]:
    """The headers of a request by which memory tells whose it is, and what it belongs to; none is a credential."""
    names = signals.header_names | ALSO_TOLD
    return [(name, value) for name, value in headers.items() if name in names or name.startswith(OURS)]


class Recorder:
    """Implements `Listener`: hears an answer, and hands the turn to the courier."""

    def __init__(
        self,
        courier: Courier,
        turn: str,
        head: Json,  # of the envelope
        body: bytes,
        wait_seconds: float,  # that the end of the answer waits until the turn was brought
        status: int,  # of the answer; 0: nobody answered
        headers: RawHeaders,
    ) -> None:
        self._courier = courier
        self._turn, self._head, self._body = turn, head, body
        self._wait_seconds = wait_seconds
        self._status = status
        self._headers = [(name, value) for name, value in headers if name.lower() in TOLD_OF_ANSWERS]
        self._tap = ResponseTap(headers, 0)  # for where the answer ends; what it says is read elsewhere
        self._heard = bytearray()
        self._is_too_large = False
        self._taking: Taking | None = None

    def feed(self, data: bytes) -> int:
        self.hear(data)
        return self._tap.feed(data)

    def hear(self, data: bytes) -> None:
        """Keep what was said, up to a limit."""
        self._is_too_large |= len(self._heard) + len(data) > LIMITS.answer_bytes
        if self._is_too_large:
            self._heard.clear()
        else:
            self._heard += data

    def finish(self, ending: Ending) -> None:
        self._taking = self._courier.take(self._turn, self.envelope(ending), self.lane)

    @property
    def lane(self) -> str:
        """Whose turns stay in their order: the tenant's, where it is known here."""
        return str(self._head.get("tenant", ""))

    def envelope(self, ending: Ending) -> bytes:
        ending = Ending.TOO_LARGE if ending is Ending.COMPLETE and self._is_too_large else ending
        heads = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers]
        tail = {"request_bytes": len(self._body), "status": self._status, "answer_headers": heads, "ending": ending}
        return seal(self._head | tail, self._body, bytes(self._heard))

    async def committed(self) -> Mapping[str, str | int]:
        """Wait until the turn is on the disk here, and a moment for it to be brought."""
        if self._taking is not None and (brought := await asyncio.shield(self._taking)) is not None:
            await await_for(brought, self._wait_seconds)
        return {}


class Keeper:
    """
    Implements `Listener` by another one that archives the turn; where that is not done in time, keeps it on this disk.

    So nothing that a client has had to its end is in the memory of this process alone.
    """

    def __init__(self, archives: TurnRecorder, records: Recorder, courier: Courier, turn: str) -> None:
        self._archives, self._records = archives, records
        self._courier, self._turn = courier, turn
        self._ending = Ending.COMPLETE

    def feed(self, data: bytes) -> int:
        self._records.hear(data)
        return self._archives.feed(data)

    def finish(self, ending: Ending) -> None:
        self._ending = ending
        self._archives.finish(ending)

    async def committed(self) -> Mapping[str, str | int]:
        """Wait until the turn is archived, or else is on the disk here."""
        fields = await self._archives.committed()
        if not self._archives.is_kept:
            done: asyncio.Future[Any] = self._archives.commit
            cover = Cover(done, lambda: self._archives.is_kept)
            envelope = self._records.envelope(self._ending)
            await asyncio.shield(self._courier.take(self._turn, envelope, self._records.lane, cover))
        return fields
