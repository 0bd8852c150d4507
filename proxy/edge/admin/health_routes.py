"""
The endpoints of probes and monitoring: whether the proxy lives, whether it is ready, and its metrics.

`/livez`, `/healthz` and `/readyz` answer everyone: states and numbers only. `/metrics` answers this machine; whoever
asks from elsewhere needs the admin token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from proxy.edge.access import Access, Caller, Refusal, is_local
from proxy.edge.replies import error_reply, json_reply
from proxy.memory.service import MemoryState
from proxy.metrics import CONTENT_TYPE, Metrics

DRAINING = "the proxy is stopping: send requests elsewhere"


class HealthRoutes:
    """The endpoints outside /memory."""

    def __init__(
        self,
        state: Callable[[], Awaitable[MemoryState]],
        metrics: Metrics,
        access: Access,
        self_description: Mapping[str, Any],
        is_draining: Callable[[], bool],
    ) -> None:
        self._state = state
        self._metrics = metrics
        self._access = access
        self._is_draining = is_draining
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
