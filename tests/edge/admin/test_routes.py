import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson
import pytest
from starlette.applications import Starlette

from proxy.domain import Candidate, Memory, Message, Query, Reach, Recalled
from proxy.edge.access import Access
from proxy.edge.admin.routes import admin_routes
from proxy.errors import MemoryFault
from proxy.memory.service import MemoryState
from proxy.metrics import Metrics
from proxy.ports import Remembering
from proxy.store.journal import Journal

LOCAL = {"host": "127.0.0.1:8484"}
ACME = {"host": "proxy.example", "authorization": "Bearer acme-key"}
ADMIN = {"host": "proxy.example", "authorization": "Bearer t0ken"}
FOUND = Candidate(Memory(7, 70, "c1", 3, "user", "port 7431", 1.0), 0.5, {"dense": (1, 0.8)})


class OneTurn:
    """A journal with one turn, of tenant acme; it can be broken."""

    broken = False

    async def turn(self, tenant: str | None, conversation: str, number: int | None) -> Mapping[str, Any] | None:
        if self.broken:
            raise MemoryFault("reading a turn: /data/palimpsest.db is corrupt")
        mine = tenant in (None, "acme") and conversation == "c1" and number in (None, 1)
        candidates = [{"occurrence": 70}, {"occurrence": 71}]
        explain = {"event": "append", "candidates": candidates}
        return {"number": 1, "tenant": "acme", "explain": explain} if mine else None

    async def turn_named(self, tenant: str | None, key: str | None) -> Mapping[str, Any] | None:
        return await self.turn(tenant, "c1" if key == "t-1" else "", None)

    async def messages(self, tenant: str, occurrences: Sequence[int]) -> Mapping[int, Message]:
        assert tenant == "acme"
        return {70: Message("user", "port 7431", {})}

    async def occurrences(self, tenant: str, conversation: str) -> frozenset[int]:
        return frozenset({70, 71}) if (tenant, conversation) == ("acme", "c1") else frozenset()

    async def stats(self) -> Mapping[str, Any]:
        return {"turns": 1}


