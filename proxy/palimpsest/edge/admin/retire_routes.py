"""
Retiring over HTTP: `POST /memory/v1/retire`, and `GET` and `DELETE` of retirements, which list and undo them.

A proxy key retires in its own tenant only. What is not in use, or cannot be undone, is answered with 404.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.forget_routes import Forget
from palimpsest.edge.admin.operation import Call, OfTenant, Routes, found, operation
from palimpsest.edge.replies import json_reply
from palimpsest.memory.erasure.targets import target_of

NOTHING = "nothing in use matches, so nothing was retired"
NOT_KNOWN = "no retirement of this id can be undone"


@dataclass(frozen=True, kw_only=True)
class Undo(OfTenant):
    retirement: Annotated[str, Field(description="`id` in the receipt of the retirement.")]


@frozen
class RetirePreview:
    """What would be retired; nothing was."""

    dry_run: Annotated[bool, Field(description="Always true.")]
    tenants: Annotated[int, Field(description="Number of tenants affected.")]
    would_retire: Annotated[dict[str, int], Field(description="Number of rows, by kind.")]


@frozen
class RetirementReceipt:
    """What was retired, signed."""

    id: Annotated[str, Field(description="Id with which the retirement can be undone.")]
    what: Annotated[str, Field(description="`retirement`.")]
    at: Annotated[str, Field(description="When it was done, ISO 8601.")]
    until: Annotated[str, Field(description="When it can no longer be undone, and is erased.")]
    asked: Annotated[dict[str, Any], Field(description="What was requested, by parameter.")]
    tenants: Annotated[int, Field(description="Number of tenants affected.")]
    retired: Annotated[dict[str, int], Field(description="Number of rows, by kind.")]
    stays: Annotated[str, Field(description="What happens to retired data.")]
    signature: Annotated[str, Field(description="Signature with a key of this installation.")]


@frozen
class Retirement:
    """A retirement that can be undone."""

    id: Annotated[str, Field(description="Id of the retirement.")]
    tenant: Annotated[str, Field(description="Tenant of the messages; empty: several.")]
    messages: Annotated[int, Field(description="Number of retired messages.")]
    at: Annotated[str, Field(description="When they were retired, ISO 8601.")]
    until: Annotated[str, Field(description="Until when it can be undone.")]


@frozen
class Retirements:
    """All of them, the newest first."""

    retirements: list[Retirement]


@frozen
class Undone:
    """What was taken back."""

    id: Annotated[str, Field(description="Id of the retirement.")]
    what: Annotated[str, Field(description="`undone retirement`.")]
    at: Annotated[str, Field(description="When it was done, ISO 8601.")]
    messages: Annotated[int, Field(description="Number of messages in use again.")]


class RetireRoutes(Routes):
    @operation(
        "POST /retire",
        "Stop recalling what matches",
        replies=RetirementReceipt | RetirePreview,
        missing=NOTHING,
        in_turn=False,
    )
    async def retire(self, call: Call[Forget]) -> Response:
        """The body says what to retire, as that of `/forget`."""
        given = {name: value for name, value in asdict(call.asked).items() if value not in (None, "")}
        dry_run = given.pop("dry_run")
        target = target_of(given, self._clock())
        if dry_run:
            preview = found(await self._archive.retiring.preview(target), NOTHING)
            return json_reply(RetirePreview(True, preview.tenants, preview.counts))
        return json_reply(found(await self._archive.retiring.retire(target), NOTHING))

    @operation("GET /retirements", "List retirements that can be undone", replies=Retirements)
    async def listed(self, call: Call[OfTenant]) -> dict[str, Any]:
        return {"retirements": await self._archive.retiring.list_retirements(call.asked.tenant)}

    @operation(
        "DELETE /retirements/{retirement}", "Undo a retirement", replies=Undone, missing=NOT_KNOWN, in_turn=False
    )
    async def undo(self, call: Call[Undo]) -> dict[str, Any]:
        return found(await self._archive.retiring.undo(call.asked.retirement, call.asked.tenant), NOT_KNOWN)
