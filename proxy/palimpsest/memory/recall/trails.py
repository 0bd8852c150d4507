"""Trails: where a statement got lost on its way from the archive into a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from palimpsest.core.archive.chunking import ASKS, query_terms, terms
from palimpsest.core.block.packing import pack
from palimpsest.core.block.pressure import PASSAGE_CHARS, RESTORE_CHARS
from palimpsest.core.recall.diagnosis import ANSWER_CHARS
from palimpsest.core.recall.generosity import demanded
from palimpsest.core.recall.trail import StatementMatch, Trace
from palimpsest.core.recall.utterance import QUESTION_MARKS
from palimpsest.domain import BlockKind, Budget, Candidate, Cut, Memory, Note, Query, Reach, Recalled, Speaker, frozen
from palimpsest.domain.ports import Retriever
from palimpsest.settings.policy import Policy
from palimpsest.store.engine import Ask, Engine
from palimpsest.store.journal import Journal
from palimpsest.store.turns.branch_heads import head_after, head_of
from palimpsest.store.turns.diffs import message_list
from palimpsest.store.turns.statements import (
    Message,
    fulls,
    messages,
    other_conversations,
    passages,
    quarantined_parts,
    quoting_blocks,
)

HOLDING_SHARE = 0.8  # of a statement's terms, in a message that holds it in other words
EXCERPT_CHARS = 120
OTHERS = 200  # messages of other conversations looked at: their ids are a hint, not a list
CANDIDATES = 200  # looked at: twice as many as a request takes into account


@frozen
class _Place:
    """The state of the conversation at a turn."""

    said: Sequence[Message]
    visible: frozenset[int]  # occurrences
    visible_fulls: frozenset[int]
    lost: frozenset[int]  # occurrences
    trimmed: frozenset[int]  # occurrences that the client sent, and that stayed behind

    def is_later(self, message: Message, turn: Mapping[str, Any]) -> bool:
        """Whether a message is the answer to the turn's request, or came after it."""
        return message.turn >= turn["number"] and message.occurrence not in self.visible


