"""
Statistics over HTTP: how large the store is, and how far behind its index.
"""

from __future__ import annotations

from typing import Any

from proxy.edge.admin.operation import Call, Nothing, Operation
from proxy.store.journal import Journal


class StatsRoutes:
    """The operation that counts."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def operations(self) -> tuple[Operation[Any], ...]:
        return (Operation("GET", "/stats", "Counts of all tenants", self.stats, Nothing, dict, for_operator=True),)

    async def stats(self, _call: Call[Nothing]) -> dict[str, Any]:
        return dict(await self._journal.stats())
