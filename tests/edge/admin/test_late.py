"""An application that is made up late: with its first request, or before that where somebody prepares it."""

from __future__ import annotations

from palimpsest.edge.admin.late import LazyApplication
from starlette.types import ASGIApp, Receive, Scope, Send


async def test_it_is_made_once_before_its_first_request_or_with_it() -> None:
    made, asked = 0, 0

    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        nonlocal asked
        asked += 1

    def build() -> ASGIApp:
        nonlocal made
        made += 1
        return application

    async def nothing(*_: object) -> dict[str, str]:
        return {}

    late = LazyApplication(build)
    assert made == 0
    await late.prepare()
    assert (made, asked) == (1, 0)
    for _ in range(2):
        await late({}, nothing, nothing)
    assert (made, asked) == (1, 2)
    await LazyApplication(build)({}, nothing, nothing)
    assert (made, asked) == (2, 3)
