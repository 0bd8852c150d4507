"""
Turns read for an export, in journal order, a page at a time.

Occurrences are named by the turn that brought them and their position there, which are the same in every database.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from palimpsest.domain import BlockKind, Ending, Event, HeadFlag, Json, Role, frozen
from palimpsest.domain.portable_turn import Place, PortableBlock, PortableMessage, PortableTurn
from palimpsest.store.engine import Ask, Row, ids
from palimpsest.store.turns.diffs import decode_kept, message_list, runs_of
from palimpsest.wire.storage_codec import from_stored

PAGE_TURNS = 100  # some 10 ms of a reader, which others wait for
KEPT_LISTINGS = 1_000  # of turns that others may go on from, a few kilobytes each

GONE = HeadFlag.ERASED | HeadFlag.RETIRED  # what is out of use goes nowhere else

TURNS = f"""
SELECT turn.id, turn.key, conversation.public, tenant.name, conversation.user_id, conversation.scope,
    conversation.parent, turn.parent, turn.role, turn.event, turn.kept, turn.messages, turn.ending, turn.model,
    turn.prompt_tokens, turn.created_at
FROM turn JOIN conversation ON conversation.id = turn.conversation JOIN tenant ON tenant.id = conversation.tenant
WHERE turn.id > ?1 AND turn.id <= ?2 AND turn.ending <> '{Ending.REFUSED}'
    AND (?3 = '' OR tenant.name = ?3) AND (?4 = '' OR conversation.public = ?4)
    AND (?5 = '' OR conversation.user_id = ?5) AND (?6 = '' OR conversation.scope = ?6)
ORDER BY turn.id LIMIT {PAGE_TURNS}
"""
BROUGHT = """
SELECT occurrence.turn, occurrence.position, occurrence.id, occurrence.flags, occurrence.created_at, content.text,
    content.rest, occurrence.role
