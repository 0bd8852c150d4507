"""A listener that fails, at whatever it is asked, changes nothing of the answer."""

from __future__ import annotations

import pytest
import structlog
from palimpsest.domain import Ending
from palimpsest.domain.ports import Listener
from palimpsest.edge.relay import GuardedListener


class Listens:
    """Holds back the last byte; fails at one thing."""

    def __init__(self, fails_at: str) -> None:
        self._fails_at = fails_at
        self.told: list[str] = []
        self._do("listen")

    def _do(self, what: str) -> None:
        self.told.append(what)
        if what == self._fails_at:
            raise RuntimeError("no")

    def feed(self, data: bytes) -> int:
        self._do("feed")
        return len(data) - 1

    def finish(self, ending: Ending) -> None:
        self._do("finish")

    async def committed(self) -> dict[str, str | int]:
        self._do("committed")
        return {}


@pytest.mark.parametrize(
    ("fails_at", "told"),
    [
        ("listen", []),
        ("feed", ["listen", "feed", "finish", "committed"]),
        ("finish", ["listen", "feed", "feed", "finish"]),
        ("committed", ["listen", "feed", "feed", "finish", "committed"]),
        ("", ["listen", "feed", "feed", "finish", "committed"]),
    ],
)
async def test_listener_that_fails_is_said_and_the_bytes_go_on(fails_at: str, told: list[str]) -> None:
    made: list[Listens] = []

    def listen() -> Listener:
        made.append(Listens(fails_at))
        return made[-1]

    with structlog.testing.capture_logs() as lines:
        guarded = GuardedListener(listen)
        free = [guarded.feed(b"abc") for _ in range(2)]
        guarded.finish(Ending.COMPLETE)
        await guarded.committed()
    assert free == ([3, 3] if fails_at in ("listen", "feed") else [2, 2])
    assert [line["event"] for line in lines] == (["memory failed, the answer goes on"] if fails_at else [])
    assert (made[0].told if made else []) == told
