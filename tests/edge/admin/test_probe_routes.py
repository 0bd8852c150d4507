"""What probes and monitoring are told."""

from __future__ import annotations

import pytest
from palimpsest.edge.access import Access
from palimpsest.memory.service import MemoryState
from palimpsest.store.engine.sqlite.database import Database

from tests.edge.admin.asking import ACME, ADMIN, LOCAL, PUBLIC, House


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
async def test_being_alive_asks_nobody(home: House, path: str) -> None:
    home.is_draining = True
    home.now = MemoryState("failed", "ready", None)
    assert await home.ask(path, {}) == (200, {"alive": True})


async def test_a_proxy_that_drains_is_not_ready(home: House) -> None:
    home.is_draining = True
    for path in ("/readyz", "/readyz?exclude=store"):
        status, said = await home.ask(path, {})
        assert (status, said["ready"], said["store"]) == (503, False, "ready")
        assert said["reasons"] == ["the proxy is stopping: send requests elsewhere"]


async def test_a_store_that_fails_may_be_left_out_of_what_ready_means(home: House) -> None:
    home.now = MemoryState("failed", "ready", None, ("the store does not answer",))
    assert (await home.ask("/readyz?exclude=other", {}))[0] == 503
    status, said = await home.ask("/readyz?exclude=store", {})
    assert (status, said["ready"], said["store"]) == (200, True, "failed")
    assert said["reasons"] == ["the store does not answer"]


async def test_ready_is_what_memory_says_of_itself(home: House) -> None:
    home.now = MemoryState("ready", "loading", 4, ("the model is being loaded",), 7.26)
    assert await home.ask("/readyz", {}) == (
        200,
        {
            "ready": True,
            "store": "ready",
            "embedder": "loading",
            "pending": 4,
            "pending_seconds": 7.3,
            "reasons": ["the model is being loaded"],
        },
    )
    home.now = MemoryState("failed", "ready", None)
    assert await home.ask("/readyz", {}) == (
        503,
        {
            "ready": False,
            "store": "failed",
            "embedder": "ready",
            "pending": None,
            "pending_seconds": 0.0,
            "reasons": [],
        },
    )


async def test_metrics_are_open_on_loopback_and_the_operators_elsewhere(home: House, house: House) -> None:
    assert "palimpsest_requests" in (await home.ask("/metrics", LOCAL))[1]
    for elsewhere in ({"host": "proxy.example"}, {**LOCAL, "via": "1.1 gate"}, {**LOCAL, "origin": "http://a.example"}):
        assert (await home.ask("/metrics", elsewhere))[0] == 403
    assert (await house.ask("/metrics", {}))[0] == 401
    assert (await house.ask("/metrics", ACME))[0] == 403
    assert "palimpsest_requests" in (await house.ask("/metrics"))[1]
    assert house.headers[b"cache-control"] == b"no-store"


async def test_metrics_need_the_admin_token_where_there_is_one_even_on_loopback(database: Database) -> None:
    house = House(database, Access("t0ken", PUBLIC.keys, is_loopback=True))
    assert (await house.ask("/metrics", LOCAL))[0] == 401
    assert (await house.ask("/metrics", {**ACME, **LOCAL}))[0] == 403
    assert (await house.ask("/metrics", {**ADMIN, **LOCAL}))[0] == 200
