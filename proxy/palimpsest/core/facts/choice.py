"""
Standing facts in requests: when facts are told, and which of them.

    a conversation begins                  all that stand, as far as they fit
    a compaction took something away       all that stand, as far as they fit: once for each
    a human message later                  what was said elsewhere since then, and what no longer holds
    a tool loop, a retry, a side request   nothing; what was told before is repeated with its block

Where recall finds what may answer the question, only what is near to the question is told beside it: a small model
answers less often where wishes stand beside the answer. The rest is told with one of the next messages.

A window that slides over the conversation takes messages away with each request. That is one state and no compaction
each time: what slid out of it comes back by recall, when somebody asks.

Only what the model does not see is told: no fact whose message the request carries or the same block quotes, and none
that an earlier block tells which is repeated. So a conversation in which everything stands hears nothing.

Source: CALMem, sections 5 and 6 (facts of the scope in every request); what of them is left out, and when, is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import field

from palimpsest.core.archive.chunking import query_terms, terms
from palimpsest.core.block.fact_lines import as_told, ended_line, statement, told_line, told_value
from palimpsest.core.block.placement import Replay
from palimpsest.core.recall.diagnosis import lost_occurrences
from palimpsest.domain import (
    USER_SUBJECT,
    Chat,
    CurrentFact,
    CurrentFacts,
    Diagnosis,
    Event,
    Fact,
    FactCategory,
    FactQuery,
    FactScope,
    Stated,
)
from palimpsest.domain.frozen import frozen
from palimpsest.settings.policy import Policy

LAG_SECONDS = 60.0  # a fact is stored that long after it was said, at most: it may be new though it was said before
WISHES = frozenset({FactCategory.INSTRUCTION, FactCategory.PREFERENCE, FactCategory.NOTE})
"""Kinds that nobody asks for and that matter to answers about something else: recall, which is asked, misses them."""
NAME = "name"  # a slot that many questions name, and each means another one
FIRST_MESSAGES = 3  # of a person, in which a conversation may still be told what stands
CHANGES = ("changed", "ended")  # reasons: what the model sees is no longer so


@frozen
class FactChoice:
    """The facts to tell in one request, as lines of its block, in order; and of the others how many, by reason."""

    lines: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    sources: tuple[tuple[str, int], ...] = ()  # as `Block.facts`


@frozen
class _Tellable:
    fact: Fact
    line: str
    reason: str
    words: int = 0  # that it shares with the question
    before: Stated | None = None  # named in the line as well

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """Smaller is told first; among equals the order of the look-up."""
        is_wish = self.fact.category in WISHES
        return (self.reason not in CHANGES, not self.fact.is_pinned, not is_wish, -self.words)

    @property
    def sources(self) -> Sequence[tuple[str, int]]:
        own = (self.fact.id, self.fact.source.occurrence)
        return (own, (self.before.fact, self.before.occurrence)) if self.before else (own,)


def fact_query(chat: Chat, diagnosis: Diagnosis, replayed: Replay, policy: Policy) -> FactQuery:
    """The facts that may be told in a request whose turn it is."""
    lineage, speaker, head = diagnosis.lineage, diagnosis.speaker, diagnosis.lineage.head
    reach = speaker.reach(policy.memory.reach)
    tell = [stored for stored in replayed.visible if stored.block.facts]
    is_owed = not (tell or lineage.held or lost_occurrences(lineage))
    is_first = lineage.event is Event.START or (is_owed and _human_messages(chat) <= FIRST_MESSAGES)
    is_whole = is_first or lineage.restores or policy.memory.placement == "system" or policy.facts.policy == "all"
    earliest = head.occurrences[0] if head is not None and len(head.occurrences) else 0
    return FactQuery(
        FactScope(speaker.tenant, speaker.user, speaker.scope, diagnosis.conversation, reach),
        since=0 if is_whole else max((stored.occurrence for stored in tell), default=earliest),
        shown=tuple(dict.fromkeys(id for stored in tell for id, _ in stored.block.facts)),
    )


@frozen
class FactRequest:
    """
    The request in which facts may be told.

    `is_whole`: all that stand may be told, else only what changed. `is_answered`: recall found messages that may answer
    the question: nothing is told that is not near to it, too.
    """

    conversation: str  # public id of the one that the request continues
    is_whole: bool
    is_answered: bool
    statements: Mapping[str, bool]  # told by blocks that the model sees, as `fact_lines.told_statements`
    visible: Set[int]  # fingerprints of the messages that it sees
    quoted: Collection[int]  # occurrences that the new block quotes
    question: str
    tells_all: bool = False  # whatever stands and no block tells, asked for or not: CALMem 5.4


def choose_facts(
    current: CurrentFacts, telling: FactRequest, room_tokens: int, count: Callable[[str], int]
) -> FactChoice:
    """
    Choose what to tell: what changed, then pinned facts, the user's wishes, what is near to the question, and the rest.

    The rest is who the user is, and what was decided in the project that the request names. Who others are, other
    decisions and settings are told where the question is near to them: a line that nobody needs distracts.

    Args:
        room_tokens: for all lines together.
        count: tokens of a text.
    """
    left_out: Counter[str] = Counter()
    asked = frozenset(query_terms(telling.question))
    tellable = [*_outdated_statements(current, telling.statements)]
    for one in current.facts:
        found = _tellable(one, current.since, telling, asked)
        if isinstance(found, str):
            left_out[found] += 1
        else:
            tellable.append(found)
    chosen, used = [], 0
    for found in sorted(tellable, key=lambda found: found.rank):
        tokens = count(found.line)
        if used + tokens > room_tokens:
            left_out["no room left"] += 1
            continue
        chosen.append(found)
        used += tokens
    return FactChoice(
        lines=tuple(found.line for found in chosen),
        ids=tuple(found.fact.id for found in chosen),
        reasons=tuple(found.reason for found in chosen),
        left_out=dict(left_out),
        sources=tuple(source for found in chosen for source in found.sources),
    )


def _tellable(one: CurrentFact, since: float, telling: FactRequest, asked: frozenset[str]) -> _Tellable | str:
    """A fact that may be told, or why it is not."""
    fact, said = one.fact, statement(one.fact)
    statements, is_whole = telling.statements, telling.is_whole
    now = told_value(fact, statements) if fact.is_single else ""
    if statements.get(said) and (not now or said.endswith(f": {now}")):
        return "told before"
    if not telling.tells_all and any(stated.full in telling.visible for stated in one.stated):
        return "its message is in the request"
    if not telling.tells_all and any(stated.occurrence in telling.quoted for stated in one.stated):
        return "its message is quoted"
    words = len(asked.intersection(terms(f"{fact.subject} {'' if fact.slot == NAME else fact.slot} {fact.value}")))
    before = next((stated for stated in one.earlier if stated.full in telling.visible), None)
    if now:
        before = next((stated for stated in one.earlier if as_told(stated.value) == now), None)
    if now or before:
        return _Tellable(fact, told_line(fact, before.value if before else ""), "changed", words, before)
    if not is_whole and fact.said_at < since - LAG_SECONDS:
        return "said before the facts were told"
    if not is_whole and fact.source.conversation == telling.conversation:
        return "said in this conversation"
    is_wanted = telling.tells_all or fact.is_pinned or words > 0
    if telling.is_answered and not is_wanted:
        return "the question is answered without it"
    is_own = fact.subject == USER_SUBJECT and fact.category is FactCategory.IDENTITY
    is_decided = fact.category is FactCategory.DECISION and bool(fact.scope)
    if not (is_wanted or fact.category in WISHES or is_own or is_decided):
        return "nobody asks for it"
    return _Tellable(fact, told_line(fact), "standing" if is_whole else "new", words)


def _human_messages(chat: Chat) -> int:
    """Messages of a person, or of tools in their name."""
    return sum(message.role == "user" for message in chat.history)


def _outdated_statements(current: CurrentFacts, statements: Mapping[str, bool]) -> Sequence[_Tellable]:
    """What blocks have told and holds no longer, where nothing took its place."""
    now = {statement(one.fact) for one in current.facts}
    filled = {(one.fact.subject, one.fact.slot) for one in current.facts if one.fact.is_single}
    return [
        _Tellable(fact, ended_line(fact), "ended")
        for fact in current.ended
        if statements.get(said := statement(fact)) and said not in now and (fact.subject, fact.slot) not in filled
    ]
