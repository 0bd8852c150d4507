"""Facts over HTTP: list and show them, tell one, pin one, forget one for good, and have all of them extracted anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from palimpsest.domain import Fact, FactCategory
from palimpsest.domain.facts import CATEGORIES, by_tool
from palimpsest.domain.frozen import frozen, json_value
from palimpsest.edge.admin.operation import (
    NOT_BLANK,
    Call,
    Nothing,
    OfTenant,
    Refused,
    Routes,
    found,
    operation,
    response_type,
)
from palimpsest.edge.admin.paging import NextCursor, Paged, Time, cursor_to, position_of, seconds
from palimpsest.features.facts.service import NAME_CHARS, VALUE_CHARS, Facts, filter_of, new_fact
from palimpsest.store.knowledge.facts import place_of

UNKNOWN = "no such fact"
OFF = "facts are not stored (`facts.policy`), or the body is invalid"
LIST = "facts"
API = "api"  # the tool that a fact was told with

Id = Annotated[str, Field(description="Id of the fact.")]


@dataclass(frozen=True, kw_only=True)
class FactList(Paged):
    user: Annotated[str, Field(description="Only those of this user.")] = ""
    scope: Annotated[str, Field(description="Only those of this project.")] = ""
    conversation: Annotated[str, Field(description="Only facts stated in this conversation.")] = ""
    category: Annotated[FactCategory | None, Field(description=f"Only this kind: {CATEGORIES}.")] = None
    subject: Annotated[str, Field(description="Only facts about these subjects; * matches anything.")] = ""
    matching: Annotated[
        str, Field(description='Only facts whose "subject slot value" contains this; * matches anything.')
    ] = ""
    history: Annotated[bool, Field(description="Include superseded facts and facts that are not valid now.")] = False


@dataclass(frozen=True, kw_only=True)
class OneFact(OfTenant):
    fact: Id


@dataclass(frozen=True, kw_only=True)
class NewFact(OfTenant):
    """A fact to be added."""

    subject: Annotated[
        str, Field(description="What it is about: `user`, `project`, a name.", pattern=NOT_BLANK, max_length=NAME_CHARS)
    ]
    slot: Annotated[
        str,
        Field(
            description="The property that it states: `port`, `home town`.", pattern=NOT_BLANK, max_length=NAME_CHARS
        ),
    ]
    value: Annotated[str, Field(description="The value of the property.", pattern=NOT_BLANK, max_length=VALUE_CHARS)]
    user: Annotated[str, Field(description="The user whose requests may use it.")] = ""
    scope: Annotated[str, Field(description="The project whose requests may use it.")] = ""
    category: Annotated[FactCategory, Field(description=f"Its kind: {CATEGORIES}.")] = FactCategory.NOTE
    valid_until: Annotated[
        Time, Field(description="Until when it holds: a date, or a date with a time (UTC unless it says).")
    ] = None
    pinned: Annotated[bool, Field(description="Whether it is listed before all others.")] = False


if TYPE_CHECKING:
    FactShown = Any
else:
    FactShown = response_type(Fact)


@frozen
class FactPage:
    """Facts, the newest first."""

    facts: list[FactShown]
    next: NextCursor
    are_kept: Annotated[bool, Field(description="Whether facts are stored at all (`facts.policy`).")]


@frozen
class ForgottenFact:
    """A fact that is forgotten. The messages that stated it stay."""

    id: Id
    statements: Annotated[int, Field(description="How often it had been stated.")]


@frozen
class Rebuilding:
    """Facts are being extracted again."""

    rebuilding: Annotated[bool, Field(description="Always true.")]


class FactRoutes(Routes):
    @property
    def _facts(self) -> Facts:
        return self._archive.service(Facts.of)

    @operation("POST /facts/rebuild", "Extract the facts of all messages again", status=202, for_operator=True)
    async def rebuild(self, _call: Call[Nothing]) -> Rebuilding:
        await self._facts.start_over()
        return Rebuilding(True)

    @operation("GET /facts", "List facts")
    async def list_facts(self, call: Call[FactList]) -> FactPage:
        asked = call.asked
        after_us, after_id = position_of(LIST, asked.cursor, 2)
        listed = await self._facts.list_facts(filter_of(asked), asked.limit + 1, (after_us, after_id))
        page = listed[: asked.limit]
        behind = place_of(page[-1]) if len(listed) > len(page) else (0, 0)
        return FactPage([json_value(fact) for fact in page], cursor_to(LIST, *behind), self._facts.are_kept)

    @operation("POST /facts", "Add a fact", status=201)
    async def add(self, call: Call[NewFact]) -> FactShown:
        asked = call.asked
        tenant = asked.tenant or self._parts.default_tenant
        if not tenant:
            raise Refused(400, "tenant: required; name the tenant that the fact belongs to")
        source = by_tool(API, who="operator" if not call.caller.tenant else "")
        fact = new_fact(asked, tenant, source, seconds(asked.valid_until), asked.pinned)
        return json_value(await self._facts.add(fact))

    @operation("GET /facts/{fact}", "Show a fact", missing=UNKNOWN)
    async def show(self, call: Call[OneFact]) -> FactShown:
        return json_value(await self._found(call))

    @operation("DELETE /facts/{fact}", "Forget a fact for good", missing=UNKNOWN)
    async def forget(self, call: Call[OneFact]) -> ForgottenFact:
        fact = await self._found(call)
        return ForgottenFact(fact.id, await self._facts.forget(fact.tenant, fact.id))

    @operation("PUT /facts/{fact}/pin", "Pin a fact", missing=UNKNOWN)
    async def pin(self, call: Call[OneFact]) -> FactShown:
        return await self._pinned(call, True)

    @operation("DELETE /facts/{fact}/pin", "Unpin a fact", missing=UNKNOWN)
    async def unpin(self, call: Call[OneFact]) -> FactShown:
        return await self._pinned(call, False)

    async def _pinned(self, call: Call[OneFact], is_pinned: bool) -> FactShown:
        fact = await self._found(call)
        await self._facts.pin(fact.tenant, fact.id, is_pinned)
        return await self.show(call)

    async def _found(self, call: Call[OneFact]) -> Fact:
        return found(await self._facts.by_id_of_any_tenant(call.asked.fact, call.asked.tenant), UNKNOWN)


ROUTES = FactRoutes
