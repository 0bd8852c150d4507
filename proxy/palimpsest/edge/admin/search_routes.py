"""Search over HTTP: what recall would find, and at which stage a statement got lost on its way into a request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from palimpsest.core.recall.trail import as_json
from palimpsest.domain import Candidate, Query, Reach, frozen
from palimpsest.edge.admin.conversation_routes import UNKNOWN_CONVERSATION
from palimpsest.edge.admin.memory_routes import SpeakerName
from palimpsest.edge.admin.operation import NOT_BLANK, Call, OfTenant, Refused, Routes, found, operation
from palimpsest.edge.admin.paging import InPeriod, NextCursor, cursor_to, position_of
from palimpsest.memory.recall.trails import Trails
from palimpsest.store.search.passages import last_passage
from palimpsest.store.turns.listings import turns_of_messages

SEARCH_RESULTS = 20  # a screenful
MAX_RESULTS = 200
# Of these, the best, a page is a part. All pages of a search look at equally many: the order depends on how many.
DEPTH = 200
FILTERED_DEPTH = 1000  # where role or period leave some of them out
LIST = "results"
NAMED_TENANTS = 5  # in a message that fits on a line or two
NOTHING_YET = "nothing is stored yet"


@dataclass(frozen=True, kw_only=True)
class Search(InPeriod):
    q: Annotated[str, Field(pattern=NOT_BLANK, description="What to search for.")]
    conversation: Annotated[str, Field(description="Only in this conversation.")] = ""
    user: Annotated[str, Field(description="Only in conversations of this user.")] = ""
    scope: Annotated[str, Field(description="Only in this project.")] = ""
    role: SpeakerName = ""
    limit: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="How many to return at most.")] = SEARCH_RESULTS


@frozen
class Result:
    """A passage that was found."""

    memory: Annotated[int, Field(description="Number of the memory.")]
    conversation: Annotated[str, Field(description="Id of the conversation in which it was said.")]
    turn: Annotated[str, Field(description="Id of the turn in which it first appeared.")]
    occurrence: Annotated[int, Field(description="Number of the message occurrence.")]
    role: Annotated[str, Field(description="Who said it.")]
    created_at: Annotated[float, Field(description="When it was stored, Unix seconds.")]
    text: Annotated[str, Field(description="Text of the passage.")]
    score: Annotated[float, Field(description="Score by which results are ordered; comparable within one search only.")]
    probability: Annotated[float, Field(description="Probability that it answers the question.")]
    signals: Annotated[
        dict[str, tuple[int, float]], Field(description="Rank (from 1; 0: not listed) and value of each signal.")
    ]


@frozen
class Results:
    """What was found, the best first."""

    admitted: Annotated[bool, Field(description="Whether anything was found.")]
    reason: Annotated[str, Field(description="Estimated probability that the results help, or why nothing was found.")]
    lexical_only: Annotated[
        bool, Field(description="Whether only words were searched, because the embedding model is missing.")
    ]
    unindexed: Annotated[int, Field(description="Passages in scope that have no vector yet.")]
    elapsed_ms: Annotated[float, Field(description="How long the search took, milliseconds.")]
    results: list[Result]
    next: NextCursor


class SearchRoutes(Routes):
    @operation("GET /search", f"Search as recall would, in the best {DEPTH} passages", missing="No such conversation.")
    async def search(self, call: Call[Search]) -> Results:
        asked = call.asked
        newest, begin = position_of(LIST, asked.cursor, 2)
        newest = newest or await self._database.ask(last_passage)
        is_filtered = bool(asked.role or asked.since or asked.until)
        if (query := await self._query(asked)) is None:
            return Results(False, NOTHING_YET, False, 0, 0.0, [], None)
        recalled = await self._parts.retriever.recall(query, FILTERED_DEPTH if is_filtered else DEPTH)
        meant = [one for one in recalled.candidates if one.memory.id <= newest and _is_meant(one, asked)]
        page, end = meant[begin : begin + asked.limit], begin + asked.limit
        brought = await self._database.ask(lambda ask: turns_of_messages(ask, [c.memory.occurrence for c in page]))
        return Results(
            admitted=recalled.admitted,
            reason=recalled.reason,
            lexical_only=recalled.lexical_only,
            unindexed=recalled.unindexed,
            elapsed_ms=recalled.elapsed_ms,
            results=[_result(one, brought.get(one.memory.occurrence, "")) for one in page],
            next=cursor_to(LIST, newest, end) if end < len(meant) else None,
        )

    async def _query(self, asked: Search) -> Query | None:
        """What to look for; None: nothing is stored at all."""
        tenant = asked.tenant or self._parts.default_tenant
        if not tenant and not (tenant := await self._only_tenant(asked.conversation)):
            return None
        reach = Reach.USER if asked.user else Reach.TENANT
        query = Query(tenant, "", asked.q, reach=reach, user=asked.user, scope=asked.scope)
        if not asked.conversation:
            return query
        all_of_it = await self._journal.occurrences(tenant, asked.conversation)
        return replace(query, conversation=asked.conversation, reach=Reach.CONVERSATION, lost=all_of_it)

    async def _only_tenant(self, conversation: str) -> str:
        """The only tenant, of a conversation or of all; "" where none is stored yet."""
        names = await self._journal.tenants(conversation)
        if not names and conversation and await self._journal.tenants():
            raise Refused(404, UNKNOWN_CONVERSATION)
        if not names:
            return ""
        if len(names) > 1:
            some = ", ".join(names[:NAMED_TENANTS])
            raise Refused(400, f"tenant is required, such as {some}; /memory/v1/tenants lists all {len(names)}")
        return names[0]


def _is_meant(candidate: Candidate, asked: Search) -> bool:
    since, until = asked.period
    at = candidate.memory.created_at
    return (
        asked.role in ("", candidate.memory.role) and (since is None or at >= since) and (until is None or at < until)
    )


def _result(candidate: Candidate, turn: str) -> Result:
    memory = candidate.memory
    return Result(
        memory=memory.id,
        turn=turn,
        **{name: getattr(memory, name) for name in ("conversation", "occurrence", "role", "created_at", "text")},
        score=candidate.score,
        probability=candidate.probability,
        signals=dict(candidate.signals),
    )


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
    @operation(
        "GET /conversations/{conversation}/why-not",
        "Show at which stage a statement was lost",
        missing="There is no such conversation, or no such turn in it.",
    )
    async def why_not(self, call: Call[WhyNot]) -> StatementTrail:
        asked = call.asked
        trails = Trails(self._journal, self._database, self._parts.retriever, self._parts.policies.policy)
        trace = await trails.find(asked.q, asked.tenant or None, asked.conversation, asked.turn or None)
        trail = as_json(found(trace, "no such conversation, or no such turn in it"))
        return StatementTrail(**trail | {"stages": [PassedStage(**stage) for stage in trail["stages"]]})
