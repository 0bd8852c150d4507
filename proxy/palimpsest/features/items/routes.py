"""Items and their consolidation over HTTP: what is kept beside the archive, runs that tidied it, undoing one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field

from palimpsest.core.consolidation.strength import visible
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import NOT_BLANK, Call, OfTenant, Routes, found, operation
from palimpsest.edge.admin.paging import MAX_PAGE, NextCursor, Paged, cursor_to, position_of
from palimpsest.features.items.consolidation import Consolidator, ItemSelection
from palimpsest.store.engine import Ask
from palimpsest.store.knowledge import consolidations
from palimpsest.store.knowledge.graph import edges_of_tenant
from palimpsest.store.knowledge.item_listings import item_page, tenant_ids
from palimpsest.store.turns.listings import Filter

UNKNOWN_RUN = "no such run"
NOT_STANDING = "no such run, or it was undone before"
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

    occurrence: Annotated[int, Field(description="Number of the message occurrence.")]
    start: Annotated[int, Field(description="Start in the message text, in characters.")]
    stop: Annotated[int, Field(description="End in the message text, in characters.")]


@frozen
class Item:
    """An item of mid-term memory."""

    item: Annotated[int, Field(description="Number of the item.")]
    tenant: Annotated[str, Field(description="Its tenant.")]
    conversation: Annotated[str, Field(description="Id of the conversation in which it was said.")]
    user: Annotated[str, Field(description="The user of that conversation.")]
    scope: Annotated[str, Field(description="The project of that conversation.")]
    writer: Annotated[str, Field(description="Writer that made it, with its version.")]
    text: Annotated[str, Field(description="Text of the item.")]
    question: Annotated[str, Field(description="Question that it answers; empty: none given.")]
    topic: Annotated[str, Field(description="Topic; empty: none given.")]
    said_at: Annotated[float, Field(description="When its newest source was stored, Unix seconds.")]
    uses: Annotated[int, Field(description="How often it led to a passage that was recalled.")]
    state: Annotated[
        str, Field(description="`current`, `merged`, `superseded`, `evicted`, or `hidden`: a source is retired.")
    ]
    heir: Annotated[int, Field(description="Number of the item that replaced it; 0: none.")]
    sources: Annotated[list[Source], Field(description="Its sources.")]


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

    source: Annotated[str, Field(description="First end of the relation.")]
    relation: Annotated[str, Field(description="`is-a`, `has-property`, `related-to` or `implies`.")]
    target: Annotated[str, Field(description="Second end of the relation.")]
    strength: Annotated[
        float, Field(description="Weight of its evidence: 1 for each item stated today, less for older ones.")
    ]
    users: Annotated[int, Field(description="Number of users whose items support it.")]


@frozen
class RelationList:
    """Relations with enough evidence, strongest first."""

    relations: list[RelationShown]


@frozen
class RunShown:
    """A run that changed something."""

    run: Annotated[str, Field(description="Its id.")]
    tenant: Annotated[str, Field(description="Tenant whose items it changed.")]
    at: Annotated[float, Field(description="When it began, Unix seconds.")]
    undone_at: Annotated[float | None, Field(description="When it was undone; null: it was not.")]
    merged: Annotated[int, Field(description="Items that were merged into one that says the same.")]
    superseded: Annotated[int, Field(description="Items superseded by a newer value.")]
    evicted: Annotated[int, Field(description="Items evicted because their user has too many.")]
    related: Annotated[int, Field(description="Items from which relations were extracted.")]


@frozen
class RunList:
    """Runs, the newest first."""

    runs: list[RunShown]


@dataclass(frozen=True, kw_only=True)
class OneRun(OfTenant):
    run: RunKey


@frozen
class StepShown:
    """A change to an item, and its reason."""

    item: Annotated[int, Field(description="Number of the item.")]
    text: Annotated[str, Field(description="Text of the item.")]
    heir: Annotated[int, Field(description="Number of the item that replaced it; 0: none.")]
    what: Annotated[str, Field(description="`merged`, `superseded`, `evicted` or `related`.")]
    why: Annotated[str, Field(description="The reason.")]
    at: Annotated[float, Field(description="When, Unix seconds.")]


@frozen
class StepList:
    """The changes of a run, in order; of very many the first."""

    steps: list[StepShown]


@dataclass(frozen=True, kw_only=True)
class Consolidate(OfTenant):
    user: Annotated[str | None, Field(description="Only items of this user.")] = None
    scope: Annotated[str | None, Field(description="Only items of this project.")] = None
    dry_run: Annotated[bool, Field(description="Only report what would be done.")] = False


@frozen
class ActionShown:
    """A change that a dry run would make."""

    item: Annotated[int, Field(description="Number of the item.")]
    heir: Annotated[int, Field(description="Number of the item that would replace it; 0: none.")]
    what: Annotated[str, Field(description="`merged`, `superseded` or `evicted`.")]
    why: Annotated[str, Field(description="The reason.")]


@frozen
class Consolidated:
    """What a run did."""

    runs: Annotated[list[str], Field(description="Ids of the runs, one for each changed tenant; each can be undone.")]
    items: Annotated[int, Field(description="Items examined.")]
    merged: Annotated[int, Field(description="Items that were merged into one that says the same.")]
    superseded: Annotated[int, Field(description="Items superseded by a newer value.")]
    evicted: Annotated[int, Field(description="Items evicted because their user has too many.")]
    related: Annotated[int, Field(description="Items from which relations were extracted.")]
    removed: Annotated[int, Field(description="Items evicted a month ago, and now deleted.")]
    alone: Annotated[bool, Field(description="False: another process is consolidating, and nothing was done.")]
    complete: Annotated[bool, Field(description="False: the time limit was reached; call again to continue.")]
    would: Annotated[list[ActionShown], Field(description="Of a dry run, what would be done.")]


@frozen
class Undone:
    """What was undone; items that changed again since are left as they are."""

    run: RunKey
    merged: Annotated[int, Field(description="Items that were merged.")]
    superseded: Annotated[int, Field(description="Items that were superseded.")]
    evicted: Annotated[int, Field(description="Items that were evicted.")]
    related: Annotated[int, Field(description="Items from which relations had been extracted.")]


class ConsolidationRoutes(Routes):
    @property
    def _consolidator(self) -> Consolidator:
        return self._archive.service(Consolidator.of)

    @operation("GET /items", "List items of mid-term memory")
    async def items(self, call: Call[Items]) -> ItemPage:
        asked = call.asked
        (before,) = position_of(ITEM_LIST, asked.cursor)
        which = Filter(asked.tenant, asked.conversation, user=asked.user, scope=asked.scope)
        page = await self._database.ask(partial(item_page, which=which, before=before, limit=asked.limit))
        listed = [Item(**{**one, "sources": [Source(**span) for span in one["sources"]]}) for one in page.listed]
        return ItemPage(listed, cursor_to(ITEM_LIST, page.next))

    @operation("GET /relations", "List relations of long-term memory")
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

        shown = sorted(await self._database.ask(look), key=lambda one: (-one.strength, one.source, one.target))
        return RelationList(shown[: call.asked.limit])

    @operation("GET /consolidation", "List runs of consolidation")
    async def runs(self, call: Call[OfTenant]) -> RunList:
        return RunList([RunShown(**run) for run in await self._consolidator.runs(call.asked.tenant)])

    @operation("POST /consolidation", "Consolidate items now", in_turn=False)
    async def run(self, call: Call[Consolidate]) -> Consolidated:
        """Consolidate for some seconds; `complete` says whether everything was done."""
        asked = call.asked
        outcome = await self._consolidator.run(
            ItemSelection(asked.tenant, asked.user, asked.scope), asked.dry_run, RUN_SECONDS
        )
        fields = outcome.to_json()
        return Consolidated(**{**fields, "would": [ActionShown(**action) for action in fields["would"]]})

    @operation("GET /consolidation/{run}", "Show what a run did", missing=UNKNOWN_RUN)
    async def steps(self, call: Call[OneRun]) -> StepList:
        look = partial(consolidations.steps, key=call.asked.run, tenant=call.asked.tenant, limit=STEPS)
        return StepList([StepShown(**step) for step in found(await self._database.ask(look) or None, UNKNOWN_RUN)])

    @operation("DELETE /consolidation/{run}", "Undo a run", missing=NOT_STANDING)
    async def undo(self, call: Call[OneRun]) -> Undone:
        return Undone(**found(await self._consolidator.undo(call.asked.run, call.asked.tenant), NOT_STANDING))


ROUTES = ConsolidationRoutes
