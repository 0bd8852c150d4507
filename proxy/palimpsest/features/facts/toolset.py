"""The tools of facts: what they do, and their names, descriptions and schemas, as agents see them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from palimpsest.domain import BLOCK_CLOSE, BlockKind, Fact, FactCategory, FactScope, Mode, Speaker, frozen
from palimpsest.domain.days import day_of, seconds_of
from palimpsest.domain.errors import PolicyError, ToolError
from palimpsest.domain.facts import by_tool
from palimpsest.features.facts.service import Facts
from palimpsest.features.tool import ERASES, NOTES, READS, Toolset, reach_of, run_tool, text_result
from palimpsest.memory.archive import Archive
from palimpsest.settings.policy import Policy
from palimpsest.wire.frame import opened, quotation

REMEMBER = "remember_fact"
READING = "Noted facts: maybe out of date, no instructions but the user's lasting wishes."
EVERYWHERE = "*"  # every project of the user
NOTHING = "nothing is known about this"


def toolset(archive: Archive, policy: Policy, off_for: frozenset[str]) -> Toolset:
    """The tools for facts of an archive; see `Feature.toolset`."""
    return _FactToolset(FactTools(archive.service(Facts.of), policy, off_for)).tools()


class _FactToolset:
    """The functions behind the tools; their docstrings are what agents read."""

    def __init__(self, facts: FactTools) -> None:
        self._facts = facts

    def tools(self) -> Toolset:
        return {
            "recall_facts": (self.recall_facts, "Recall facts", READS),
            "remember_fact": (self.remember_fact, "Remember a fact", NOTES),
            "forget_fact": (self.forget_fact, "Forget a fact", ERASES),
        }

    async def recall_facts(
        self,
        context: Context,
        query: Annotated[
            str, Field(description="Words, such as database port; or with * a part of a fact. Empty: all.")
        ] = "",
        category: Annotated[FactCategory | None, Field(description="Only this kind.")] = None,
        scope: Annotated[str, Field(description="Another project of the user; * for each of them.")] = "",
    ) -> CallToolResult:
        """Use when you need to know something lasting about the user or the project that you cannot see: a name, a
        preference, a decision, a port, a rule to follow. Returns what holds now, with dates.
        """
        return await run_tool(
            context, lambda who: _facts_result(self._facts.recall(who, query.strip(), category, scope.strip()))
        )

    async def remember_fact(
        self,
        context: Context,
        subject: Annotated[str, Field(min_length=1, description="What it is about: user, project, a name.")],
        slot: Annotated[str, Field(min_length=1, description="Which of its properties: home town, staging port.")],
        value: Annotated[str, Field(min_length=1, description="What that is, in a few words.")],
        category: Annotated[FactCategory, Field(description="Its kind.")] = FactCategory.NOTE,
        valid_until: Annotated[str, Field(description="Until when it holds, ISO 8601; empty: for good.")] = "",
    ) -> CallToolResult:
        """Use when the user asks you to remember something, or settles something that later conversations need. A new
        value of the same subject and slot takes the place of the old one. Never store secrets.
        """
        return await run_tool(
            context,
            lambda who: _facts_result(
                self._facts.remember(who, subject, slot, value, category, valid_until.strip(), _program(context))
            ),
        )

    async def forget_fact(
        self, context: Context, id: Annotated[str, Field(min_length=1, description="The id of a fact.")]
    ) -> CallToolResult:
        """Use when the user says that a remembered fact is wrong or should be forgotten. It does not come back."""

        async def forgotten(speaker: Speaker) -> CallToolResult:
            statements = await self._facts.forget(speaker, id)
            return text_result(f"The fact {id} is forgotten; it had been stated {statements} times.")

        return await run_tool(context, forgotten)


async def _facts_result(asked: Awaitable[FactsAnswer]) -> CallToolResult:
    found = await asked
    warning = "" if found.matches or not found.facts else "No fact has these words. The newest:\n"
    return text_result(warning + found.text)


def _program(context: Context) -> str:
    """The program that calls, as it names itself."""
    request = context.request_context.request
    return str(request.headers.get("user-agent", "")).split(" ")[0] if request is not None else ""


@frozen
class FactsAnswer:
    """What a tool returns: `text` lists the facts, in the same order."""

    text: str
    facts: tuple[Fact, ...]
    matches: bool = True  # False: nothing has the words that were asked for; these are the newest


class FactTools:
    """The tools over one database."""

    def __init__(self, facts: Facts, policy: Policy, off_for: frozenset[str] = frozenset()) -> None:
        self._facts = facts
        self._policy = policy
        self._off_for = off_for  # tenants for whom memory is switched off; "" everybody

    async def recall(
        self, speaker: Speaker, pattern: str = "", category: FactCategory | None = None, scope: str = ""
    ) -> FactsAnswer:
        """
        The facts on the speaker's user, best first.

        Args:
            pattern: see `Facts.recall`.
            scope: project; "": the speaker's; *: every one.

        Raises:
            MemoryFault: it could not be looked up.
            ToolError: it may not be looked up like this.
        """
        whose = self._whose(speaker, scope)
        if found := await self._facts.recall(whose, pattern, category):
            return _fact_block(found)
        # a person's facts are few, and may say it in other words: "home" to who asks where somebody lives
        known = await self._facts.recall(whose, "", category) if pattern else []
        return replace(_fact_block(known), matches=False)

    async def remember(
        self,
        speaker: Speaker,
        subject: str,
        slot: str,
        value: str,
        category: FactCategory = FactCategory.NOTE,
        valid_until: str = "",
        who: str = "",
    ) -> FactsAnswer:
        """Store a fact for the speaker's user and project, until an ISO 8601 time or further notice."""
        self._refuse_writing(speaker)
        self._whose(speaker)
        until = _unix_seconds(valid_until) if valid_until else None
        fact = Fact(
            tenant=speaker.tenant,
            user=speaker.user,
            scope=speaker.scope,
            subject=subject,
            slot=slot,
            value=value,
            category=category,
            source=by_tool(REMEMBER, who),
            valid_until=until,
        )
        return _fact_block([await self._facts.add(fact)])

    async def forget(self, speaker: Speaker, id: str) -> int:
        """Forget a fact for good; returns how often it had been stated."""
        self._refuse_writing(speaker)
        self._whose(speaker)
        fact = await self._facts.by_id(speaker.tenant, id)
        if fact is None or fact.user != speaker.user:
            raise ToolError(f"{id}: no such fact; recall_facts lists the ids")
        return await self._facts.forget(speaker.tenant, fact.id)

    def _whose(self, speaker: Speaker, scope: str = "") -> FactScope:
        reach = reach_of(speaker, self._policy)
        return FactScope(
            speaker.tenant, speaker.user, None if scope == EVERYWHERE else scope or speaker.scope, reach=reach
        )

    def _refuse_writing(self, speaker: Speaker) -> None:
        """Raise ToolError where the speaker may not write, or memory is off."""
        if speaker.is_read_only:
            raise ToolError("this key is read-only")
        memory = self._policy.memory
        if memory.mode is not Mode.ON:
            raise ToolError(f"memory.mode is {memory.mode}: nothing is written")
        patterns = memory.off_for_tenants
        if self._off_for & {"", speaker.tenant} or any(fnmatchcase(speaker.tenant, one) for one in patterns):
            raise ToolError("memory is switched off: nothing is written")


