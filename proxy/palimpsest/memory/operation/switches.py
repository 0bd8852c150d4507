"""The switching of memory, off and on, for everybody or for one tenant, while proxies run."""

from __future__ import annotations

from functools import partial

from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Clock
from palimpsest.memory.operation.proxy_keys import stored_tenant
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


class KnownSwitches:
    """The switches as this process knows them; `learn` listens to changes of theirs."""

    def __init__(self, database: Engine) -> None:
        self._database = database
        self.off_for: frozenset[str] = frozenset()

    async def learn(self) -> None:
        """Read all switches from the database; where it does not answer, what was known stays so."""
        self.off_for = frozenset(off.tenant for off in await self._database.ask(switched_off))

    @property
    def trouble(self) -> str:
        """What is switched off, in words for `/readyz`: public, so without names and reasons."""
        if EVERYBODY in self.off_for:
            return "memory is switched off for all tenants: palimpsest enable switches it on"
        if self.off_for:
            return f"memory is switched off for {len(self.off_for)} tenants: palimpsest stats names them"
        return ""


def _stored(tenant: str) -> str:
    return stored_tenant(tenant) if tenant else EVERYBODY
