"""
The choice of facts for a request: when facts go into it, and which of them.

    a conversation begins                  all that are current, as far as they fit
    a compaction took something away       all that are current, as far as they fit: once for each
    a human message later                  what was said elsewhere since then, and what no longer holds
    a tool loop, a retry, a side request   nothing; a fact of an earlier block is repeated with that block

Where recall finds what may answer the question, only facts near to the question stand beside it: a small model
answers less often where wishes stand beside the answer. The others come with one of the next messages.

A window that slides over the conversation takes messages away with each request. That is one state and no compaction
each time: what slid out of it comes back by recall, when somebody asks.

Only what the model does not see is given: no fact whose message the request carries or the same block quotes, and none
of an earlier block that is repeated. So a conversation that shows every fact gets no block for them.

Source: CALMem, sections 5 and 6 (facts of the scope in every request); what of them is left out, and when, is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import field
from operator import attrgetter

from palimpsest.core.archive.chunking import query_terms, terms
from palimpsest.core.block.fact_lines import ended_line, fact_line, newest_value, printed_value, statement
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
    frozen,
)
from palimpsest.settings.policy import Policy

LAG_SECONDS = 60.0  # a fact is stored that long after it was said, at most: it may be new though it was said before
WISHES = frozenset({FactCategory.INSTRUCTION, FactCategory.PREFERENCE, FactCategory.NOTE})
"""Kinds that nobody asks for and that matter to answers about something else: recall, which is asked, misses them."""
NAME = "name"  # a slot that many questions name, and each means another one
FIRST_MESSAGES = 3  # of a person, in which a conversation may still get all facts
CHANGES = ("changed", "ended")  # reasons: what the model sees is no longer so


@frozen
class FactChoice:
    """The facts chosen for one request, as lines of its block, in order; and of the others how many, by reason."""

    lines: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    sources: tuple[tuple[str, int], ...] = ()  # as `Block.facts`


@frozen
class _Candidate:
    fact: Fact
    line: str
    reason: str
    words: int = 0  # that it shares with the question
    before: Stated | None = None  # named in the line as well

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """The smaller comes first; equals keep the order of the look-up."""
        is_wish = self.fact.category in WISHES
        return (self.reason not in CHANGES, not self.fact.is_pinned, not is_wish, -self.words)

    @property
    def sources(self) -> Sequence[tuple[str, int]]:
        own = (self.fact.id, self.fact.source.occurrence)
        return (own, (self.before.fact, self.before.occurrence)) if self.before else (own,)


def fact_query(chat: Chat, diagnosis: Diagnosis, replayed: Replay, policy: Policy) -> FactQuery:
    """The look-up of the facts that may go into a request."""
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
    A request that may get facts.

    `is_whole`: all current facts may come, else only what changed. `is_answered`: recall found messages that may answer
    the question: only facts near to it come, too.
    """

    conversation: str  # public id of the one that the request continues
    is_whole: bool
    is_answered: bool
    statements: Mapping[str, bool]  # of the blocks that the model sees, as `fact_lines.stated_in_blocks` says
    visible: Set[int]  # fingerprints of the messages that it sees
    quoted: Collection[int]  # occurrences that the new block quotes
    question: str
    includes_all: bool = False  # every current fact that no block states, asked for or not: CALMem 5.4


def choose_facts(
    current: CurrentFacts, request: FactRequest, room_tokens: int, count: Callable[[str], int]
) -> FactChoice:
    """
    Choose facts: what changed, then pinned ones, the user's wishes, what is near to the question, and the rest.

    The rest is who the user is, and what was decided in the project that the request names. Who others are, other
    decisions and settings come where the question is near to them: a line that nobody needs distracts.

    Args:
        room_tokens: for all lines together.
        count: tokens of a text.
    """
    left_out: Counter[str] = Counter()
    asked = frozenset(query_terms(request.question))
    candidates = [*_outdated_statements(current, request.statements)]
    for one in current.facts:
        candidate = _candidate_or_reason(one, current.since, request, asked)
        if isinstance(candidate, str):
            left_out[candidate] += 1
        else:
            candidates.append(candidate)
    chosen: list[_Candidate] = []
    used_tokens = 0
    for candidate in sorted(candidates, key=attrgetter("rank")):
        tokens = count(candidate.line)
        if used_tokens + tokens > room_tokens:
            left_out["no room left"] += 1
            continue
        chosen.append(candidate)
        used_tokens += tokens
    return FactChoice(
        lines=tuple(one.line for one in chosen),
        ids=tuple(one.fact.id for one in chosen),
        reasons=tuple(one.reason for one in chosen),
        left_out=dict(left_out),
        sources=tuple(source for one in chosen for source in one.sources),
    )


def _candidate_or_reason(
    one: CurrentFact, since: float, request: FactRequest, asked: frozenset[str]
) -> _Candidate | str:
    """A fact that may go into a block, or why it may not."""
    fact, said = one.fact, statement(one.fact)
    statements, is_whole = request.statements, request.is_whole
    now = newest_value(fact, statements) if fact.is_single else ""
    if statements.get(said) and (not now or said.endswith(f": {now}")):
        return "told before"
    if not request.includes_all and any(stated.full in request.visible for stated in one.stated):
        return "its message is in the request"
    if not request.includes_all and any(stated.occurrence in request.quoted for stated in one.stated):
        return "its message is quoted"
    words = len(asked.intersection(terms(f"{fact.subject} {'' if fact.slot == NAME else fact.slot} {fact.value}")))
    before = next((stated for stated in one.earlier if stated.full in request.visible), None)
    if now:
        before = next((stated for stated in one.earlier if printed_value(stated.value) == now), None)
    if now or before:
        return _Candidate(fact, fact_line(fact, before.value if before else ""), "changed", words, before)
    if not is_whole and fact.said_at < since - LAG_SECONDS:
        return "said before the facts were told"
    if not is_whole and fact.source.conversation == request.conversation:
        return "said in this conversation"
    is_wanted = request.includes_all or fact.is_pinned or words > 0
    if request.is_answered and not is_wanted:
        return "the question is answered without it"
    is_own = fact.subject == USER_SUBJECT and fact.category is FactCategory.IDENTITY
    is_decided = fact.category is FactCategory.DECISION and bool(fact.scope)
    if not (is_wanted or fact.category in WISHES or is_own or is_decided):
        return "nobody asks for it"
    return _Candidate(fact, fact_line(fact), "standing" if is_whole else "new", words)


def _human_messages(chat: Chat) -> int:
    """Messages of a person, or of tools in their name."""
    return sum(message.role == "user" for message in chat.history)


def _outdated_statements(current: CurrentFacts, statements: Mapping[str, bool]) -> Sequence[_Candidate]:
    """Statements of earlier blocks that hold no longer, where nothing took their place."""
    now = {statement(one.fact) for one in current.facts}
    filled = {(one.fact.subject, one.fact.slot) for one in current.facts if one.fact.is_single}
    return [
        _Candidate(fact, ended_line(fact), "ended")
        for fact in current.ended
        if statements.get(said := statement(fact)) and said not in now and (fact.subject, fact.slot) not in filled
    ]
