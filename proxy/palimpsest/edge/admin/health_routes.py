"""Health over HTTP, for people: the same as `/readyz`, with status 200; and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from palimpsest import __version__
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, Operation, Routes, operation
from palimpsest.edge.admin.probe_routes import Readiness
from palimpsest.edge.replies import json_reply


@frozen
class Health(Readiness):
    """Readiness, and the version of the proxy."""

    version: Annotated[str, Field(description="Version of the proxy.")]


class HealthRoutes(Routes):
    @operation("GET /health", "Show the state of memory", in_turn=False)
    async def health(self, _call: Call[Nothing]) -> Health:
        return Health(**asdict(await self._parts.readiness_probe.now()), version=__version__)


class DocumentRoutes:
    """The operation that returns the OpenAPI document."""

    def __init__(self, table: Callable[[], Sequence[Operation[Any]]]) -> None:
        self._table = table

    @operation("GET /openapi.json", "This document", replies=dict[str, Any], in_turn=False)
    async def show(self, _call: Call[Nothing]) -> Response:
        return json_reply(self._document)

    @cached_property
    def _document(self) -> dict[str, Any]:
        from palimpsest.edge.admin.openapi import document  # late: a start need not wait for it

        return document(self._table())
