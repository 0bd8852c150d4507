"""
Trails over HTTP: at which stage a statement got lost on its way into a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from palimpsest.core.recall.trail import as_json
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import NOT_BLANK, Call, OfTenant, Refused, operation
from palimpsest.edge.admin.parts import Routes
from palimpsest.memory.recall.trails import Trails


@dataclass(frozen=True, kw_only=True)
class WhyNot(OfTenant):
    conversation: Annotated[str, Field(description="Id of the conversation.")]
    q: Annotated[str, Field(pattern=NOT_BLANK, description="The statement, or a question that it answers.")]
    turn: Annotated[str, Field(description="Id of the turn; empty: the newest that asked this, else the newest.")] = ""


@frozen
class PassedStage:
    """One stage."""

    stage: Annotated[str, Field(description="archived, indexed, lost, asked, ranked, likely, packed or said.")]
    passed: Annotated[bool | None, Field(description="Whether the statement passed this stage.")]
    found: Annotated[str, Field(description="What was found at this stage.")]
    advice: Annotated[str, Field(description="What would change the result; empty if it passed.")]


@frozen
class StatementTrail:
    """The path of a statement through the stages of one turn."""

    turn: Annotated[int, Field(description="Number of the turn, from 1.")]
    question: Annotated[str, Field(description="The query of the look-up, actual or hypothetical.")]
    stages: Annotated[list[PassedStage], Field(description="The stages, in order, as far as they could be checked.")]
    lost_at: Annotated[str | None, Field(description="The stage at which it was lost; null: it reached the request.")]
    gap: Annotated[str | None, Field(description="write: it is not stored; retrieval: it was not recalled.")]


class TrailRoutes(Routes):
    """The operation that traces a statement."""

    @operation(
        "GET /conversations/{conversation}/why-not",
        "Show at which stage a statement was lost",
        missing="There is no such conversation, or no such turn in it.",
    )
    async def why_not(self, call: Call[WhyNot]) -> StatementTrail:
        asked, trails = (
            call.asked,
            Trails(self._journal, self._database, self._parts.retriever, self._parts.policies.policy),
        )
        trace = await trails.find(asked.q, asked.tenant or None, asked.conversation, asked.turn or None)
        if trace is None:
            raise Refused(404, "no such conversation, or no such turn in it")
        trail = as_json(trace)
        return StatementTrail(**trail | {"stages": [PassedStage(**stage) for stage in trail["stages"]]})
