"""
The operator's endpoints: whether the proxy lives, whether it is ready, its metrics, and what it decided.

`/livez`, `/healthz` and `/readyz` answer everyone: states and numbers only. `/metrics` answers this machine; whoever
asks from elsewhere needs the admin token, as for everything under `/memory/` (`access.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from proxy.domain import Candidate, Query, Reach
from proxy.edge.access import Access, Caller, Refusal, is_local
from proxy.edge.forget_routes import ForgetRoutes
from proxy.edge.replies import error_reply, json_reply
from proxy.errors import MemoryFault
from proxy.memory.service import MemoryState
from proxy.metrics import CONTENT_TYPE, Metrics
from proxy.ports import Remembering
from proxy.store.journal import Journal

SEARCH_RESULTS = 20  # a screenful
MOST_RESULTS = 200
EXCERPT_CHARS = 1000  # of a candidate's message: as long as a passage
DRAINING = "the proxy is stopping: send requests elsewhere"
LONGEST_NUMBER_DIGITS = 9  # more turns than a conversation has, and fewer than a database integer holds

log = structlog.get_logger()

Handler = Callable[[Request, Caller], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def admin_routes(
    *,
    journal: Journal,
    remembering: Remembering,
    state: Callable[[], Awaitable[MemoryState]],
    metrics: Metrics,
    access: Access,
    default_tenant: str = "",
    self_description: Mapping[str, Any] = MappingProxyType({}),
    forgetting: ForgetRoutes | None = None,
    is_draining: Callable[[], bool] = lambda: False,
) -> list[BaseRoute]:
    """
    The proxy's own endpoints, for `app.py` to mount in front of the proxied ones.

    Args:
        state: how memory is now.
        default_tenant: tenant of an operator's search that names none: `tenants.static`.
        self_description: what `/livez` and `/healthz` say beside being alive.
        forgetting: None: nothing can be erased here.
        is_draining: whether a stop has begun, and requests should go elsewhere.
    """
    admin = _Admin(journal, remembering, state, metrics, access, default_tenant, self_description, is_draining)
    return [
        *(Route(path, admin.alive) for path in ("/livez", "/healthz")),
        Route("/readyz", admin.readyz),
        Route("/metrics", admin.metrics),
        Mount(
            "/memory",  # with all methods and whatever is below: nothing of ours ever goes upstream
            routes=[
                *_forget_routes(forgetting, admin.guarded),
                Route("/v1/conversations/{conversation}/turns", admin.in_turn(admin.turn)),
                Route("/v1/conversations/{conversation}/turns/{number}", admin.in_turn(admin.turn)),
                Route("/v1/turns/{key}", admin.in_turn(admin.turn)),
                Route("/v1/search", admin.in_turn(admin.search)),
                Route("/v1/stats", admin.in_turn(admin.stats)),
            ],
        ),
    ]


def _forget_routes(forgetting: ForgetRoutes | None, guarded: Callable[[Handler], Endpoint]) -> list[BaseRoute]:
    if forgetting is None:
        return []
    delete = guarded(forgetting.delete)
    paths = (
        "/v1/conversations/{conversation}/turns/{number}",
        "/v1/conversations/{conversation}",
        "/v1/turns/{turn}",
        "/v1/users/{user:path}",
        "/v1/tenants/{tenant:path}",
    )
    return [
        Route("/v1/forget", guarded(forgetting.forget), methods=["POST"]),
        *(Route(path, delete, methods=["DELETE"]) for path in paths),
    ]


class _Admin:
    def __init__(
        self,
        journal: Journal,
        remembering: Remembering,
        state: Callable[[], Awaitable[MemoryState]],
        metrics: Metrics,
        access: Access,
        default_tenant: str,
        self_description: Mapping[str, Any],
        is_draining: Callable[[], bool],
    ) -> None:
        self._journal = journal
        self._asking = asyncio.Lock()
        self._state = state
        self._remembering = remembering
        self._metrics = metrics
        self._access = access
        self._default_tenant = default_tenant
        self._is_draining = is_draining
        self._alive = {"alive": True, **self_description}

    async def alive(self, _request: Request) -> Response:
        return json_reply(self._alive)

    async def readyz(self, request: Request) -> Response:
        """`?exclude=store`, in the manner of Kubernetes: ready even if memory fails, as requests pass all the same."""
        now, is_draining = await self._state(), self._is_draining()
        is_store_enough = now.is_ready or "store" in request.query_params.getlist("exclude")
        is_ready = is_store_enough and not is_draining
        told = {
            "ready": is_ready,
            "store": now.store,
            "embedder": now.embedder,
            "pending": now.pending,
            "reasons": (DRAINING, *now.reasons) if is_draining else now.reasons,
        }
        return json_reply(told, 200 if is_ready else 503)

    async def metrics(self, request: Request) -> Response:
        is_here = self._access.is_loopback and is_local(request.scope["headers"])
        caller = Caller() if is_here else self._access.caller(request.scope["headers"])
        if isinstance(caller, Refusal):
            return error_reply(caller.status, caller.text)
        if caller.tenant:
            return error_reply(403, "these figures cover all tenants: send the admin token")
        await self._state()  # sets the gauges
        return Response(self._metrics.render(), media_type=CONTENT_TYPE)

    def guarded(self, handler: Handler) -> Endpoint:
        """Check access first, and answer faults of memory with 503."""

        async def endpoint(request: Request) -> Response:
            caller = self._access.caller(request.scope["headers"])
            if isinstance(caller, Refusal):
                return error_reply(caller.status, caller.text)
            try:
                return await handler(request, caller)
            except MemoryFault as fault:
                log.warning("an admin request failed", exc_info=fault)
                return error_reply(fault.http_status, "the store or an index did not answer; the log says why")

        return endpoint

    def in_turn(self, handler: Handler) -> Endpoint:
        """Like `guarded`, one request at a time: the store has few readers, and proxied requests need the others."""

        async def alone(request: Request, caller: Caller) -> Response:
            async with self._asking:
                return await handler(request, caller)

        return self.guarded(alone)

    async def turn(self, request: Request, caller: Caller) -> Response:
        number = request.path_params.get("number")
        if number is not None and not _is_number(number):
            return error_reply(404, "no such turn: turns are numbered from 1")
        tenant, key = caller.tenant or None, request.path_params.get("key")
        if key is not None:
            found = await self._journal.turn_named(tenant, key)
        else:
            conversation = request.path_params["conversation"]
            found = await self._journal.turn(tenant, conversation, None if number is None else int(number))
        if found is None:
            return error_reply(404, "no such turn")
        candidates = found["explain"].get("candidates", [])
        stored = await self._journal.messages(found["tenant"], [candidate["occurrence"] for candidate in candidates])
        for candidate in candidates:  # None: forgotten since
            message = stored.get(candidate["occurrence"])
            candidate["text"] = None if message is None else message.text[:EXCERPT_CHARS]
        return json_reply(found)

    async def search(self, request: Request, caller: Caller) -> Response:
        asked = request.query_params
        tenant = asked.get("tenant") or caller.tenant or self._default_tenant
        if caller.tenant and tenant != caller.tenant:
            return error_reply(403, "a proxy key can only search its own tenant")
        if not tenant:
            return error_reply(400, "tenant is required: whose memory to search")
        text, limit = asked.get("q", ""), asked.get("limit", str(SEARCH_RESULTS))
        if not text.strip():
            return error_reply(400, "q is required: what to search for")
        if not (_is_number(limit) and 1 <= int(limit) <= MOST_RESULTS):
            return error_reply(400, f"limit must be a number from 1 to {MOST_RESULTS}")
        conversation = asked.get("conversation", "")
        query = Query(tenant, "", text, reach=Reach.TENANT)
        if conversation:
            all_of_it = await self._journal.occurrences(tenant, conversation)
            query = Query(tenant, conversation, text, reach=Reach.CONVERSATION, lost=all_of_it)
        recalled = await self._remembering.recall(query, int(limit))
        return json_reply(
            {
                "admitted": recalled.admitted,
                "reason": recalled.reason,
                "lexical_only": recalled.lexical_only,
                "elapsed_ms": recalled.elapsed_ms,
                "results": [_result(candidate) for candidate in recalled.candidates],
            }
        )

    async def stats(self, _request: Request, caller: Caller) -> Response:
        if caller.tenant:
            return error_reply(403, "these figures cover all tenants: send the admin token")
        return json_reply(dict(await self._journal.stats()))


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= LONGEST_NUMBER_DIGITS


def _result(candidate: Candidate) -> dict[str, Any]:
    memory = candidate.memory
    return {
        "memory": memory.id,
        "conversation": memory.conversation,
        "occurrence": memory.occurrence,
        "position": memory.position,
        "role": memory.role,
        "created_at": memory.created_at,
        "text": memory.text,
        "score": candidate.score,
        "signals": candidate.signals,
    }
