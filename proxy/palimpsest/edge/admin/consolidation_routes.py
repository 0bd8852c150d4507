"""
Items and their consolidation over HTTP: what is kept beside the archive, runs that tidied it, and taking one back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from palimpsest.core.consolidation.strength import visible
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import NOT_BLANK, Call, OfTenant, Operation, Refused
from palimpsest.edge.admin.paging import MAX_PAGE, NextCursor, Paged, cursor_to, position_of
from palimpsest.memory.consolidation import Consolidator, Which
from palimpsest.ports import Clock
from palimpsest.store import consolidations
from palimpsest.store.engine import Ask, Engine
from palimpsest.store.graph import edges_of_tenant
from palimpsest.store.item_listings import ItemFilter, item_page, tenant_ids

UNKNOWN_RUN = "no such run"
NOT_STANDING = "no such run, or it was taken back before"
ITEM_LIST = "items"
RUN_SECONDS = 20.0  # of one request: whoever waits for the answer sees how far it came
STEPS = 1_000  # of a run that are shown

RunKey = Annotated[str, Field(description="Id of the run.", pattern=NOT_BLANK)]


@dataclass(frozen=True, kw_only=True)
class Items(Paged):
    conversation: Annotated[str, Field(description="Only those of this conversation.")] = ""
    user: Annotated[str, Field(description="Only those of this user.")] = ""
    scope: Annotated[str, Field(description="Only those of this project.")] = ""


@frozen
class Source:
    """Where an item was said."""

    occurrence: Annotated[int, Field(description="Number of the message in its place.")]
    start: Annotated[int, Field(description="Where it begins in the message's text, in characters.")]
    stop: Annotated[int, Field(description="Where it ends.")]


@frozen
class Item:
    """What a writer kept."""

    item: Annotated[int, Field(description="Its number.")]
    tenant: Annotated[str, Field(description="Whose it is.")]
    conversation: Annotated[str, Field(description="Id of the conversation in which it was said.")]
    user: Annotated[str, Field(description="The user of that conversation.")]
    scope: Annotated[str, Field(description="Its project.")]
    writer: Annotated[str, Field(description="Who kept it, with a version.")]
    text: Annotated[str, Field(description="What it says.")]
    question: Annotated[str, Field(description="What it answers; empty: not said.")]
    topic: Annotated[str, Field(description="What it is about; empty: not said.")]
    said_at: Annotated[float, Field(description="When the newest of its sources was said, Unix seconds.")]
    uses: Annotated[int, Field(description="How often it led to a passage that was recalled.")]
    state: Annotated[
        str, Field(description="`current`, `merged`, `superseded`, `evicted`, or `hidden`: a source is retired.")
    ]
    heir: Annotated[int, Field(description="Number of the item that stands for it; 0: none.")]
    sources: Annotated[list[Source], Field(description="Where it was said.")]


@frozen
class ItemPage:
    """Items, the newest first."""

    items: list[Item]
    next: NextCursor


@dataclass(frozen=True, kw_only=True)
class Relations(OfTenant):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE, description="How many to return at most.")] = MAX_PAGE


@frozen
class RelationShown:
    """A relation of the long-term graph."""

    source: Annotated[str, Field(description="What is related.")]
    relation: Annotated[str, Field(description="`is-a`, `has-property`, `related-to` or `implies`.")]
    target: Annotated[str, Field(description="What it is related to.")]
    strength: Annotated[float, Field(description="What speaks for it: 1 for each item that was said today.")]
    users: Annotated[int, Field(description="How many users' items speak for it.")]


@frozen
class RelationList:
    """Relations that enough speaks for, the strongest first."""

    relations: list[RelationShown]


@frozen
class RunShown:
    """A run that changed something."""

    run: Annotated[str, Field(description="Its id.")]
    tenant: Annotated[str, Field(description="Whose items it changed.")]
    at: Annotated[float, Field(description="When it began, Unix seconds.")]
    undone_at: Annotated[float | None, Field(description="When it was taken back; null: it stands.")]
    merged: Annotated[int, Field(description="Items that were merged into one that says the same.")]
    superseded: Annotated[int, Field(description="Items whose value a newer one replaced.")]
    evicted: Annotated[int, Field(description="Items that gave way because their user has too many.")]
    related: Annotated[int, Field(description="Items that relations were taken from.")]


@frozen
class RunList:
    """Runs, the newest first."""

    runs: list[RunShown]


@dataclass(frozen=True, kw_only=True)
class OneRun(OfTenant):
    run: RunKey


@frozen
class StepShown:
    """What became of an item, and why."""

    item: Annotated[int, Field(description="Number of the item.")]
    text: Annotated[str, Field(description="What it says.")]
    heir: Annotated[int, Field(description="Number of the item that stands for it; 0: none.")]
    what: Annotated[str, Field(description="`merged`, `superseded`, `evicted` or `related`.")]
    why: Annotated[str, Field(description="The reason.")]
    at: Annotated[float, Field(description="When, Unix seconds.")]


@frozen
class StepList:
    """What a run did, in order; of very many the first."""

    steps: list[StepShown]


@dataclass(frozen=True, kw_only=True)
class Consolidate(OfTenant):
    user: Annotated[str | None, Field(description="Only items of this user.")] = None
    scope: Annotated[str | None, Field(description="Only items of this project.")] = None
    dry_run: Annotated[bool, Field(description="Only say what would be done.")] = False


@frozen
class ActionShown:
    """What would become of an item."""

    item: Annotated[int, Field(description="Number of the item.")]
    heir: Annotated[int, Field(description="Number of the item that would stand for it; 0: none.")]
    what: Annotated[str, Field(description="`merged`, `superseded` or `evicted`.")]
    why: Annotated[str, Field(description="The reason.")]


@frozen
class Consolidated:
    """What a run did."""

    runs: Annotated[
        list[str], Field(description="Ids of what it changed, one for each tenant; each can be taken back.")
    ]
    items: Annotated[int, Field(description="Items that were looked at.")]
    merged: Annotated[int, Field(description="Items that were merged into one that says the same.")]
    superseded: Annotated[int, Field(description="Items whose value a newer one replaced.")]
    evicted: Annotated[int, Field(description="Items that gave way because their user has too many.")]
    related: Annotated[int, Field(description="Items that relations were taken from.")]
    removed: Annotated[int, Field(description="Items that gave way a month ago, and are gone now.")]
    alone: Annotated[bool, Field(description="False: another process consolidates now, and nothing was done.")]
    complete: Annotated[bool, Field(description="False: the time was over; asking again goes on.")]
    would: Annotated[list[ActionShown], Field(description="Of a dry run, what would be done.")]


@frozen
class Undone:
    """What was taken back; less where other things became of items since."""

    run: RunKey
    merged: Annotated[int, Field(description="Items that were merged.")]
    superseded: Annotated[int, Field(description="Items that were superseded.")]
    evicted: Annotated[int, Field(description="Items that were evicted.")]
    related: Annotated[int, Field(description="Items that relations had been taken from.")]


class ConsolidationRoutes:
    """The operations on items, relations and runs."""

    def __init__(self, consolidator: Consolidator, database: Engine, clock: Clock) -> None:
        self._consolidator = consolidator
        self._database = database
        self._clock = clock

    def operations(self) -> tuple[Operation[Any], ...]:
        return (
            Operation("GET", "/items", "List items of mid-term memory", self.items, Items, ItemPage),
            Operation(
                "GET", "/relations", "List relations of long-term memory", self.relations, Relations, RelationList
            ),
            Operation("GET", "/consolidation", "List runs of consolidation", self.runs, OfTenant, RunList),
            Operation(
                *("POST", "/consolidation", "Consolidate items, now", self.run, Consolidate, Consolidated),
                in_turn=False,
            ),
            Operation(
                *("GET", "/consolidation/{run}", "Show what a run did", self.steps, OneRun, StepList),
                statuses={404: UNKNOWN_RUN},
            ),
            Operation(
                *("DELETE", "/consolidation/{run}", "Take a run back", self.undo, OneRun, Undone),
                statuses={404: NOT_STANDING},
            ),
        )

    async def items(self, call: Call[Items]) -> ItemPage:
        asked = call.asked
        (before,) = position_of(ITEM_LIST, asked.cursor)
        which = ItemFilter(asked.tenant, asked.conversation, asked.user, asked.scope)
        page = await self._database.ask(partial(item_page, which=which, before=before, limit=asked.limit))
        listed = [Item(**{**one, "sources": [Source(**span) for span in one["sources"]]}) for one in page.items]
        return ItemPage(listed, cursor_to(ITEM_LIST, page.next))

    async def relations(self, call: Call[Relations]) -> RelationList:
        now = self._clock()

        def look(ask: Ask) -> list[RelationShown]:
            return [
                RelationShown(
                    *(stored.edge.source.name, stored.edge.relation, stored.edge.target.name, round(strength, 3)),
                    users=len({one.user for one in stored.evidence if one.user}),
                )
                for tenant, _ in tenant_ids(ask, call.asked.tenant)
                for stored in edges_of_tenant(ask, tenant)
                if (strength := visible(stored.edge.relation, stored.evidence, None, False, now))
            ]

        found = sorted(await self._database.ask(look), key=lambda shown: (-shown.strength, shown.source, shown.target))
        return RelationList(found[: call.asked.limit])

    async def runs(self, call: Call[OfTenant]) -> RunList:
        return RunList([RunShown(**run) for run in await self._consolidator.runs(call.asked.tenant)])

    async def run(self, call: Call[Consolidate]) -> Consolidated:
        """For some seconds; `complete` says whether all of it was done."""
        asked = call.asked
        outcome = await self._consolidator.run(Which(asked.tenant, asked.user, asked.scope), asked.dry_run, RUN_SECONDS)
        told = outcome.to_json()
        return Consolidated(**{**told, "would": [ActionShown(**action) for action in told["would"]]})

    async def steps(self, call: Call[OneRun]) -> StepList:
        look = partial(consolidations.steps, key=call.asked.run, tenant=call.asked.tenant, limit=STEPS)
        if not (found := await self._database.ask(look)):
            raise Refused(404, UNKNOWN_RUN)
        return StepList([StepShown(step.item, step.text, step.heir, step.what, step.why, step.at) for step in found])

    async def undo(self, call: Call[OneRun]) -> Undone:
        found = await self._consolidator.undo(call.asked.run, call.asked.tenant)
        if found is None:
            raise Refused(404, NOT_STANDING)
        return Undone(**found)
