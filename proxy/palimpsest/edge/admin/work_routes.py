"""The work record over HTTP: what was done in a conversation, made from its archived messages when it is asked for."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from palimpsest.core.work.account import LostMessage
from palimpsest.core.work.calls import Act
from palimpsest.core.work.record import work_record
from palimpsest.domain import AccountLine, frozen
from palimpsest.edge.admin.conversation_routes import UNKNOWN_CONVERSATION, OneConversation, conversation_named
from palimpsest.edge.admin.operation import Call, Routes, operation
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import newest_texts
from palimpsest.store.turns.listings import turns_of_messages

READ_MESSAGES, READ_CHARS = 2_000, 8_000  # the newest; characters of each: what a tool printed at length is no work
SHOWN = 200  # files and commands, the newest of each

Occurrence = Annotated[int, Field(description="Number of the message that tells it.")]
TurnOf = Annotated[
    str, Field(description="Id of the turn that brought this message; empty: it is not stored any more.")
]


@frozen
class File:
    """A file that a tool touched."""

    path: Annotated[str, Field(description="Its path, as the tool was given it.")]
    act: Annotated[Act, Field(description="created, edited, deleted, or read where nothing else was done.")]
    times: Annotated[int, Field(description="Number of calls about it.")]
    occurrence: Occurrence
    turn: TurnOf


@frozen
class Command:
    """A command that was run, by its newest run."""

    command: Annotated[str, Field(description="The command, in one line.")]
    outcome: Annotated[str, Field(description="How it ended; empty: its result does not say.")]
    is_failure: Annotated[bool, Field(description="Whether it failed.")]
    is_open: Annotated[bool, Field(description="Whether it failed, was meant to pass, and did not pass later.")]
    is_lasting: Annotated[bool, Field(description="Whether it left something behind: an installation, a branch.")]
    occurrence: Occurrence
    turn: TurnOf


@frozen
class Quote:
    """A plan or a rule."""

    text: Annotated[str, Field(description="As it was said.")]
    occurrence: Occurrence
    turn: TurnOf


@frozen
class Work:
    """The work of a conversation."""

    conversation: Annotated[str, Field(description="Id of the conversation.")]
    messages: Annotated[int, Field(description="Messages of the conversation.")]
    read: Annotated[int, Field(description="The newest of them, from which this was made.")]
    plan: Annotated[Quote | None, Field(description="The newest plan that was made with a tool; null: none was.")]
    rules: Annotated[list[Quote], Field(description="What the user wants to hold, the newest last.")]
    files: Annotated[list[File], Field(description=f"Files, the newest first, at most {SHOWN}.")]
    commands: Annotated[list[Command], Field(description=f"Commands, the newest first, at most {SHOWN}.")]


class WorkRoutes(Routes):
    @operation("GET /conversations/{conversation}/work", "Show the work record", missing=UNKNOWN_CONVERSATION)
    async def work(self, call: Call[OneConversation]) -> Work:
        named = await conversation_named(self._database, call.asked)
        tenant, conversation = named["tenant"], named["conversation"]
        stored = await self._journal.occurrences(tenant, conversation)
        return await self._database.ask(lambda ask: _work(ask, conversation, stored))


def _work(ask: Ask, conversation: str, stored: frozenset[int]) -> Work:
    rows = newest_texts(ask, stored, READ_MESSAGES, READ_CHARS)
    made = work_record([LostMessage(*row) for row in rows])
    files, commands = made.files[:SHOWN], made.commands[:SHOWN]
    lines = [*made.rules, *([made.plan] if made.plan else [])]
    named = [one.occurrence for one in files] + [one.occurrence for one in commands]
    named += [line.occurrences[0] for line in lines]
    brought = turns_of_messages(ask, named)

    def quoted(line: AccountLine) -> Quote:
        return Quote(line.text, line.occurrences[0], brought.get(line.occurrences[0], ""))

    return Work(
        conversation=conversation,
        messages=len(stored),
        read=len(rows),
        plan=quoted(made.plan) if made.plan else None,
        rules=[quoted(line) for line in made.rules],
        files=[File(one.path, one.act, one.times, one.occurrence, brought.get(one.occurrence, "")) for one in files],
        commands=[
            Command(
                *(one.command, one.outcome, one.is_failure, one.is_open, one.is_lasting),
                *(one.occurrence, brought.get(one.occurrence, "")),
            )
            for one in commands
        ],
    )