class Remembers:
    """Answers every query with one memory, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Query, int]] = []
        self.at_once = self.most_at_once = 0

    async def recall(self, query: Query, limit: int) -> Recalled:
        self.asked.append((query, limit))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return Recalled((FOUND,), True, "cosine")


class House:
    """The routes over parts that a test may change, asked as an ASGI server would ask."""

    def __init__(self, access: Access, default_tenant: str = "") -> None:
        self.now, self.is_draining = MemoryState("ready", "ready"), False
        self.journal, self.remembers, self.metrics = OneTurn(), Remembers(), Metrics()
        self.app = Starlette(
            routes=admin_routes(
                journal=cast(Journal, self.journal),
                remembering=cast(Remembering, self.remembers),
                state=self.state,
                metrics=self.metrics,
                access=access,
                default_tenant=default_tenant,
                is_draining=lambda: self.is_draining,
            )
        )

    async def state(self) -> MemoryState:
        return self.now

    async def ask(self, target: str, headers: Mapping[str, str] = LOCAL, method: str = "GET") -> tuple[int, Any]:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        self.headers = dict(sent[0]["headers"])
        body = b"".join(message.get("body", b"") for message in sent[1:])
        is_json = self.headers[b"content-type"] == b"application/json"
        return sent[0]["status"], orjson.loads(body) if is_json else body.decode()


@pytest.fixture
def house() -> House:
    """Bound to loopback, no token."""
    return House(Access(None, {}, is_loopback=True))


@pytest.fixture
def public() -> House:
    """Bound to the world, with a token and one proxy key."""
    return House(Access("t0ken", {"acme-key": "acme"}, is_loopback=False))


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
async def test_being_alive_asks_nobody(house: House, path: str) -> None:
    house.journal.broken = house.is_draining = True
    assert await house.ask(path, {}) == (200, {"alive": True})


async def test_a_proxy_that_drains_is_not_ready(house: House) -> None:
    house.is_draining = True
    for path in ("/readyz", "/readyz?exclude=store"):
        status, said = await house.ask(path, {})
        assert (status, said["ready"], said["store"]) == (503, False, "ready")
        assert said["reasons"] == ["the proxy is stopping: send requests elsewhere"]


async def test_a_store_that_fails_may_be_left_out_of_what_ready_means(house: House) -> None:
    house.now = MemoryState("failed", "ready", None, ("the store does not answer",))
    assert (await house.ask("/readyz?exclude=other", {}))[0] == 503
    status, said = await house.ask("/readyz?exclude=store", {})
    assert (status, said["ready"], said["store"]) == (200, True, "failed")
    assert said["reasons"] == ["the store does not answer"]


async def test_ready_is_what_memory_says_of_itself(house: House) -> None:
    house.now = MemoryState("ready", "loading", 4, ("the model is being loaded",))
    assert await house.ask("/readyz", {}) == (
        200,
        {
            "ready": True,
            "store": "ready",
            "embedder": "loading",
            "pending": 4,
            "reasons": ["the model is being loaded"],
        },
    )
    house.now = MemoryState("failed", "ready", None)
    assert await house.ask("/readyz", {}) == (
        503,
        {"ready": False, "store": "failed", "embedder": "ready", "pending": None, "reasons": []},
    )


async def test_metrics_are_open_on_loopback_and_the_operators_elsewhere(house: House, public: House) -> None:
    assert "palimpsest_requests" in (await house.ask("/metrics"))[1]
    for elsewhere in ({"host": "proxy.example"}, {**LOCAL, "via": "1.1 gate"}, {**LOCAL, "origin": "http://a.example"}):
        assert (await house.ask("/metrics", elsewhere))[0] == 403
    assert (await public.ask("/metrics", {}))[0] == 401
    assert (await public.ask("/metrics", ACME))[0] == 403
    assert "palimpsest_requests" in (await public.ask("/metrics", ADMIN))[1]


@pytest.mark.parametrize("path", ["conversations/c1/turns/1", "conversations/c1/turns", "turns/t-1"])
async def test_a_turn_is_shown_by_number_or_name_or_the_newest(house: House, path: str) -> None:
    status, said = await house.ask(f"/memory/v1/{path}")
    assert (status, said["number"], said["explain"]["event"]) == (200, 1, "append")
    assert house.headers[b"cache-control"] == b"no-store"
    assert b"access-control-allow-origin" not in house.headers


async def test_a_turns_candidates_come_with_their_text_unless_it_was_forgotten(house: House) -> None:
    _, said = await house.ask("/memory/v1/conversations/c1/turns")
    assert [candidate["text"] for candidate in said["explain"]["candidates"]] == ["port 7431", None]


@pytest.mark.parametrize("path", ["c1/turns/2", "c1/turns/0", "other/turns", "c1/turns/-1", "c1/turns/" + "9" * 5000])
async def test_a_turn_that_is_not_there_is_404(house: House, path: str) -> None:
    status, said = await house.ask(f"/memory/v1/conversations/{path}")
    assert status == 404
    assert said["error"]["message"].startswith("no such turn")


async def test_a_proxy_key_sees_its_own_tenant_only(public: House) -> None:
    assert (await public.ask("/memory/v1/conversations/c1/turns", ACME))[0] == 200
    other = House(Access("t0ken", {"acme-key": "beta"}, is_loopback=False))
    assert (await other.ask("/memory/v1/conversations/c1/turns", ACME))[0] == 404
    assert (await public.ask("/memory/v1/search?q=port&tenant=beta", ACME))[0] == 403
    assert (await public.ask("/memory/v1/stats", ACME))[0] == 403
    await public.ask("/memory/v1/search?q=port", ACME)
    assert [query.tenant for query, _ in public.remembers.asked] == ["acme"]


@pytest.mark.parametrize("path", ["conversations/c1/turns", "search?q=x&tenant=acme", "stats"])
async def test_strangers_are_refused_everywhere(house: House, public: House, path: str) -> None:
    assert (await house.ask(f"/memory/v1/{path}", {"host": "evil.example"}))[0] == 403
    assert (await public.ask(f"/memory/v1/{path}", LOCAL))[0] == 401


async def test_search_shows_each_signals_rank_and_score(house: House) -> None:
    status, said = await house.ask("/memory/v1/search?q=which+port&tenant=acme&limit=5")
    assert (status, said["admitted"], said["reason"]) == (200, True, "cosine")
    assert said["results"][0]["text"] == "port 7431"
    assert said["results"][0]["signals"] == {"dense": [1, 0.8]}
    ((query, limit),) = house.remembers.asked
    assert (query.tenant, query.text, query.reach, limit) == ("acme", "which port", Reach.TENANT, 5)


async def test_searches_go_one_after_the_other_so_that_requests_find_readers(house: House) -> None:
    asking = [house.ask(f"/memory/v1/search?q=port+{n}&tenant=acme") for n in range(4)]
    assert [status for status, _ in await asyncio.gather(*asking)] == [200] * 4
    assert (len(house.remembers.asked), house.remembers.most_at_once) == (4, 1)


async def test_search_in_one_conversation_stays_there(house: House) -> None:
    await house.ask("/memory/v1/search?q=port&tenant=acme&conversation=c1")
    ((query, _),) = house.remembers.asked
    assert (query.conversation, query.reach, query.lost) == ("c1", Reach.CONVERSATION, {70, 71})


async def test_search_means_the_static_tenant_where_there_is_one() -> None:
    house = House(Access(None, {}, is_loopback=True), default_tenant="me")
    await house.ask("/memory/v1/search?q=port")
    assert house.remembers.asked[0][0].tenant == "me"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("q=x", "tenant"),
        ("tenant=a", "q is required"),
        ("q=+&tenant=a", "q is required"),
        ("q=x&tenant=a&limit=0", "1 to 200"),
        ("q=x&tenant=a&limit=-1", "1 to"),
    ],
)
async def test_a_search_that_lacks_something_says_what(house: House, query: str, words: str) -> None:
    status, said = await house.ask(f"/memory/v1/search?{query}")
    assert status == 400
    assert words in said["error"]["message"]


async def test_stats_are_the_journals(house: House) -> None:
    assert await house.ask("/memory/v1/stats") == (200, {"turns": 1})


async def test_a_fault_of_memory_is_503_and_tells_no_path(house: House) -> None:
    house.journal.broken = True
    status, said = await house.ask("/memory/v1/conversations/c1/turns")
    assert status == 503
    assert "/data" not in said["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_nothing_below_memory_falls_through(house: House, method: str) -> None:
    assert (await house.ask("/memory/v1/unknown", method=method))[0] == 404
    assert (await house.ask("/memory/v1/stats", method="POST"))[0] == 405
