"""Export over HTTP: the lines that `palimpsest export` writes, page by page as they are read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from starlette.responses import Response, StreamingResponse

from palimpsest.edge.admin.operation import Call, OfTenant, Refused, Routes, operation
from palimpsest.features.transfer.lines import export
from palimpsest.store.turns.transcript import Selection

MEDIA_TYPE = "application/jsonl"
NOT_FOUND = 404
NOTHING = "nothing stored matches"


@dataclass(frozen=True, kw_only=True)
class Exported(OfTenant):
    conversation: Annotated[str, Field(description="Only this conversation.")] = ""
    user: Annotated[str, Field(description="Only this user's conversations.")] = ""
    scope: Annotated[str, Field(description="Only this project's conversations.")] = ""


class ExportRoutes(Routes):
    @operation(
        "GET /export",
        "Export conversations as JSON lines",
        replies=str,
        missing=NOTHING,
        gives=MEDIA_TYPE,
        in_turn=False,  # it takes as long as its reader
    )
    async def export(self, call: Call[Exported]) -> Response:
        """The first page is read before the answer begins, so that what fails by then is said with its status."""
        asked = call.asked
        selection = Selection(asked.tenant, asked.conversation, asked.user, asked.scope)
        lines = export(self._database, selection, self._parts.key_of)
        header = await anext(lines)
        first = await anext(lines, b"")
        if not first:
            raise Refused(NOT_FOUND, NOTHING)
        return StreamingResponse(_chained(header + first, lines), media_type=MEDIA_TYPE)


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for lines in rest:
        yield lines


ROUTES = ExportRoutes
