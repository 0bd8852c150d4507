from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import pytest
from palimpsest.edge.draining import ClosingAnswers, Draining
from starlette.types import Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, merge_contextvars
from structlog.testing import capture_logs


@pytest.fixture
def stopped() -> Iterator[asyncio.Event]:
    """Set when a server that handles SIGTERM would have heard of it."""
    event = asyncio.Event()
    handle: Callable[[int, FrameType | None], None] = lambda _signal, _frame: event.set()  # noqa: E731
    before = signal.signal(signal.SIGTERM, handle)
    yield event
    signal.signal(signal.SIGTERM, before)


async def begun(draining: Draining) -> None:
    while not draining.has_begun:  # noqa: ASYNC110 (all there is)
        await asyncio.sleep(0.001)


async def test_a_server_hears_of_its_stop_after_the_drain(stopped: asyncio.Event) -> None:
    draining = Draining(0.05)
    with draining.before_stop():
        assert not draining.has_begun
        os.kill(os.getpid(), signal.SIGTERM)
        await begun(draining)
        assert not stopped.is_set()
        await stopped.wait()


async def test_a_stop_that_meets_a_request_is_not_logged_as_the_request_s() -> None:
    draining = Draining(3600)
    before = signal.signal(signal.SIGTERM, lambda *_: None)

    async def request() -> None:
        bind_contextvars(request="r-1")
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        with draining.before_stop(), capture_logs([merge_contextvars]) as lines:
            await asyncio.create_task(request())
            await begun(draining)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [(line["seconds"], "request" in line) for line in lines] == [(3600, False)]


async def test_further_stops_shorten_no_drain(stopped: asyncio.Event) -> None:
    draining = Draining(3600)
    with draining.before_stop():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
            await begun(draining)
        await asyncio.sleep(0.05)
        assert not stopped.is_set()


async def test_the_servers_own_handler_is_back_afterwards(stopped: asyncio.Event) -> None:
    own = signal.getsignal(signal.SIGTERM)
    with Draining(0).before_stop():
        assert signal.getsignal(signal.SIGTERM) is not own
    assert signal.getsignal(signal.SIGTERM) is own


async def test_nothing_changes_where_no_server_handles_the_signal() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert not callable(before)
    with Draining(0).before_stop():
        assert signal.getsignal(signal.SIGTERM) is before


async def test_nothing_changes_beside_the_main_thread(stopped: asyncio.Event) -> None:
    own, found = signal.getsignal(signal.SIGTERM), []

    async def serve() -> None:
        with Draining(0).before_stop():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert found == [own]


@pytest.mark.parametrize("is_draining", [False, True])
async def test_an_answer_during_the_drain_says_once_that_it_is_the_last_one(is_draining: bool) -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
        await send({"type": "http.response.body", "body": b"all"})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    draining = Draining(0)
    draining.has_begun = is_draining
    await ClosingAnswers(app, draining)({"type": "http"}, receive, send)
    assert sent[0]["headers"] == [(b"x-own", b"1")] + [(b"connection", b"close")] * is_draining
    assert sent[1] == {"type": "http.response.body", "body": b"all"}