FROM numbers(?) AS asked INNER JOIN occurrence ON occurrence.turn = asked.value
JOIN content ON content.id = occurrence.content ORDER BY occurrence.turn, occurrence.position
"""
PLACES = """
SELECT occurrence.id, turn.key, occurrence.position FROM numbers(?) AS asked
INNER JOIN occurrence ON occurrence.id = asked.value JOIN turn ON turn.id = occurrence.turn
"""
BLOCKS = """
SELECT turn, occurrence, kind, text, role, tokens, occurrences FROM numbers(?) AS asked
INNER JOIN block ON block.turn = asked.value
"""
SHEDDING = "SELECT DISTINCT shed FROM block WHERE shed IN (SELECT value FROM numbers(?))"
KEYS = "SELECT id, key FROM turn WHERE id IN (SELECT value FROM numbers(?))"


@frozen
class Selection:
    """Whose turns are exported; "" all of them."""

    tenant: str = ""
    conversation: str = ""
    user: str = ""
    scope: str = ""


@dataclass(slots=True)
class Transcript:
    """One export under way: where it is, and the listings that turns to come go on from."""

    selection: Selection
    last: int = 0  # turn that was read last
    until: int | None = None  # the newest one when it began
    listings: OrderedDict[int, tuple[int, ...]] = field(default_factory=OrderedDict)

    def page(self, ask: Ask) -> list[PortableTurn]:
        """The next turns; none when all were read."""
        if self.until is None:
            self.until = int(ask("SELECT coalesce(max(id), 0) FROM turn")[0][0])
        chosen = self.selection
        named = (chosen.tenant, chosen.conversation, chosen.user, chosen.scope)
        rows = ask(TURNS, (self.last, self.until, *named))
        if not rows:
            return []
        self.last = rows[-1][0]
        which = ids(row[0] for row in rows)
        brought: dict[int, list[Row]] = defaultdict(list)
        for turn, *rest in ask(BROUGHT, (which,)):
            brought[turn].append(tuple(rest))
        blocks = {row[0]: row[1:] for row in ask(BLOCKS, (which,))}
        shedding = {row[0] for row in ask(SHEDDING, (which,))}
        parents: dict[int, str] = dict(ask(KEYS, (ids({row[7] for row in rows if row[7]}),)))
        read = [self._read(ask, row, brought[row[0]]) for row in rows]
        elsewhere = {occurrence for one in read for _, occurrence in one.others}
        quoted = {number for row in blocks.values() for number in orjson.loads(row[-1])}
        places: dict[int, Place] = {id: (key, at) for id, key, at in ask(PLACES, (ids(elsewhere | quoted),))}
        return [one.turn(parents, places, blocks.get(one.row[0]), one.row[0] in shedding) for one in read]

    def _read(self, ask: Ask, row: Row, brought: Sequence[Row]) -> _StoredTurn:
        number, parent, kept, messages = row[0], row[7], row[10], row[11]
        listing = self._listing(ask, parent) if parent else ()
        carried = sorted(decode_kept(kept, listing))
        runs, others = runs_of(carried, listing)
        placed = sorted([*carried, *((at, occurrence) for at, occurrence, *_ in brought if at < messages)])
        instructions = {occurrence for _, occurrence, *_, role in brought if role in ("system", "developer")}
        answers = [occurrence for at, occurrence, *_ in brought if at >= messages]
        self._remember(number, (*(o for _, o in placed if o not in instructions), *answers))
        return _StoredTurn(row, brought, dict(placed), tuple(runs), others)

    def _listing(self, ask: Ask, turn: int) -> tuple[int, ...]:
        if turn not in self.listings:
            self._remember(turn, message_list(ask, turn).listing)
        self.listings.move_to_end(turn)
        return self.listings[turn]

    def _remember(self, turn: int, listing: tuple[int, ...]) -> None:
        self.listings[turn] = listing
        if len(self.listings) > KEPT_LISTINGS:
            self.listings.popitem(last=False)


@frozen
class _StoredTurn:
    """A turn as it was read, its messages named by occurrence."""

    row: Row
    brought: Sequence[Row]
    placed: Mapping[int, int]
    runs: tuple[tuple[int, int, int], ...]
    others: Sequence[tuple[int, int]]

    def turn(
        self, parents: Mapping[int, str], places: Mapping[int, Place], block: Row | None, sheds: bool
    ) -> PortableTurn:
        _, key, conversation, tenant, user, scope, serves, parent, role, event, *others = self.row
        _, messages, ending, model, tokens, at = others
        answers = [row for row in self.brought if row[0] >= messages]
        answered_at = answers[0][3] if answers else 0.0
        return PortableTurn(
            id=key,
            conversation=conversation,
            created_at=at,
            messages=tuple(_message(row) for row in self.brought if row[0] < messages),
            answer=replace(_message(answers[0]), position=0) if answers else None,
            answered_at=answered_at,
            ending=None if ending == "open" else Ending(ending),
            parent=parents.get(parent, ""),
            kept=self.runs,
            kept_elsewhere=tuple((position, places[occurrence]) for position, occurrence in self.others),
            role=Role(role),
            event=Event(event),
            tenant=tenant,
            user=user,
            scope=scope,
            serves=serves,
            model=model,
            prompt_tokens=tokens,
            block=self._block(block, places) if block else None,
            sheds_blocks=sheds,
        )

    def _block(self, row: Row, places: Mapping[int, Place]) -> PortableBlock | None:
        anchor, kind, text, role, tokens, quoted = row
        position = next((at for at, occurrence in self.placed.items() if occurrence == anchor), None)
        if position is None:
            return None
        quotes = tuple(places[number] for number in orjson.loads(quoted) if number in places)
        return PortableBlock(BlockKind(kind), text, position, role, tokens, quotes)


def _message(row: Row) -> PortableMessage:
    position, _, flags, _, text, rest, role = row
    is_gone = bool(flags & GONE)
    raw: Json = {"role": role} if is_gone else from_stored(text, rest)
    return PortableMessage(position, raw, bool(flags & HeadFlag.SUMMARY), is_gone)
