"""Losses over HTTP: what a compaction removed, by kind, what memory gave back, and what the next answers used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated

from pydantic import Field

from palimpsest.core.history.compaction_seal import unseal
from palimpsest.core.work.account import LostMessage
from palimpsest.core.work.loss import Loss, LossKind, is_held_by, losses
from palimpsest.domain.errors import CompactionRefused
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Routes, found, operation
from palimpsest.edge.admin.turn_routes import NEWEST, UNKNOWN, UNKNOWN_TURN, NamedTurn
from palimpsest.store.engine import Ask
from palimpsest.store.search.passages import newest_texts, passages_of_messages
from palimpsest.store.turns import listings
from palimpsest.store.turns.diffs import message_list
from palimpsest.store.turns.reminders import states

READ_MESSAGES, READ_CHARS = 400, 8_000  # of what was removed, the newest; characters of each
SHOWN_MESSAGES, EXCERPT_CHARS = 60, 300  # of what was kept and of what stayed behind: a look, not a copy
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
class Excerpt:
    """The beginning of a message that was kept, or that stayed behind."""

    occurrence: Annotated[int, Field(description="Number of the message.")]
    role: Annotated[str, Field(description="Who said it.")]
    text: Annotated[str, Field(description=f"Its first {EXCERPT_CHARS} characters.")]
    became: Annotated[
        str, Field(description="Of one that stayed behind: `removed`, `stub` (results and arguments) or `shortened`.")
    ] = ""


@frozen
class Losses:
    """The losses of one turn; none where its client removed nothing and nothing newly stayed behind."""

    turn: Annotated[str, Field(description="Id of the turn.")]
    removed_messages: Annotated[
        int, Field(description="Messages that the client no longer sends, or that newly stayed behind.")
    ]
    quoted_messages: Annotated[int, Field(description="Of those, the messages that the new block quotes.")]
    kept_messages: Annotated[int, Field(description="Messages of the previous request that the model still sees.")]
    losses: Annotated[list[ShownLoss], Field(description="The losses by kind, the newest of each kind first.")]
    summary: Annotated[str, Field(description="Text that stands for removed messages: the client's summary.")]
    compacted: Annotated[
        str, Field(description="Text in the place of a compaction that this proxy had answered; empty: none.")
    ]
    kept: Annotated[list[Excerpt], Field(description=f"The newest {SHOWN_MESSAGES} of the messages that were kept.")]
    cut: Annotated[
        str, Field(description="Id of the turn at which the window was full and messages stayed behind; empty: none.")
    ]
    left_behind_messages: Annotated[int, Field(description="Messages that stayed behind, at this turn and before.")]
    left_behind: Annotated[list[Excerpt], Field(description=f"The newest {SHOWN_MESSAGES} of those messages.")]


class LossRoutes(Routes):
    @operation("GET /turns/{turn}/losses", "List what a compaction removed, by kind", missing=UNKNOWN)
    async def list_losses(self, call: Call[NamedTurn]) -> Losses:
        key = None if call.asked.turn == NEWEST else call.asked.turn
        turn = found(await self._journal.turn_named(call.asked.tenant or None, key), UNKNOWN_TURN)
        tenant, name = turn["tenant"], turn["key"]
        texts = [text async for text in self._compacted(tenant, name)]
        look = partial(_losses, tenant=tenant, key=name, compacted=texts, now=self._clock())
        return found(await self._database.ask(look, tenant), UNKNOWN_TURN)  # else erased in between

    async def _compacted(self, tenant: str, turn: str) -> AsyncIterator[str]:
        """The texts that the model saw in the place of compactions of ours."""
        for reference in await self._database.ask(lambda ask: _references(ask, tenant, turn)):
            with suppress(CompactionRefused):  # made under another secret
                named = unseal(reference, 0.0, self._parts.key_of(tenant))  # whenever it is looked at
                if stored := await self._journal.compacted(tenant, named.turn):
                    yield stored.block.text


def _references(ask: Ask, tenant: str, key: str) -> list[str]:
    place = listings.place_of_turn(ask, tenant, key)
    return listings.stand_ins(ask, _carried(ask, place.turn))[1] if place else []


def _carried(ask: Ask, turn: int) -> list[int]:
    """The messages of a request, without its answer."""
    return [occurrence for _, occurrence in message_list(ask, turn).messages]


def _losses(ask: Ask, tenant: str, key: str, compacted: Sequence[str], now: float) -> Losses | None:
    place = listings.place_of_turn(ask, tenant, key)
    if place is None:
        return None
    carried, left = _carried(ask, place.turn), listings.left_behind(ask, place.turn)
    gone = {occurrence: how for occurrence, how in left.messages.items() if occurrence in carried}
    before = set(message_list(ask, place.parent).listing if place.parent else ()) - left.before.keys()
    removed = before.difference(carried) | (gone.keys() - left.before.keys() if left.is_new else set())
    texts = newest_texts(ask, sorted(removed), READ_MESSAGES, READ_CHARS)
    kept = newest_texts(ask, [one for one in carried if one not in gone], READ_MESSAGES, READ_CHARS)
    which = listings.Filter(place.tenant, conversation=place.conversation)
    after = listings.turns(ask, which, place.turn, ANSWERS - 1, newest_first=False).listed
    answers = [
        one["text"]
        for turn in [key, *(listed["turn"] for listed in after)]
        for one in listings.messages_of_turn(ask, place.tenant, turn)
        if one["is_answer"]
    ]
    blocks = listings.blocks_of_turn(ask, place.tenant, key)
    named = losses(
        [LostMessage(*row) for row in texts],
        "\n".join([*compacted, *(text for *_, text in kept)]),
        "\n".join(block["text"] for block in blocks),
        "\n".join(answers),
    )
    told_by = _telling(ask, named)
    asked_for = states(ask, {memory for memory in told_by if memory}, now)
    listed = [
        ShownLoss(
            *(one.kind, one.text, one.occurrence, one.came_back, one.was_used),
            *(memory, asked_for.get(memory or 0, "")),
        )
        for one, memory in zip(named, told_by, strict=True)
    ]
    quoted = removed.intersection(occurrence for block in blocks for occurrence in block["occurrences"])
    seen_before = before - removed - gone.keys()
    return Losses(
        turn=key,
        removed_messages=len(removed),
        quoted_messages=len(quoted),
        kept_messages=len(seen_before),
        losses=listed,
        summary="\n\n".join(listings.stand_ins(ask, set(carried) - before)[0]),
        compacted="\n\n".join(compacted),
        kept=_excerpts(ask, dict.fromkeys(seen_before, "")),
        cut=left.cut,
        left_behind_messages=len(gone),
        left_behind=_excerpts(ask, gone),
    )


def _excerpts(ask: Ask, became: Mapping[int, str]) -> list[Excerpt]:
    rows = newest_texts(ask, sorted(became), SHOWN_MESSAGES, EXCERPT_CHARS)
    return [Excerpt(occurrence, role, text, became[occurrence]) for occurrence, role, text in rows]


def _telling(ask: Ask, named: Sequence[Loss]) -> list[int | None]:
    """For each loss the passage of its message that holds it, or else the first one; None: the message has none."""
    passages: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for occurrence, memory, text in passages_of_messages(ask, {one.occurrence for one in named}):
        passages[occurrence].append((memory, " ".join(text.split())))

    def telling(one: Loss) -> int | None:
        those = passages.get(one.occurrence, [])
        return next((memory for memory, text in those if is_held_by(one.text, text)), those[0][0] if those else None)

    return [telling(one) for one in named]
