"""The keys that the database holds, as this process knows them; `key_service` makes and revokes them."""

from __future__ import annotations

from palimpsest.domain import ProxyKey
from palimpsest.domain.ports import Clock
from palimpsest.store.engine import Engine
from palimpsest.store.operation import proxy_keys


class KnownKeys:
    """The keys of the database as this process knows them; `learn` listens to changes of theirs."""

    def __init__(self, database: Engine, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._by_digest: dict[bytes, ProxyKey] = {}
        self.are_read = False

    async def learn(self) -> None:
        """Read all keys from the database; where it does not answer, what was known stays so."""
        self._by_digest = dict(await self._database.ask(proxy_keys.active))
        self.are_read = True

    def active(self) -> dict[bytes, ProxyKey]:
        """Keys that are valid now, by their hash."""
        now = self._clock()
        return {d: key for d, key in self._by_digest.items() if key.expires_at is None or key.expires_at > now}
