"""
The endpoints of probes and monitoring: whether the proxy lives, whether it is ready, and its metrics.

`/livez`, `/healthz` and `/readyz` answer everyone: states and numbers only. `/metrics` answers this machine; whoever
asks from elsewhere needs the admin token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from palimpsest.core.caller.credentials import is_local
from palimpsest.domain.frozen import frozen
from palimpsest.edge.access import Access, Caller, Refusal
from palimpsest.edge.replies import error_reply, json_reply
from palimpsest.memory.service import MemoryState
from palimpsest.telemetry.metrics import CONTENT_TYPE, Metrics

DRAINING = "the proxy is stopping: send requests elsewhere"


@frozen
class Readiness:
    """Whether the proxy is ready, and how memory is."""

    ready: Annotated[bool, Field(description="Whether requests get memory, or are configured not to.")]
    store: Annotated[Literal["ready", "failed", "off"], Field(description="The database.")]
    embedder: Annotated[
        Literal["ready", "loading", "missing", "off"], Field(description="The embedding model; without it words only.")
    ]
    pending: Annotated[
        int | None, Field(description="Number of items that wait to be written or indexed; null: not known.")
    ]
    pending_seconds: Annotated[float, Field(description="Seconds that the oldest passage has waited to be indexed.")]
    reasons: Annotated[list[str], Field(description="Why it is not ready, or degraded.")]


class ReadinessProbe:
    """Reports whether the proxy is ready."""

    def __init__(self, state: Callable[[], Awaitable[MemoryState]], is_draining: Callable[[], bool]) -> None:
        self._state = state
        self._is_draining = is_draining

    async def now(self, *, is_store_needed: bool = True) -> Readiness:
        now, is_draining = await self._state(), self._is_draining()
        return Readiness(
            ready=(now.is_ready or not is_store_needed) and not is_draining,
            store=now.store,
            embedder=now.embedder,
            pending=now.pending,
            pending_seconds=round(now.pending_seconds, 1),
            reasons=[*([DRAINING] if is_draining else []), *now.reasons],
        )


class ProbeRoutes:
    """The endpoints outside /memory."""

    def __init__(
        self, readiness_probe: ReadinessProbe, metrics: Metrics, access: Access, self_description: Mapping[str, Any]
    ) -> None:
        self._readiness_probe = readiness_probe
        self._metrics = metrics
        self._access = access
        self._alive = {"alive": True, **self_description}

    def routes(self) -> list[Route]:
        return [
            *(Route(path, self.alive) for path in ("/livez", "/healthz")),
            Route("/readyz", self.readyz),
            Route("/metrics", self.metrics),
        ]

    async def alive(self, _request: Request) -> Response:
        return json_reply(self._alive)

    async def readyz(self, request: Request) -> Response:
        """`?exclude=store`, in the manner of Kubernetes: ready even if memory fails, as requests pass all the same."""
        now = await self._readiness_probe.now(is_store_needed="store" not in request.query_params.getlist("exclude"))
        return json_reply(now, 200 if now.ready else 503)

    async def metrics(self, request: Request) -> Response:
        headers, access = request.scope["headers"], self._access
        is_here = access.trusts_machine and is_local(headers)  # with whatever key
        caller = Caller() if is_here else access.caller(headers)
        if isinstance(caller, Refusal):
            return error_reply(caller.status, caller.text)
        if caller.tenant:
            return error_reply(403, "these figures cover all tenants: send the admin token")
        await self._readiness_probe.now()  # sets the gauges
        return Response(self._metrics.render(), headers={"cache-control": "no-store"}, media_type=CONTENT_TYPE)
