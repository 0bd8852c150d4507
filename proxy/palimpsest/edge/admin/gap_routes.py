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
from palimpsest.store.probes import live_estimate


@frozen
class Gaps:
    """What became of the newest questions that memory asked itself, of all tenants together."""

    probes: Annotated[int, Field(description="How many questions it is made of, 200 at most.")]
    since: Annotated[float, Field(description="When the oldest of them was asked, Unix seconds.")]
    until: Annotated[float, Field(description="When the newest was.")]
    write_gap: Annotated[float, Field(description="Share of their answers that is not in what is stored.")]
    write_error: Annotated[float, Field(description="The true share is so far from it at most, in 95 of 100 cases.")]
    retrieval_gap: Annotated[float, Field(description="Share that is stored and does not come back.")]
    retrieval_error: Annotated[float, Field(description="As write_error.")]
    verdict: Annotated[str, Field(description="write, retrieval, or mixed: where more gets lost.")]
    stages: Annotated[
        dict[str, int],
        Field(
            description="Questions by the stage at which the answer got lost: stored, redacted, indexed, embedded "
            "(write); candidate, ranked, likely, packed (retrieval); found: it was not."
        ),
    ]


@frozen
class GapReport:
    """The estimate, if there is one."""

    gaps: Annotated[Gaps | None, Field(description="null: nothing was asked (gaps.probes_per_hour).")]


class GapRoutes:
    """The operation that tells the estimate."""

    def __init__(self, database: Engine) -> None:
        self._database = database

    def operations(self) -> tuple[Operation[Any], ...]:
        summary = "How much is lost in writing and in recall"
        return (Operation("GET", "/gaps", summary, self.gaps, Nothing, GapReport, for_operator=True),)

    async def gaps(self, _call: Call[Nothing]) -> GapReport:
        return GapReport(gaps_of(as_json(await self._database.ask(live_estimate))))


def gaps_of(found: Json | None) -> Gaps | None:
    """An estimate as it is answered with."""
    return None if found is None else Gaps(**found)
