from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson
import pytest
from starlette.applications import Starlette

from proxy.domain import Candidate, Memory, Message, Query, Reach, Recalled
from proxy.edge.access import Access
from proxy.edge.admin_routes import Archive, admin_routes
from proxy.errors import MemoryFault
from proxy.metrics import Metrics
from proxy.ports import Embedder, Remembering
from proxy.store.journal import Journal

LOCAL = {"host": "127.0.0.1:8484"}
ACME = {"host": "proxy.example", "authorization": "Bearer acme-key"}
ADMIN = {"host": "proxy.example", "authorization": "Bearer t0ken"}
FOUND = Candidate(Memory(7, 70, "c1", 3, "user", "port 7431", 1.0), 0.5, {"dense": (1, 0.8)})


class OneTurn:
    """A journal with one turn, of tenant acme; it can be broken."""

    broken = False
    waiting = 0

    async def pending(self) -> int:
        if self.broken:
            raise MemoryFault("counting: /data/palimpsest.db is corrupt")
        return self.waiting

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


class Model:
    ready = True
    name = "test"


class Remembers:
    """Answers every query with one memory, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Query, int]] = []

    async def recall(self, query: Query, limit: int) -> Recalled:
        self.asked.append((query, limit))
        return Recalled((FOUND,), True, "cosine")


class House:
    """The routes over parts that a test may change, asked as an ASGI server would ask."""

    def __init__(self, access: Access, default_tenant: str = "") -> None:
        self.archive = Archive()
        self.journal, self.model, self.remembers, self.metrics = OneTurn(), Model(), Remembers(), Metrics()
        self.app = Starlette(
            routes=admin_routes(
                journal=cast(Journal, self.journal),
                embedder=cast(Embedder, self.model),
                remembering=cast(Remembering, self.remembers),
                metrics=self.metrics,
                access=access,
                default_tenant=default_tenant,
                archive=lambda: self.archive,
            )
        )

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


async def test_healthz_asks_nobody(house: House) -> None:
    house.journal.broken = True
    assert await house.ask("/healthz", {}) == (200, {"alive": True})


async def test_ready_says_how_store_model_and_index_are(house: House) -> None:
    house.journal.waiting = 4
    assert await house.ask("/readyz", {}) == (
        200,
        {"ready": True, "store": "ready", "embedder": "ready", "pending": 4, "reasons": []},
    )
    text = house.metrics.render().decode()
    assert "palimpsest_pending 4.0" in text
    assert "palimpsest_store_up 1.0" in text


async def test_without_the_model_it_is_ready_and_says_what_to_run(house: House) -> None:
    house.model.ready = False
    status, said = await house.ask("/readyz", {})
    assert (status, said["ready"], said["embedder"]) == (200, True, "missing")
    assert "palimpsest model install" in said["reasons"][0]


async def test_a_model_that_is_being_loaded_is_not_missing(house: House) -> None:
    house.model.ready = False
    house.archive = Archive(is_model_loading=True)
    status, said = await house.ask("/readyz", {})
    assert (status, said["ready"], said["embedder"]) == (200, True, "loading")
    assert "is being loaded" in said["reasons"][0]


async def test_without_the_store_it_is_not_ready_and_tells_no_path(house: House) -> None:
    house.journal.broken = True
    status, said = await house.ask("/readyz", {})
    assert (status, said["ready"], said["store"], said["pending"]) == (503, False, "failed", None)
    assert "/data" not in str(said)
    assert "palimpsest_store_up 0.0" in house.metrics.render().decode()


async def test_archive_that_fails_makes_it_not_ready_and_the_reasons_are_given(house: House) -> None:
    house.archive = Archive(3, is_failing=True, troubles=("turns cannot be written",))
    status, said = await house.ask("/readyz", {})
    assert (status, said["ready"], said["store"], said["pending"]) == (503, False, "failed", 3)
    assert said["reasons"] == ["turns cannot be written"]
    house.archive = Archive(troubles=("index failed",))
    status, said = await house.ask("/readyz", {})
    assert (status, said["ready"], said["reasons"]) == (200, True, ["index failed"])


async def test_memory_that_is_off_is_no_failure(house: House) -> None:
    house.journal.broken = True
    house.model.ready = False
    house.archive = Archive(is_off=True)
    status, said = await house.ask("/readyz", {})
    assert (status, said["ready"], said["store"], said["embedder"]) == (200, True, "off", "off")
    assert "memory.mode" in said["reasons"][0]


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
        ("tenant=a", "q must"),
        ("q=+&tenant=a", "q must"),
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
