"""
The tools of facts with their names, descriptions and schemas, as agents see them.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from palimpsest.domain import FactCategory, Speaker
from palimpsest.features.facts.service import Facts
from palimpsest.features.facts.tools import FactsAnswer, FactTools
from palimpsest.features.tool import ERASES, NOTES, READS, Toolset, answered, text_result
from palimpsest.memory.archive import Archive
from palimpsest.settings.policy import Policy


def toolset(archive: Archive, policy: Policy, off_for: frozenset[str]) -> Toolset:
    """Those over an archive; see `Feature.toolset`."""
    return _Offered(FactTools(archive.made(Facts.of), policy, off_for)).all()


class _Offered:
    """The functions behind the tools; their docstrings are what agents read."""

    def __init__(self, facts: FactTools) -> None:
        self._facts = facts

    def all(self) -> Toolset:
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
        return await answered(
            context, lambda who: _of_facts(self._facts.recall(who, query.strip(), category, scope.strip()))
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
        return await answered(
            context,
            lambda who: _of_facts(
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

        return await answered(context, forgotten)


async def _of_facts(asked: Awaitable[FactsAnswer]) -> CallToolResult:
    found = await asked
    warning = "" if found.matches or not found.facts else "No fact has these words. The newest:\n"
    return text_result(warning + found.text)


def _program(context: Context) -> str:
    """The program that calls, as it names itself."""
    request = context.request_context.request
    return str(request.headers.get("user-agent", "")).split(" ")[0] if request is not None else ""
