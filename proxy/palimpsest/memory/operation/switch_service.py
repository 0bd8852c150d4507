"""The switching of memory, off and on, for everybody or for one tenant, while proxies run."""

from __future__ import annotations

from functools import partial

from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Clock
from palimpsest.memory.operation.key_service import stored_tenant
from palimpsest.store.engine import Engine
from palimpsest.store.operation.switches import EVERYBODY, SwitchedOff, switch_off, switch_on, switched_off

REASON_CHARS = 500


class SwitchService:
    """Switches memory off and on in one database. Methods raise `MemoryFault` if it does not answer."""

    def __init__(self, database: Engine, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def disable(self, tenant: str = EVERYBODY, reason: str = "") -> SwitchedOff:
        """Switch memory off, also over restarts, for a tenant (as stored, or as `tenants.keys` names it) or all."""
        if len(reason) > REASON_CHARS:
            raise PolicyError(f"reason: must be a text of at most {REASON_CHARS} characters")
        off = SwitchedOff(_stored(tenant), reason, self._clock())
        await self._database.transact(partial(switch_off, off=off))
        return off

    async def enable(self, tenant: str = EVERYBODY) -> bool:
        """Switch memory on; whether it was off. For everybody: tenants that were switched off stay so."""
        return await self._database.transact(partial(switch_on, tenant=_stored(tenant)))

    async def off(self) -> list[SwitchedOff]:
        """The tenants for whom memory is off; "" for everybody first."""
        return await self._database.ask(switched_off)


def _stored(tenant: str) -> str:
    return stored_tenant(tenant) if tenant else EVERYBODY
