"""
What can the operator ask a running proxy? Whether it lives, whether it is ready, how it fares, and what it decided.

`/healthz` and `/readyz` answer everyone: states and numbers only. `/metrics` answers this machine; whoever asks from
elsewhere needs the admin token, as for everything under `/memory/` (`access.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
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
from proxy.metrics import CONTENT_TYPE, Metrics
from proxy.ports import Embedder, Remembering
from proxy.store.journal import Journal

READY_SECONDS = 2.0  # a store that needs longer to count is no use to a request either
SEARCH_RESULTS = 20  # a screenful
MOST_RESULTS = 200
EXCERPT_CHARS = 1000  # of a candidate's message: as long as a passage
LONGEST_NUMBER_DIGITS = 9  # more turns than a conversation has, and fewer than a database integer holds

log = structlog.get_logger()

OFF = "memory is off (memory.mode): requests pass, and nothing is read or written"

Handler = Callable[[Request, Caller], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Archive:
    """What the services say of the archive."""

    backlog: int = 0  # requests and answers that were taken and are not journalled yet; they are pending too
    is_failing: bool = False
    troubles: tuple[str, ...] = ()  # reasons, in words that name nobody
    is_off: bool = False  # by policy
    is_model_loading: bool = False


def admin_routes(
    *,
    journal: Journal,
    embedder: Embedder,
    remembering: Remembering,
    metrics: Metrics,
    access: Access,
    default_tenant: str = "",
    self_description: Mapping[str, Any] = MappingProxyType({}),
    archive: Callable[[], Archive] = lambda: Archive(),
    forgetting: ForgetRoutes | None = None,
) -> list[BaseRoute]:
    """
    The proxy's own endpoints, for `app.py` to mount in front of the proxied ones.

    Args:
        default_tenant: whom the operator's search means when it names no tenant: `tenants.static`.
        self_description: what `/healthz` says beside being alive.
        archive: how it stands now.
        forgetting: None: nothing can be erased here.
    """
    admin = _Admin(journal, embedder, remembering, metrics, access, default_tenant, self_description, archive)
    return [
        Route("/healthz", admin.healthz),
        Route("/readyz", admin.readyz),
        Route("/metrics", admin.metrics),
        Mount(
            "/memory",  # with all methods and whatever is below: nothing of ours ever goes upstream
            routes=[
                *_forget_routes(forgetting, admin.guarded),
                Route("/v1/conversations/{conversation}/turns", admin.guarded(admin.turn)),
                Route("/v1/conversations/{conversation}/turns/{number}", admin.guarded(admin.turn)),
                Route("/v1/turns/{key}", admin.guarded(admin.turn)),
                Route("/v1/search", admin.guarded(admin.search)),
                Route("/v1/stats", admin.guarded(admin.stats)),
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
        embedder: Embedder,
        remembering: Remembering,
        metrics: Metrics,
        access: Access,
        default_tenant: str,
        self_description: Mapping[str, Any],
        archive: Callable[[], Archive],
    ) -> None:
        self._journal = journal
        self._embedder = embedder
        self._remembering = remembering
        self._metrics = metrics
        self._access = access
        self._default_tenant = default_tenant
        self._alive = {"alive": True, **self_description}
        self._archive = archive

    async def healthz(self, _request: Request) -> Response:
        return json_reply(self._alive)

    async def readyz(self, _request: Request) -> Response:
        archive = self._archive()
        if archive.is_off:
            state = {"ready": True, "store": "off", "embedder": "off", "pending": 0, "reasons": [OFF]}
            return json_reply(state)
        pending, reasons = None, list(archive.troubles)
        try:
            async with asyncio.timeout(READY_SECONDS):
                pending = archive.backlog + await self._journal.pending()
        except (MemoryFault, TimeoutError) as fault:
            log.warning("the store does not answer", exc_info=fault)
            reasons.append("the store does not answer: requests pass without memory; the log says why")
        model = "ready" if self._embedder.ready else "loading" if archive.is_model_loading else "missing"
        if model == "loading":
            reasons.append("the embedding model is being loaded: recall waits for it, and is lexical where it may not")
        if model == "missing":
            reasons.append("the embedding model is missing: recall is lexical only; run palimpsest model install")
        up = pending is not None and not archive.is_failing
        self._metrics.gauge("store_up", up)
        self._metrics.gauge("embedder_ready", self._embedder.ready)
        if pending is not None:
            self._metrics.gauge("pending", pending)
        state = {
            "ready": up,
            "store": "ready" if up else "failed",
            "embedder": model,
            "pending": pending,
            "reasons": reasons,
        }
        return json_reply(state, 200 if up else 503)

    async def metrics(self, request: Request) -> Response:
        is_here = self._access.is_loopback and is_local(request.scope["headers"])
        caller = Caller() if is_here else self._access.caller(request.scope["headers"])
        if isinstance(caller, Refusal):
            return error_reply(caller.status, caller.text)
        if caller.tenant:
            return error_reply(403, "these are numbers of all tenants: send the admin token")
        return Response(self._metrics.render(), media_type=CONTENT_TYPE)

    def guarded(self, handler: Handler) -> Endpoint:
        """Ask who is calling first; say a fault of memory as the 503 that it is."""

        async def endpoint(request: Request) -> Response:
            caller = self._access.caller(request.scope["headers"])
            if isinstance(caller, Refusal):
                return error_reply(caller.status, caller.text)
            try:
                return await handler(request, caller)
            except MemoryFault as fault:
                log.warning("an operator's question failed", exc_info=fault)
                return error_reply(fault.http_status, "the store or an index could not be asked; the log says why")

        return endpoint

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
            return error_reply(403, "a proxy key searches its own tenant only")
        if not tenant:
            return error_reply(400, "tenant must be given: whose memory is searched")
        text, limit = asked.get("q", ""), asked.get("limit", str(SEARCH_RESULTS))
        if not text.strip():
            return error_reply(400, "q must be given: what is searched for")
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
            return error_reply(403, "these are numbers of all tenants: send the admin token")
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
