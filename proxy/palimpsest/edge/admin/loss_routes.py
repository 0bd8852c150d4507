"""Losses over HTTP: what a compaction removed, by kind, what memory gave back, and what the next answers used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from palimpsest.core.work.account import LostMessage
from palimpsest.core.work.loss import Loss, LossKind, is_held_by, losses
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Refused, Routes, operation
from palimpsest.edge.admin.turn_routes import NEWEST, UNKNOWN, UNKNOWN_TURN, NamedTurn
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import newest_texts, passages_of_messages
from palimpsest.store.turns.diffs import message_list
from palimpsest.store.turns.listings import Filter, blocks_of_turn, messages_of_turn, place_of_turn, turns
from palimpsest.store.turns.reminders import states

READ_MESSAGES, READ_CHARS = 400, 8_000  # of what was removed, the newest; characters of each
ANSWERS = 5  # in which it is looked for what was used: that of the request itself, and the next ones


@frozen
class ShownLoss:
    """A thing that the model no longer sees."""

    kind: Annotated[LossKind, Field(description="rule, decision, file, command, error or number.")]
    text: Annotated[str, Field(description="The thing, as it was said.")]
    occurrence: Annotated[int, Field(description="Number of the message that named it last.")]
    came_back: Annotated[bool, Field(description="Whether the new block of that turn holds it.")]
    was_used: Annotated[
        bool, Field(description="Whether one of the next five answers holds it, that of the turn included.")
    ]
    memory: Annotated[int | None, Field(description="Number of the memory that states it; null: none does.")] = None
    reminder: Annotated[str, Field(description="`waiting` or `came`, where somebody asked for that memory.")] = ""


@frozen
class Losses:
    """The losses of one turn; none where its client removed nothing."""

    turn: Annotated[str, Field(description="Id of the turn.")]
    removed_messages: Annotated[int, Field(description="Messages that the client no longer sends.")]
    quoted_messages: Annotated[int, Field(description="Of those, the messages that the new block quotes.")]
    kept_messages: Annotated[int, Field(description="Messages of the previous request that it still sends.")]
    losses: Annotated[list[ShownLoss], Field(description="The losses by kind, the newest of each kind first.")]


class LossRoutes(Routes):
    """The operation that lists losses."""

    @operation("GET /turns/{turn}/losses", "List what a compaction removed, by kind", missing=UNKNOWN)
    async def list_losses(self, call: Call[NamedTurn]) -> Losses:
        key = None if call.asked.turn == NEWEST else call.asked.turn
        turn = await self._journal.turn_named(call.asked.tenant or None, key)
        if turn is None:
            raise Refused(404, UNKNOWN_TURN)
        tenant, name = turn["tenant"], turn["key"]
        found = await self._database.ask(lambda ask: _losses(ask, tenant, name, self._clock()))
        if found is None:  # erased in between
            raise Refused(404, UNKNOWN_TURN)
        return found


def _losses(ask: Ask, tenant: str, key: str, now: float) -> Losses | None:
    place = place_of_turn(ask, tenant, key)
    if place is None:
        return None
    carried = [occurrence for _, occurrence in message_list(ask, place.turn).messages]  # without the answer
    before = message_list(ask, place.parent).listing if place.parent else ()
    removed = set(before) - set(carried)
    texts = newest_texts(ask, sorted(removed), READ_MESSAGES, READ_CHARS)
    kept = newest_texts(ask, carried, READ_MESSAGES, READ_CHARS)
    which = Filter(place.tenant, conversation=place.conversation)
    after = turns(ask, which, place.turn, ANSWERS - 1, newest_first=False).listed
    answers = [
        one["text"]
        for turn in [key, *(listed["turn"] for listed in after)]
        for one in messages_of_turn(ask, place.tenant, turn)
        if one["is_answer"]
    ]
    blocks = blocks_of_turn(ask, place.tenant, key)
    found = losses(
        [LostMessage(*row) for row in texts],
        "\n".join(text for *_, text in kept),
        "\n".join(block["text"] for block in blocks),
        "\n".join(answers),
    )
    told_by = _telling(ask, found)
    asked_for = states(ask, {memory for memory in told_by if memory}, now)
    listed = [
        ShownLoss(
            *(one.kind, one.text, one.occurrence, one.came_back, one.was_used),
            *(memory, asked_for.get(memory or 0, "")),
        )
        for one, memory in zip(found, told_by, strict=True)
    ]
    quoted = removed.intersection(occurrence for block in blocks for occurrence in block["occurrences"])
    return Losses(key, len(removed), len(quoted), len(before) - len(removed), listed)


def _telling(ask: Ask, found: Sequence[Loss]) -> list[int | None]:
    """For each loss the passage of its message that holds it, or else the first one; None: the message has none."""
    passages: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for occurrence, memory, text in passages_of_messages(ask, {one.occurrence for one in found}):
        passages[occurrence].append((memory, " ".join(text.split())))

    def telling(one: Loss) -> int | None:
        those = passages.get(one.occurrence, [])
        return next((memory for memory, text in those if is_held_by(one.text, text)), those[0][0] if those else None)

    return [telling(one) for one in found]
