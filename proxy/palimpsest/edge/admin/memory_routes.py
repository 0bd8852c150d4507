"""Memories over HTTP: the passages that can be found, each with the turn that it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field

from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, OfTenant, Routes, found, operation
from palimpsest.edge.admin.paging import InPeriod, NextCursor, cursor_to, position_of
from palimpsest.store.turns.listings import Filter, memories, memory

UNKNOWN_MEMORY = "no such memory"
LIST = "memories"
MAX_ID = 2**63 - 1  # of a row of the database

SpeakerName = Annotated[str, Field(description="Only what this role said: `user`, `assistant`, `tool` ...")]


@dataclass(frozen=True, kw_only=True)
class Memories(InPeriod):
    conversation: Annotated[str, Field(description="Only those of this conversation.")] = ""
    user: Annotated[str, Field(description="Only those of this user.")] = ""
    scope: Annotated[str, Field(description="Only those of this project.")] = ""
    role: SpeakerName = ""


@dataclass(frozen=True, kw_only=True)
class OneMemory(OfTenant):
    memory: Annotated[int, Field(ge=1, le=MAX_ID, description="Number of the memory.")]


@frozen
class Memory:
    """A passage that can be found, and where it comes from."""

    memory: Annotated[int, Field(description="Number of the memory.")]
    tenant: Annotated[str, Field(description="Its tenant.")]
    conversation: Annotated[str, Field(description="Id of the conversation in which it was said.")]
    turn: Annotated[str, Field(description="Id of the turn in which it first appeared.")]
    occurrence: Annotated[int, Field(description="Number of the message occurrence.")]
    position: Annotated[int, Field(description="Position of the message in that request, from 0.")]
    role: Annotated[str, Field(description="Who said it: `user`, `assistant`, `tool` ...")]
    kind: Annotated[str, Field(description="`episodic`, `semantic` or `procedural`.")]
    tags: Annotated[list[str], Field(description="Paths, names, versions and similar terms that it mentions.")]
    start: Annotated[int, Field(description="Start of the passage in the message text, in characters.")]
    stop: Annotated[int, Field(description="End of the passage, in characters.")]
    text: Annotated[str, Field(description="Text of the passage.")]
    created_at: Annotated[float, Field(description="When it was stored, Unix seconds.")]
    is_indexed: Annotated[
        bool, Field(description="Whether it has a vector, and is found by meaning as well as by words.")
    ]


@frozen
class MemoryPage:
    """Memories, the newest first."""

    memories: list[Memory]
    next: NextCursor


class MemoryRoutes(Routes):
    @operation("GET /memories", "List memories")
    async def list_memories(self, call: Call[Memories]) -> MemoryPage:
        asked = call.asked
        since, until = asked.period
        which = Filter(
            asked.tenant, asked.conversation, "", asked.user, asked.scope, asked.role, "", False, since, until
        )
        (after,) = position_of(LIST, asked.cursor)
        page = await self._database.ask(partial(memories, which=which, after=after, limit=asked.limit), which.tenant)
        return MemoryPage([Memory(**one) for one in page.listed], cursor_to(LIST, page.next))

    @operation("GET /memories/{memory}", "Show a memory", missing=UNKNOWN_MEMORY)
    async def one(self, call: Call[OneMemory]) -> Memory:
        look = partial(memory, tenant=call.asked.tenant, id=call.asked.memory)
        return Memory(**found(await self._database.ask(look, call.asked.tenant), UNKNOWN_MEMORY))
