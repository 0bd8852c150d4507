"""Open turns: requests that were prepared for somebody else who sends them, until the answer is handed over."""

from __future__ import annotations

from collections import OrderedDict

from palimpsest.domain import Ending, frozen
from palimpsest.domain.ports import Listener, Prepared

MOST = 1_000  # at once; more are answers that nobody will hand over

JSON_HEADERS = ((b"content-type", b"application/json"),)
OK = 200


@frozen
class OpenTurn:
    """A prepared request, and the tenant of whoever had it prepared ("": a program on this machine)."""

    prepared: Prepared
    tenant: str


class OpenTurns:
    """The open turns of one process."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, OpenTurn] = OrderedDict()

    def add(self, turn: str, opened: OpenTurn) -> None:
        """Add a turn that waits for its answer; if there are too many, the oldest is given up."""
        self._open[turn] = opened
        if len(self._open) > MOST:
            _, oldest = self._open.popitem(last=False)
            _end(oldest, b"")

    def remove(self, turn: str, tenant: str) -> OpenTurn | None:
        """Whoever calls this ends the turn. None: no such turn is open for this tenant."""
        opened = self._open.get(turn)
        return self._open.pop(turn) if opened is not None and opened.tenant == tenant else None

    async def answer(self, turn: str, tenant: str, body: bytes) -> bool:
        """Take the answer, a JSON body, and wait until it is written; False: no such turn is open for this tenant."""
        if (opened := self.remove(turn, tenant)) is None:
            return False
        if (listener := _end(opened, body)) is not None:
            await listener.committed()
        return True


def _end(opened: OpenTurn, body: bytes) -> Listener | None:
    """Have the turn archived with its answer, or without one."""
    if opened.prepared.listen is None:
        return None
    listener = opened.prepared.listen(OK if body else 0, JSON_HEADERS)
    listener.feed(body)
    listener.finish(Ending.COMPLETE if body else Ending.CLIENT_GONE)
    return listener