class Trails:
    """Follows statements through one archive. The model should be loaded: without it everything is by words alone."""

    def __init__(self, journal: Journal, database: Engine, retriever: Retriever, policy: Policy) -> None:
        self._journal = journal
        self._database = database
        self._retriever = retriever
        self._policy = policy

    async def find(self, statement: str, tenant: str | None, conversation: str, named: str | None) -> Trace | None:
        """
        Trace a statement through one turn of a conversation.

        Args:
            tenant: None: whose conversation it is.
            named: the turn; None: of a question the newest that asked this, else the conversation's newest.

        Returns:
            None: there is no such turn in the conversation.

        Raises:
            MemoryFault: it could not be looked up.
        """
        if named:
            turn = await self._journal.turn_named(tenant, named)
        else:
            turn = await self._journal.turn(tenant, conversation, None)
            if turn is not None and _asks(statement):  # what was told is missed in the newest turn
                asked = await self._turn_asking(turn["tenant"], conversation, statement)
                turn = await self._journal.turn(turn["tenant"], conversation, asked) if asked else turn
        if turn is None or turn["conversation"] != conversation:
            return None
        return await self.follow(statement, turn)

    async def follow(self, statement: str, turn: Mapping[str, Any]) -> Trace:
        """
        Trace a statement through one turn.

        Args:
            statement: what was said; or a question, whose answer is looked for then.
            turn: the record of a turn, as `Journal.turn` returns it.

        Raises:
            MemoryFault: it could not be looked up.
        """
        tenant, conversation, explain = turn["tenant"], turn["conversation"], turn["explain"]
        is_question = _asks(statement)
        # to compare a long conversation takes a while: not on the event loop
        place, held = await self._database.ask(partial(_looked, turn=turn, statement=statement), tenant)
        asked = explain.get("query", {}).get("text", "")
        question = statement if is_question or not asked else asked
        # the answer to a question may stand in the request: it is looked for as if it did not stand there
        before = [one for one in place.said if not place.is_later(one, turn) and not _is_same(one.text, question)]
        recalled = await self._asked(turn, question, place, before if is_question else held)
        home = conversation
        if not held and (found := _nearest(recalled.candidates, statement)):
            home, at = found.conversation, found.occurrence
            there = await self._database.ask(lambda ask: messages(ask, tenant, home), tenant)
            held = [one for one in there if one.occurrence == at]
            if is_question:
                recalled = await self._asked(turn, question, place, held)
        is_elsewhere = home != conversation
        if not held:
            elsewhere = () if is_question else await self._elsewhere(tenant, conversation, statement)
            count = await self._database.ask(lambda ask: quarantined_parts(ask, tenant, conversation), tenant)
            erased = sum(one.is_erased for one in place.said)
            return Trace(turn["number"], turn["turns"], elsewhere=elsewhere, set_aside=count, erased=erased)
        # what is lost, before what still stands, before what was said later
        first = min(held, key=lambda one: (place.is_later(one, turn), one.occurrence in place.visible))
        kind = BlockKind.RESTORE if explain.get("kind") == BlockKind.RESTORE else BlockKind.RECALL  # facts: no passages
        standing = [*place.visible]
        trace = await self._database.ask(partial(_derived, turn=turn["turn"], message=first, standing=standing), tenant)
        return replace(
            self._judged(trace, recalled, first.occurrence, kind, question, explain),
            turn=turn["number"],
            turns=turn["turns"],
            held=tuple(_held_message(one) for one in (first, *(one for one in held if one is not first))),
            home=home if is_elsewhere else "",
            is_near=is_question,
            is_visible=first.occurrence in place.visible,
            is_later=first.occurrence > max(place.visible, default=0) if is_elsewhere else place.is_later(first, turn),
            is_trimmed=first.occurrence in place.trimmed,
            is_lost=first.occurrence in place.lost or self._policy.memory.reach is not Reach.CONVERSATION,
            question=_excerpt(question),
            asks_otherwise=is_question and not _is_same(statement, asked) and bool(asked),
            note=Note(explain["note"]) if explain.get("note") and "gate" not in explain else None,
        )

    async def _turn_asking(self, tenant: str, conversation: str, question: str) -> int | None:
        """The number of the newest turn in which the user asked this; None: it was never asked."""

        def look(ask: Ask) -> int | None:
            said = messages(ask, tenant, conversation)
            return max((one.turn for one in said if one.role == "user" and _is_same(one.text, question)), default=None)

        return await self._database.ask(look, tenant)

    async def _asked(self, turn: Mapping[str, Any], question: str, place: _Place, held: Sequence[Message]) -> Recalled:
        """What recall would find for the question if the statement were not in the request."""
        sought = frozenset(one.occurrence for one in held)
        seen = place.visible - sought
        hidden = await self._database.ask(lambda ask: fulls(ask, sorted(sought)), turn["tenant"])
        query = Query(
            turn["tenant"],
            turn["conversation"],
            question,
            reach=Speaker(turn["tenant"], turn["user"]).reach(self._policy.memory.reach),
            user=turn["user"],
            scope=turn["scope"],
            lost=(frozenset(one.occurrence for one in place.said if not place.is_later(one, turn)) | sought) - seen,
            visible_fulls=place.visible_fulls - hidden,
        )
        return await self._retriever.recall(query, CANDIDATES)

    def _judged(
        self,
        trace: Trace,
        recalled: Recalled,
        occurrence: int,
        kind: BlockKind,
        question: str,
        explain: Mapping[str, Any],
    ) -> Trace:
        """The trace with the ranking of the statement, and whether a block of this kind would hold it."""
        demand = demanded(self._policy.memory.generosity, kind)
        given = explain.get("budget") or {"chars": RESTORE_CHARS, "passage_chars": PASSAGE_CHARS}
        budget = Budget(given["chars"], min(given["passage_chars"], ANSWER_CHARS), demand.least_worth)
        block, cut = pack(recalled.candidates, budget, kind, question)
        least_help = (explain.get("query") or {}).get("least_help", demand.least_help)
        is_the_turns = _is_same(question, explain.get("query", {}).get("text", ""))
        then = explain.get("gate", {}) if is_the_turns else {}  # later messages help with the question, too
        helps = then.get("helps", recalled.helps)
        trace = replace(trace, candidates=len(recalled.candidates), helps=helps, least_help=least_help)
        for at, candidate in enumerate(recalled.candidates, start=1):
            if candidate.memory.occurrence == occurrence:
                return replace(
                    trace,
                    place=at,
                    probability=candidate.probability,
                    by_meaning=candidate.signals.get("meaning", (0, 0.0))[0],
                    by_words=candidate.signals.get("words", (0, 0.0))[0],
                    is_packed=block is not None and occurrence in block.occurrences,
                    cut=cut.get(candidate.memory.id, ""),
                )
        return trace

    async def _elsewhere(self, tenant: str, conversation: str, statement: str) -> tuple[str, ...]:
        """Other conversations that hold the statement, looked for by its longest word."""
        word = max(statement.lower().split(), key=len, default="")
        found = await self._database.ask(
            lambda ask: other_conversations(
                ask, tenant, conversation, word, lambda text: holds_statement(text, statement), OTHERS
            ),
            tenant,
        )
        return tuple(found)


