"""
Losses over HTTP: what a compaction removed, by kind, what memory gave back, and what the next answers used.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from palimpsest.core.work.account import Lost
from palimpsest.core.work.loss import LossKind, losses
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Refused, Routes, operation
from palimpsest.edge.admin.turn_routes import NEWEST, UNKNOWN, UNKNOWN_TURN, NamedTurn
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import newest_texts
from palimpsest.store.turns.diffs import message_list
from palimpsest.store.turns.listings import Filter, blocks_of_turn, messages_of_turn, place_of_turn, turns

READ_MESSAGES, READ_CHARS = 400, 8_000  # of what was removed, the newest; characters of each
LATER_TURNS = 5


@frozen
class ShownLoss:
    """A thing that the model no longer sees."""

    kind: Annotated[LossKind, Field(description="rule, decision, file, command, error or number.")]
    text: Annotated[str, Field(description="The thing, as it was said.")]
    occurrence: Annotated[int, Field(description="Number of the message that named it last.")]
    came_back: Annotated[bool, Field(description="Whether the new block of that turn holds it.")]
    was_used: Annotated[bool, Field(description="Whether one of the next five answers holds it.")]


@frozen
class Losses:
    """The losses of one turn; none where its client removed nothing."""

    turn: Annotated[str, Field(description="Id of the turn.")]
    removed_messages: Annotated[int, Field(description="Messages that the client no longer sends.")]
    kept_messages: Annotated[int, Field(description="Messages that it still sends.")]
    losses: Annotated[list[ShownLoss], Field(description="The losses by kind, of each kind the newest first.")]


class LossRoutes(Routes):
    """The operation that lists losses."""

    @operation("GET /turns/{turn}/losses", "List what a compaction removed, by kind", missing=UNKNOWN)
    async def list_losses(self, call: Call[NamedTurn]) -> Losses:
        key = None if call.asked.turn == NEWEST else call.asked.turn
        turn = await self._journal.turn_named(call.asked.tenant or None, key)
        if turn is None:
            raise Refused(404, UNKNOWN_TURN)
        tenant, name = turn["tenant"], turn["key"]
        found = await self._database.ask(lambda ask: _losses(ask, tenant, name))
        if found is None:  # erased in between
            raise Refused(404, UNKNOWN_TURN)
        return found


def _losses(ask: Ask, tenant: str, key: str) -> Losses | None:
    place = place_of_turn(ask, tenant, key)
    if place is None:
        return None
    carried = message_list(ask, place.turn).listing
    before = message_list(ask, place.parent).listing if place.parent else ()
    removed = set(before) - set(carried)
    texts = newest_texts(ask, sorted(removed), READ_MESSAGES, READ_CHARS)
    kept = newest_texts(ask, carried, READ_MESSAGES, READ_CHARS)
    which = Filter(place.tenant, conversation=place.conversation)
    after = turns(ask, which, place.turn, LATER_TURNS, newest_first=False).listed
    answers = [
        one["text"]
        for listed in after
        for one in messages_of_turn(ask, place.tenant, listed["turn"])
        if one["is_answer"] and listed["turn"] != key
    ]
    blocks = blocks_of_turn(ask, place.tenant, key)
    found = losses(
        [Lost(*row) for row in texts],
        "\n".join(text for *_, text in kept),
        "\n".join(block["text"] for block in blocks),
        "\n".join(answers),
    )
    return Losses(
        key,
        len(removed),
        len(carried),
        [ShownLoss(one.kind, one.text, one.occurrence, one.came_back, one.was_used) for one in found],
    )