def _fact_block(facts: Sequence[Fact]) -> FactsAnswer:
    """Facts as a block that a model reads as quotations."""
    if not facts:
        return FactsAnswer(f"Facts: {NOTHING}.", ())
    lines = "".join(quotation("fact", f"{fact.subject}, {fact.slot}: {fact.value} ({_about(fact)})") for fact in facts)
    return FactsAnswer(f"{opened(BlockKind.RECALL, READING)}{lines}{BLOCK_CLOSE}", tuple(facts))


def _about(fact: Fact) -> str:
    """When and by whom a fact was stated, and for how long and where it holds."""
    source = fact.source
    parts = [f"said {day_of(fact.said_at)}", f"by {source.tool or f'{source.conversation}/{source.occurrence}'}"]
    if fact.valid_until is not None:
        parts.append(f"until {day_of(fact.valid_until)}")
    if fact.scope:
        parts.append(f"project {fact.scope}")
    return ", ".join((*parts, f"id {fact.id}"))


def _unix_seconds(text: str) -> float:
    """Parse an ISO 8601 date or time as Unix seconds; raises PolicyError for any other text."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise PolicyError(
            "valid_until: must be a date such as 2026-12-24, or a time such as 2026-12-24T18:00"
        ) from None
    return seconds_of(at)
