"""The admin API over a real database, asked as an ASGI server would ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import orjson
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.domain import Candidate, Memory, Query, Recalled
from palimpsest.edge.access import Access
from palimpsest.edge.admin.late import LazyApplication
from palimpsest.edge.admin.operation import Parts
from palimpsest.edge.admin.probe_routes import ProbeRoutes, ReadinessProbe
from palimpsest.edge.admin.routes import admin_api
from palimpsest.edge.open_turns import OpenTurns
from palimpsest.features.registry import OPERATIONS
from palimpsest.memory.archive import Archive
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.retiring import Retiring
from palimpsest.memory.operation.policy_reload import PolicyReload
from palimpsest.memory.service import MemoryState
from palimpsest.settings.policy import KeyPolicy, Policy, RetentionPolicy
from palimpsest.settings.source import NO_SOURCE
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.telemetry.metrics import Metrics
from starlette.applications import Starlette
from starlette.routing import Route

from tests.edge.serving import ScriptedPipeline
from tests.remembered import WordEmbedder
from tests.talking import NOW, Talk

SECRET = b"a secret of thirty-two bytes ....."
LOCAL = {"host": "127.0.0.1:8484"}
ACME = {"host": "proxy.example", "authorization": "Bearer acme-key"}
ADMIN = {"host": "proxy.example", "authorization": "Bearer t0ken"}
AT_HOME = Access(None, ProxyKeys({}), is_loopback=True)
PUBLIC = Access("t0ken", ProxyKeys({"acme-key": KeyPolicy(name="acme", key_env="K")}), is_loopback=False)


class Remembers:
    """Answers every query with the same memories, and keeps what was asked."""

    def __init__(self) -> None:
        self.found: Sequence[Memory] = [Memory(7, 70, "c-1", 3, "user", "port 7431", 1.0)]
        self.asked: list[tuple[Query, int]] = []
        self.at_once = self.most_at_once = 0

    async def recall(self, query: Query, limit: int) -> Recalled:
        self.asked.append((query, limit))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        candidates = [Candidate(memory, 0.5, {"dense": (1, 0.8)}) for memory in self.found]
        return Recalled(tuple(candidates[:limit]), True, "cosine")


class Wiring(Archive):
    """An archive over a database that is open, where nothing waits for other processes."""

    def __init__(self, house: House, database: Database) -> None:
        super().__init__(
            *(Policy(), Metrics(), WordEmbedder(), lambda: NOW + 1),
            secret=lambda: SECRET,
            current=lambda: house.policy.model_copy(update={"retention": house.retention}),
        )
        self.database, self.journal = database, Journal(database)

    @cached_property
    def forgetting(self) -> Forgetting:
        return Forgetting(self.database, SECRET, self.clock, settle_seconds=0.0)

    @cached_property
    def retiring(self) -> Retiring:
        return Retiring(self.database, SECRET, self.clock, settle_seconds=0.0)


class House:
    """The routes over parts that a test may change."""

    def __init__(self, database: Database, access: Access = PUBLIC, default_tenant: str = "", page: Any = None) -> None:
        self.now, self.is_draining = MemoryState("ready", "ready"), False
        self.database, self.journal, self.remembers = database, Journal(database), Remembers()
        self.reload = PolicyReload(NO_SOURCE, {}, Policy(), self.apply, database, Metrics(), lambda: NOW)
        self.reload.number = 1
        self.policy = Policy()
        self.preparer = ScriptedPipeline()
        self.retention = RetentionPolicy()
        parts = Parts(
            archive=Wiring(self, database),
            retriever=self.remembers,
            readiness_probe=ReadinessProbe(self.state, lambda: self.is_draining),
            policies=self.reload,
            preparer=self.preparer,
            keyring=access.keys,
            open_turns=OpenTurns(),
            key_of=str.encode,
            default_tenant=default_tenant,
        )
        probes = ProbeRoutes(parts.readiness_probe, Metrics(), access, {})
        api = LazyApplication(lambda: admin_api(parts, access, OPERATIONS, page))
        self.app = Starlette(routes=[*probes.routes(), Route("/memory{rest:anything}", api)])
        self.headers: Mapping[bytes, bytes] = {}

    async def apply(self, policy: Policy, number: int) -> None:
        """Nothing here goes by it."""

    async def state(self) -> MemoryState:
        return self.now

    async def ask(
        self, target: str, headers: Mapping[str, str] = ADMIN, method: str = "GET", body: Any = None
    ) -> tuple[int, Any]:
        """Status and what was said; `headers` of the answer are kept."""
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},  # what is streamed need not listen for a disconnect
            "method": method,
            "path": unquote(path),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        sent: list[Any] = []
        data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        self.headers = dict(sent[0]["headers"])
        answer = b"".join(message.get("body", b"") for message in sent[1:])
        is_json = self.headers.get(b"content-type") == b"application/json"
        return sent[0]["status"], orjson.loads(answer) if is_json else answer.decode()

    async def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = ADMIN
    ) -> tuple[int, Any]:
        """Status and what was said to a request that changes something."""
        return await self.ask(f"/memory/v1/{path}", headers, method, body)

    async def get(self, path: str, headers: Mapping[str, str] = ADMIN) -> Any:
        """What is said where all is well."""
        status, said = await self.ask(f"/memory/v1/{path}", headers)
        assert status == 200, said
        return said

    async def conversations(self) -> int:
        return int((await self.journal.stats())["conversations"])


async def two_tenants(database: Database) -> None:
    """Of the first, two conversations of Ann's with two turns each; of the second, one of Bob's."""
    journal = Journal(database)
    for name in ("c-1", "c-2"):
        talk = Talk(journal, "key:acme", name)
        await talk.say(f"first in {name}", user="ann/office", scope="site")
        await talk.say(f"second in {name}", user="ann/office", scope="site")
    await Talk(journal, "key:globex", "c-9").say("not yours", user="bob")
