"""
Turns over HTTP: the record of one request and its answer, with what was decided and what was added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from proxy.edge.admin.operation import Call, OfTenant, Operation, Refused
from proxy.store.journal import Journal

EXCERPT_CHARS = 1000  # of a candidate's message: as long as a passage
MAX_NUMBER = 999_999_999  # more turns than a conversation has, and fewer than a database integer holds
UNKNOWN_TURN = "no such turn"


@dataclass(frozen=True, kw_only=True)
class NewestTurn(OfTenant):
    conversation: Annotated[str, Field(description="Id of the conversation.")]


@dataclass(frozen=True, kw_only=True)
class NumberedTurn(NewestTurn):
    number: Annotated[str, Field(description="Number of the turn in its conversation, from 1.")]


@dataclass(frozen=True, kw_only=True)
class NamedTurn(OfTenant):
    turn: Annotated[str, Field(description="Id of the turn: what `x-palimpsest-turn` said.")]


class TurnRoutes:
    """The operations on turns."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def operations(self) -> tuple[Operation[Any], ...]:
        path = "/conversations/{conversation}/turns"
        return (
            Operation("GET", path, "The newest turn of a conversation", self.newest, NewestTurn, dict),
            Operation("GET", path + "/{number}", "A turn by its number", self.numbered, NumberedTurn, dict),
            Operation("GET", "/turns/{turn}", "A turn by its id", self.named, NamedTurn, dict),
        )

    async def newest(self, call: Call[NewestTurn]) -> dict[str, Any]:
        asked = call.asked
        return await self._with_texts(await self._journal.turn(asked.tenant or None, asked.conversation, None))

    async def numbered(self, call: Call[NumberedTurn]) -> dict[str, Any]:
        asked = call.asked
        if not (asked.number.isdecimal() and len(asked.number) <= len(str(MAX_NUMBER))):
            raise Refused(404, f"{UNKNOWN_TURN}: turns are numbered from 1")
        found = await self._journal.turn(asked.tenant or None, asked.conversation, int(asked.number))
        return await self._with_texts(found)

    async def named(self, call: Call[NamedTurn]) -> dict[str, Any]:
        return await self._with_texts(await self._journal.turn_named(call.asked.tenant or None, call.asked.turn))

    async def _with_texts(self, found: Any) -> dict[str, Any]:
        if found is None:
            raise Refused(404, UNKNOWN_TURN)
        candidates = found["explain"].get("candidates", [])
        stored = await self._journal.messages(found["tenant"], [candidate["occurrence"] for candidate in candidates])
        for candidate in candidates:  # None: forgotten since
            message = stored.get(candidate["occurrence"])
            candidate["text"] = None if message is None else message.text[:EXCERPT_CHARS]
        return dict(found)