def holds_statement(text: str, statement: str) -> bool:
    """Whether a text says a statement: in its words, or with nearly all of its terms."""
    if _folded(statement) in _folded(text):
        return True
    wanted = set(query_terms(statement))
    return len(wanted) > 1 and len(wanted.intersection(terms(text))) >= HOLDING_SHARE * len(wanted)


def _looked(ask: Ask, turn: Mapping[str, Any], statement: str) -> tuple[_Place, list[Message]]:
    """The state of the conversation as of a turn, and its messages that hold a statement."""
    place = _place(ask, turn)
    if _asks(statement):
        return place, []
    return place, [one for one in place.said if not one.is_erased and holds_statement(one.text, statement)]


def _asks(statement: str) -> bool:
    return statement.rstrip().endswith(QUESTION_MARKS)


def _place(ask: Ask, turn: Mapping[str, Any]) -> _Place:
    """The messages of a conversation as of a turn: which were said, visible and lost."""
    said = messages(ask, turn["tenant"], turn["conversation"])
    row = head_after(ask, turn["turn"])
    head = head_of(row, ()) if row else None
    sent = [occurrence for _, occurrence in message_list(ask, turn["turn"]).messages]
    trimmed = frozenset(_trimmed(head.cut, sent, turn["explain"].get("overflow", {}))) if head else frozenset()
    visible = frozenset(sent) - trimmed
    return _Place(said, visible, fulls(ask, sorted(visible)), trimmed.union(head.lost if head else ()), trimmed)


def _trimmed(cut: Cut, sent: Sequence[int], told: Mapping[str, Any]) -> Iterator[int]:
    """What stayed behind of the messages sent: of the cut, maybe a later turn's, as many as the turn left out."""
    for listed, count in ((cut.drops, told.get("dropped", 0)), (cut.stubs, told.get("stubs", 0))):
        yield from [one for one in sent if any(first <= one <= last for first, last in listed)][:count]


def _derived(ask: Ask, turn: int, message: Message, standing: Sequence[int]) -> Trace:
    count, waiting = passages(ask, message.occurrence)
    return Trace(
        passages=count,
        waiting=waiting,
        is_retired=message.is_retired,
        blocks=tuple(quoting_blocks(ask, turn, message.occurrence, standing)),
    )


def _nearest(candidates: Sequence[Candidate], statement: str) -> Memory | None:
    """What answers a question most probably; of a statement, what holds it in another conversation within reach."""
    is_question = _asks(statement)
    for memory in (candidate.memory for candidate in candidates):
        if ASKS not in memory.tags if is_question else holds_statement(memory.text, statement):
            return memory
    return None


def _held_message(message: Message) -> StatementMatch:
    return StatementMatch(message.occurrence, message.role, message.turn, _excerpt(message.text))


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT_CHARS else line[: EXCERPT_CHARS - 1] + "…"


def _is_same(one: str, other: str) -> bool:
    return _folded(one) == _folded(other)


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
