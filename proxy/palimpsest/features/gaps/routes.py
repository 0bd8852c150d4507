"""Gaps over HTTP: how much memory loses in writing and in recall, as its probes say."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from palimpsest.core.recall.gaps import as_json
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, Routes, operation
from palimpsest.edge.admin.stats_routes import Gaps, read_gaps
from palimpsest.store.operation.probes import live_estimate


@frozen
class GapReport:
    """The estimate, if there is one."""

    gaps: Annotated[
        Gaps | None, Field(description="The estimate; null: no questions were asked (gaps.probes_per_hour).")
    ]


class GapRoutes(Routes):
    @operation("GET /gaps", "How much is lost in writing and in recall", for_operator=True)
    async def gaps(self, _call: Call[Nothing]) -> GapReport:
        return GapReport(read_gaps(as_json(await self._database.ask(live_estimate))))


ROUTES = GapRoutes
