"""
The switches over HTTP, for the operator: memory off and on, for everybody or for one tenant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, operation
from palimpsest.edge.admin.parts import Routes
from palimpsest.memory.operation.switches import SwitchService

Whose = Annotated[str, Field(description="The tenant; empty: all tenants.")]


@dataclass(frozen=True, kw_only=True)
class Enable:
    tenant: Whose = ""


@dataclass(frozen=True, kw_only=True)
class Disable:
    tenant: Whose = ""
    reason: Annotated[str, Field(description="The reason, shown to whoever finds memory off.", max_length=500)] = ""


@frozen
class Off:
    """A switch that is off."""

    tenant: Whose
    reason: Annotated[str, Field(description="Why.")]
    at: Annotated[float, Field(description="When it was switched off, Unix seconds.")]


@frozen
class Switches:
    """For whom memory is switched off now."""

    switched_off: Annotated[list[Off], Field(description="The switches that are off; that for all tenants first.")]


class SwitchRoutes(Routes):
    """The operations that switch."""

    @property
    def _switches(self) -> SwitchService:
        return SwitchService(self._database, self._clock)

    @operation("POST /disable", "Switch memory off", for_operator=True)
    async def disable(self, call: Call[Disable]) -> Switches:
        await self._switches.disable(call.asked.tenant, call.asked.reason)
        return await self._now()

    @operation("POST /enable", "Switch memory on", for_operator=True)
    async def enable(self, call: Call[Enable]) -> Switches:
        await self._switches.enable(call.asked.tenant)
        return await self._now()

    async def _now(self) -> Switches:
        return Switches([Off(off.tenant, off.reason, off.at) for off in await self._switches.off()])
