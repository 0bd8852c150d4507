"""
Gaps over HTTP: how much memory loses in writing and in recall, as its probes say.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from palimpsest.core.recall.gaps import as_json
from palimpsest.domain import Json
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, Operation
from palimpsest.store.engine import Engine
from palimpsest.store.operation.probes import live_estimate


@frozen
class Gaps:
    """Estimated losses, from the newest questions that memory asked itself; all tenants together."""

    probes: Annotated[int, Field(description="Number of questions in the estimate, at most 200.")]
    since: Annotated[float, Field(description="When the oldest of them was asked, Unix seconds.")]
    until: Annotated[float, Field(description="When the newest of them was asked.")]
    write_gap: Annotated[float, Field(description="Share of answers that are not stored.")]
    write_error: Annotated[float, Field(description="Half the width of the 95 % confidence interval.")]
    retrieval_gap: Annotated[float, Field(description="Share of answers that are stored but not recalled.")]
    retrieval_error: Annotated[float, Field(description="Half the width of its 95 % confidence interval.")]
    verdict: Annotated[str, Field(description="Where more is lost: write, retrieval, or mixed.")]
    stages: Annotated[
        dict[str, int],
        Field(
            description="Questions by the stage at which the answer was lost: stored, redacted, indexed, embedded "
            "(write); candidate, ranked, likely, packed (retrieval); found: it was not."
        ),
    ]


@frozen
class GapReport:
    """The estimate, if there is one."""

    gaps: Annotated[
        Gaps | None, Field(description="The estimate; null: no questions were asked (gaps.probes_per_hour).")
    ]


class GapRoutes:
    """The operation that returns the estimate."""

    def __init__(self, database: Engine) -> None:
        self._database = database

    def operations(self) -> tuple[Operation[Any], ...]:
        summary = "How much is lost in writing and in recall"
        return (Operation("GET", "/gaps", summary, self.gaps, Nothing, GapReport, for_operator=True),)

    async def gaps(self, _call: Call[Nothing]) -> GapReport:
        return GapReport(gaps_of(as_json(await self._database.ask(live_estimate))))


def gaps_of(found: Json | None) -> Gaps | None:
    """The estimate as a response value."""
    return None if found is None else Gaps(**found)
