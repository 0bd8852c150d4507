"""
The OpenAPI document over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from starlette.responses import Response

from palimpsest.edge.admin.operation import Call, Nothing, Operation, operation
from palimpsest.edge.replies import json_reply


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
