"""Whether memory is switched off, as this process knows it; `switch_service` switches it."""

from __future__ import annotations

from palimpsest.store.engine import Engine
from palimpsest.store.operation.switches import EVERYBODY, switched_off


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
