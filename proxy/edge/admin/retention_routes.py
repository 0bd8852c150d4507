"""
Retention over HTTP: `GET /memory/v1/retention` says what is due, and `POST` erases it now.
"""

from __future__ import annotations

from typing import Any

from proxy.edge.admin.operation import Call, Nothing, Operation
from proxy.memory.retention import Sweeper

RUN_SECONDS = 5.0  # of one request: whoever waits for the answer sees how far it came


class RetentionRoutes:
    """The operations of retention."""

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper = sweeper

    def operations(self) -> tuple[Operation[Any], ...]:
        return (
            Operation("GET", "/retention", "What is due by age", self.due, Nothing, dict, for_operator=True),
            Operation("POST", "/retention", "Erase what is due, now", self.run, Nothing, dict, for_operator=True),
        )

    async def due(self, _call: Call[Nothing]) -> dict[str, Any]:
        return (await self._sweeper.overview()).told()

    async def run(self, _call: Call[Nothing]) -> dict[str, Any]:
        """For some seconds; `complete` says whether all of it went."""
        sweep = await self._sweeper.sweep(RUN_SECONDS)
        return {"swept": dict(sweep.swept), "complete": sweep.is_complete, "file_bytes": sweep.bytes}
