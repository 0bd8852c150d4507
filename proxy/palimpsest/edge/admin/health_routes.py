"""
Health over HTTP: the same as `/readyz`, for people and with status 200.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from palimpsest import __version__
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, operation
from palimpsest.edge.admin.parts import Routes
from palimpsest.edge.admin.probe_routes import Readiness


@frozen
class Health(Readiness):
    """Readiness, and the version of the proxy."""

    version: Annotated[str, Field(description="Version of the proxy.")]


class HealthRoutes(Routes):
    """The operation that shows health to people."""

    @operation("GET /health", "Show the state of memory", in_turn=False)
    async def health(self, _call: Call[Nothing]) -> Health:
        now = await self._parts.readiness_probe.now()
        return Health(
            *(now.ready, now.store, now.embedder, now.pending, now.pending_seconds, now.reasons), version=__version__
        )
