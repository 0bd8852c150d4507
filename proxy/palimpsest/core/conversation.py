"""
The decisions of one request, as a generator: it asks for look-ups, is sent their answers, and returns a `Decision`.

    asks                              is sent                     then
    Continuation   of the last turn   KnownHistory                no Clues, where the request does nothing but go on
    Clues      the newest messages    KnownHistory                once more with older ones, where nothing is known
    Clues      echoes, tasks          KnownHistory                the lineage, what is replayed, the pressure
    Foreseen   a likely question      None
    FactQuery  what else is known     CurrentFacts                once the block is packed, what to tell of them
    StoredMessages                    messages by occurrence      the query
    Reminders  wanted passages        Candidates
    Trim       what is too long       Chat                        what the model sees, and what it lost
    Query                             Recalled                    packing, placement, does it fit?

There is no I/O here, no clock and no randomness: `memory/request/decider` answers from the store and the indexes, tests
answer with plain values. A look-up that failed is answered with its exception, `TimeoutError` or `MemoryFault`: then
the decision is made without it. Without the history the request is a conversation of its own, and the next one finds it
by what it was answered; without recall only earlier blocks are repeated; without its facts nothing is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from palimpsest.core.block.account_lines import beside_account, with_account
from palimpsest.core.block.packing import pack
from palimpsest.core.block.placement import Replay, place, replay
from palimpsest.core.block.pressure import pressure, reminder_budget, reply_room
from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.decision import Decision
from palimpsest.core.history.lineage import extended, follows, trace
from palimpsest.core.history.link_keys import CLUE_MESSAGES, NEWEST_CLUES, clues, further_clues, inherited, shape_of
from palimpsest.core.history.request_roles import intent_of
from palimpsest.core.overflow.room import answer_limit, answer_room, room_of, stands_aside
from palimpsest.core.overflow.view import View, earlier_omission, view_of
from palimpsest.core.reading import Reading
from palimpsest.core.recall.diagnosis import SeenBlocks, diagnose, newest_question
from palimpsest.core.redaction.redaction import stored_name
from palimpsest.domain import (
    Block,
    BlockKind,
    Candidate,
    Chat,
    Clues,
    Continuation,
    CurrentFacts,
    FactQuery,
    Follows,
    KnownHistory,
    Lineage,
    Note,
    Query,
    Recalled,
    Role,
    Shape,
    Speaker,
    Trim,
    frozen,
)
from palimpsest.domain.errors import MemoryFault
from palimpsest.settings.policy import Policy

if TYPE_CHECKING:
    from palimpsest.domain.ports import Wire

FAILED = (TimeoutError, MemoryFault)
"""What a look-up may be answered with instead."""

FAULTS = (Note.DEADLINE, Note.FAULT, Note.INDEXING)
"""Said of a request whatever was added to it."""


@frozen
class Foreseen:
    """Announce a question that will probably be looked up: its embedding begins. The answer is None, at once."""

    text: str


@frozen
class StoredMessages:
    """Look up messages by their occurrences. The answer is a mapping; what is not there is left out."""

    tenant: str
    occurrences: tuple[int, ...]


@frozen
class Reminders:
    """Look up passages that somebody asked for. The answer is a tuple of candidates; what is not there is left out."""

    tenant: str
    memories: tuple[int, ...]


Lookup = Clues | Continuation | FactQuery | Foreseen | StoredMessages | Trim | Query | Reminders
Deciding = Generator[Lookup, Any, Decision | Note]


@frozen
class Rules:
    """What decisions go by besides the request; one per policy and state of the switches."""

    policy: Policy
    signals: Signals
    secret: bytes
    count: Callable[[str, str], int]  # tokens of a text for a model
    generation: int = 0  # number of the policy
    off_for: frozenset[str] = frozenset()  # tenants for whom memory is switched off; "" everybody
    trusts_machine: bool = False  # programs on this machine need no credential: core/caller/credentials.py

    def key(self, tenant: str) -> bytes:
        """Keys the fingerprints of one tenant."""
        return tenant_key(self.secret, tenant)

    def stored_name(self, name: str) -> str:
        """A name in the form in which it is stored, and compared with what is stored."""
        return stored_name(name, self.secret, self.policy.archive.redact)


@frozen
class Request:
    """A request with all that is known of it before anything is looked up."""

    reading: Reading
    speaker: Speaker
    window_tokens: int  # of the model that it asks
    user_agent: str = ""
    follows: Follows | None = None  # the request that it goes on from, where that was read here
    compacted: tuple[Block, ...] = ()  # what the model sees in the place of compaction items of ours
    new_id: str = ""  # random: names the conversation that it begins, if it begins one
    reminders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # passages that wait, by conversation
    wire: Wire | None = None  # that it is read by
    is_window_shown: bool = False  # the operator or the upstream said what it is, answers included


@frozen
class _Past:
    """What a request continues."""

    lineage: Lineage
    shape: Shape
    note: Note | None = None  # why that could not be looked up


def decide(request: Request, rules: Rules) -> Deciding:
    """
    Decide what is added to one request, and as what it is archived.

    Drive it with `advance`.

    Returns:
        The decision; or a note, where memory has no part in the request and it is not archived.
    """
    past = yield from _past(request, rules)
    if past.lineage.role in rules.policy.memory.off_for_roles:
        return Note.OFF
    view, would_trim = yield from _overflowing(request, rules, past.lineage)
    decision = replace(_diagnosed(request, rules, past, view), would_trim_tokens=would_trim)
    if past.note is not None:
        return _limited(replace(decision, note=past.note, is_unlinked=True), request, rules)
    facts = _fact_query(decision, rules)
    current = (yield from _current_facts(facts)) if facts is not None and (view or not decision.drops_blocks) else None
    reminders = yield from _reminders(decision, request)
    if decision.diagnosis.query is None and not reminders:
        decision = replace(decision, note=decision.diagnosis.note)
    else:
        decision = yield from _recalled(decision, rules, reminders)
    if facts is not None and current is not None:
        decision = _with_facts(decision, rules, facts, current)
    if view is not None and decision.drops_blocks and decision.block is None:  # nothing takes their place
        kept, now = replay(view.reading.places, view.lineage), decision.diagnosis.pressure
        if now.prompt_tokens + kept.tokens + now.reply_tokens <= now.window_tokens:
            decision = replace(decision, replayed=kept, drops_blocks=False)
    return _limited(decision, request, rules)


def decide_bare(request: Request, rules: Rules, decision: Decision | None = None) -> Deciding:
    """
    Decide what a cut leaves out of a request to which nothing is added: one that is only counted, or was refused.

    Args:
        request: with the window that the refusal named.
        decision: on the request as it was refused; None: there was none.
    """
    if decision is None:
        past = yield from _past(request, rules)
    else:
        past = _Past(decision.lineage, decision.shape)
    view, _ = yield from _overflowing(request, rules, past.lineage)
    bare = _diagnosed(request, rules, past, view).bare(Note.TOO_LONG, request.window_tokens)
    if view is not None:
        bare = replace(bare, view=view, own_tokens=view.reading.tokens)
        now = pressure(bare.own_tokens, request.window_tokens, bare.diagnosis.pressure.reply_tokens)
        bare = replace(bare, diagnosis=replace(bare.diagnosis, pressure=now))
    return _limited(bare, request, rules)


def advance(deciding: Deciding, answer: object) -> Lookup | Decision | Note:
    """Take one step: the next look-up, or what was decided. `answer`: None to begin; an exception is of `FAILED`."""
    try:
        return deciding.throw(answer) if isinstance(answer, BaseException) else deciding.send(answer)
    except StopIteration as end:
        decided: Decision | Note = end.value
        return decided


def _past(request: Request, rules: Rules) -> Generator[Lookup, Any, _Past]:
    """Find the conversation that the request continues, and name what the client did to it."""
    reading, speaker, chat = request.reading, request.speaker, request.reading.chat
    prints, key, note = reading.history_prints, rules.key(speaker.tenant), None
    shape = shape_of(chat, reading.instruction_prints, request.user_agent, rules.stored_name, reading.tools_tokens)
    intent = intent_of(chat, rules.signals)
    try:
        if request.follows and (continuation := follows(reading, request.follows, speaker)) is not None:
            stood: KnownHistory = yield continuation
            if (extension := extended(reading, shape, intent, continuation, stood, speaker)) is not None:
                return _Past(extension, inherited(chat, shape, extension.head))
        seen: KnownHistory = yield clues(chat, prints, speaker, key)
        if not seen.links and len(prints) > NEWEST_CLUES:
            seen = yield clues(chat, prints, speaker, key, CLUE_MESSAGES)
        lineage = trace(chat, prints, shape, intent, speaker, key, seen)
        if (further := further_clues(chat, lineage, speaker, key)) is not None:
            if lineage.event.is_compaction and (question := newest_question(chat, rules.signals.asides)):
                yield Foreseen(question)
            lineage = trace(chat, prints, shape, intent, speaker, key, seen, (yield further))
    except FAILED as failure:
        note = _note_of(failure)
        lineage = trace(chat, prints, shape, intent, speaker, key, KnownHistory())
    return _Past(lineage, inherited(chat, shape, lineage.head), note)


def _overflowing(request: Request, rules: Rules, lineage: Lineage) -> Generator[Lookup, Any, tuple[View | None, int]]:
    """What the model gets of a request that has outgrown its window, or the tokens that the policy would take out."""
    reading, window, chat = request.reading, request.window_tokens, request.reading.chat
    if rules.policy.overflow == "forward" or stands_aside(chat):
        return None, 0
    from palimpsest.core.overflow.selection import carried_over, complete, select, tokens_left
    from palimpsest.core.overflow.steps import steps_of

    before, needed = earlier_omission(reading, lineage), _reply_reserve(request, rules)
    tokens, blocks = reading.scaled_tokens, replay(reading.places, lineage).repeated
    outside = reading.tokens - sum(tokens) + sum(block.tokens for block in request.compacted)
    room = room_of(window, needed, outside)
    if sum(tokens) + sum(stored.block.tokens for _, stored in blocks) <= (room.aim if before else room.most):
        return None, 0
    steps = steps_of(chat)
    before = carried_over(chat, steps, tokens, complete(before, steps), room)
    omission = select(chat, steps, tokens, before, room, {at: stored.block.tokens for at, stored in blocks})
    left = tokens_left(chat, tokens, omission)
    if rules.policy.overflow == "observe":
        return None, round(sum(tokens) - sum(left))
    seen: Chat | None = (yield Trim(chat, omission)) if omission else None
    return (None if seen is None else view_of(reading, lineage, seen, omission, left, before)), 0


def _reply_reserve(request: Request, rules: Rules) -> int:
    """Tokens to keep free for the answer, however long it may be."""
    return answer_room(request.reading.chat, request.window_tokens, rules.policy.pressure.reply_reserve_tokens)


def _limited(decision: Decision, request: Request, rules: Rules) -> Decision:
    """The decision with a shorter answer asked for, where the prompt leaves no room for what the client wants."""
    if rules.policy.overflow != "trim" or not request.is_window_shown or stands_aside(decision.reading.chat):
        return decision
    prompt = decision.added.own_tokens + decision.added.tokens
    return replace(
        decision,
        reply_tokens=answer_limit(decision.reading.chat, prompt, request.window_tokens, _reply_reserve(request, rules)),
    )


def _diagnosed(request: Request, rules: Rules, past: _Past, view: View | None) -> Decision:
    """Which earlier blocks are repeated, how full the window is, and what to look for."""
    reading, lineage, policy, window = request.reading, past.lineage, rules.policy, request.window_tokens
    compacted = request.compacted
    if view is not None:
        reading, lineage = view.reading, view.lineage
    own_tokens = _own_tokens(reading, lineage) + sum(block.tokens for block in compacted)
    wanted = reading.chat.max_reply_tokens
    reply = reply_room(own_tokens, window, wanted, policy.pressure.reply_reserve_tokens)
    if view is not None:
        reply = _reply_reserve(request, rules)
    replayed = replay(reading.places, lineage)
    cuts = view is not None and view.first_new >= 0  # then the provider reads everything anew in any case
    drops_blocks = bool(replayed.tokens) and (cuts or own_tokens + replayed.tokens + reply > window)
    if drops_blocks:
        replayed = replace(replayed, repeated=())
    blocks = SeenBlocks(
        0 if view else replayed.visible_tokens,  # until the next cut, none makes way for another
        replayed.occurrences.union(*(block.occurrences for block in compacted)),
        [block.text for block in (*compacted, *(() if drops_blocks else replayed.blocks))],
    )
    diagnosis = diagnose(
        reading.chat,
        reading.history_fulls,
        request.speaker,
        lineage,
        _conversation(request, rules, lineage),
        pressure(own_tokens + replayed.tokens, window, reply),
        policy,
        blocks,
        rules.signals.asides,
        makes_room=view is not None,
    )
    return Decision(request.reading, past.shape, diagnosis, own_tokens, replayed, drops_blocks, view=view)


def _reminders(decision: Decision, request: Request) -> Generator[Lookup, Any, tuple[Candidate, ...]]:
    """Look up what somebody asked for, as far as the model does not see it and something can be added."""
    wanted = request.reminders.get(decision.conversation, ())
    if not wanted or decision.diagnosis.anchor < 0:
        return ()
    try:
        found: tuple[Candidate, ...] = yield Reminders(request.speaker.tenant, wanted)
    except FAILED:  # they wait on
        return ()
    told = decision.replayed.occurrences
    return tuple(
        one for one in found if not (one.memory.occurrence in told or _is_seen(one, decision.diagnosis.lineage))
    )


def _is_seen(candidate: Candidate, lineage: Lineage) -> bool:
    """Whether the model still sees the message of a passage."""
    index = lineage.head.index_of(candidate.memory.occurrence) if lineage.head is not None else None
    if index is None or index in lineage.held:
        return index is not None
    return any(of_head == index and at not in lineage.changed for at, of_head in enumerate(lineage.kept))


def _recalled(decision: Decision, rules: Rules, reminders: tuple[Candidate, ...]) -> Generator[Lookup, Any, Decision]:
    """Look up what was diagnosed to be missing, and fit it into the budget and the window, behind reminders."""
    diagnosis, chat = decision.diagnosis, decision.sent.chat
    query, kind, now = diagnosis.query, diagnosis.kind or BlockKind.RECALL, diagnosis.pressure
    budget = reminder_budget(diagnosis.budget, reminders, now) if reminders else diagnosis.budget
    if budget is None:
        return replace(decision, note=Note.WINDOW_FULL)
    recalled = Recalled((), False, "somebody asked for passages")
    try:
        if query is not None and diagnosis.ask_journal:  # the last human message is gone from the request
            stored = yield StoredMessages(query.tenant, diagnosis.ask_journal)
            question = "\n".join(message.text for message in stored.values())
            query = replace(query, text=f"{question}\n{query.text}".strip())
            decision = replace(decision, diagnosis=replace(diagnosis, query=query))
        if query is not None:
            recalled = yield query
    except FAILED as failure:
        if not reminders:
            return replace(decision, note=_note_of(failure))
    early = Note.INDEXING if recalled.is_too_early else None
    if reminders:
        wanted = {one.memory.id for one in reminders}
        others = (one for one in recalled.candidates if one.memory.id not in wanted)
        recalled = replace(recalled, candidates=(*reminders, *others), admitted=True)
    decision = replace(decision, recalled=recalled)
    account = recalled.account if recalled.account is not None and recalled.account.chars else None
    if not recalled.admitted and account is None:
        return replace(decision, note=early or Note.NOTHING_RELEVANT)
    anchor, role = place(chat, diagnosis.anchor, rules.policy.memory.placement)
    if query is not None:
        budget = beside_account(budget, account, query)
    block, cut = pack(recalled.candidates, budget, kind, query.text if query else "")
    decision = replace(decision, cut=cut)
    if account is not None:
        block = with_account(block, account)
    if block is None:
        return replace(decision, note=early or Note.NOTHING_RELEVANT)
    block = replace(block, role=role, tokens=rules.count(block.text, chat.model))
    if now.prompt_tokens + block.tokens + now.reply_tokens > now.window_tokens:
        return replace(decision, note=Note.WINDOW_FULL)
    if diagnosis.sheds:
        decision = replace(decision, replayed=Replay())
    return replace(decision, block=block, anchor=anchor, note=early)


def _fact_query(decision: Decision, rules: Rules) -> FactQuery | None:
    """The facts that may be told; None where it is not their turn, or none are kept: then nothing of it is loaded."""
    if not decision.diagnosis.tells_facts:
        return None
    from palimpsest.core.facts.choice import fact_query

    return fact_query(decision.sent.chat, decision.diagnosis, decision.replayed, rules.policy)


def _current_facts(facts: FactQuery) -> Generator[Lookup, Any, CurrentFacts | None]:
    """Look up the facts that hold; None where that failed: a request can do without."""
    try:
        current: CurrentFacts = yield facts
    except FAILED:
        return None
    return current


def _with_facts(decision: Decision, rules: Rules, facts: FactQuery, current: CurrentFacts) -> Decision:
    """Tell facts in front of what the block quotes, or in a block of their own, where they fit into the window."""
    from palimpsest.core.block.fact_lines import stated_in_blocks, with_facts
    from palimpsest.core.facts.choice import FactChoice, FactRequest, choose_facts

    diagnosis, block, reading, lineage = decision.diagnosis, decision.block, decision.sent, decision.lineage
    if diagnosis.sheds and block is None:
        return decision
    chat, now = reading.chat, diagnosis.pressure
    held = () if lineage.head is None else (lineage.head.fulls[index] for index in lineage.held)
    request = FactRequest(
        decision.conversation,
        is_whole=not facts.since,
        is_answered=block is not None and block.kind is BlockKind.RECALL,
        statements=stated_in_blocks(stored.block.text for stored in decision.replayed.visible),
        visible=frozenset(chain(reading.history_fulls, held)),
        quoted=block.occurrences if block else (),
        question=newest_question(chat, rules.signals.asides),
        includes_all=rules.policy.facts.policy == "all",
    )
    chosen = choose_facts(current, request, rules.policy.facts.tokens, lambda text: rules.count(text, chat.model))
    decision = replace(decision, fact_choice=chosen)
    if not chosen.lines:
        return decision
    anchor, role = place(chat, diagnosis.anchor, rules.policy.memory.placement)
    full = replace(with_facts(block, chosen.lines, chosen.sources), role=role)
    full = replace(full, tokens=rules.count(full.text, chat.model))
    if now.prompt_tokens + full.tokens + now.reply_tokens > now.window_tokens:
        return replace(decision, fact_choice=FactChoice(left_out={"the window is full": len(current.facts)}))
    note = decision.note if decision.note in FAULTS else None
    return replace(decision, block=full, anchor=anchor, note=note)


def _own_tokens(reading: Reading, lineage: Lineage) -> int:
    """Tokens of the prompt without earlier blocks, but with all that the provider holds."""
    held = lineage.head.tokens if lineage.head is not None and lineage.held else 0
    return held + reading.history_tokens if held else reading.tokens  # tools and instructions are counted there


def _conversation(request: Request, rules: Rules, lineage: Lineage) -> str:
    """The public id: the head's, the parent's for a side request, one made of the client's id, or a new one."""
    known = lineage.parent if lineage.role is Role.SIDE else lineage.head.conversation if lineage.head else ""
    if known:
        return known
    speaker = request.speaker
    if speaker.client_ids:  # several workers that see it first at once agree
        named = conversation_named(speaker.tenant, speaker.client_ids[0], rules.secret, speaker.user)
        if named != lineage.parent:  # a sub-agent may share the id of whom it serves
            return named
    return f"c-{request.new_id}"


def conversation_named(tenant: str, client_id: str, secret: bytes, user: str = "") -> str:
    """The public id of a conversation that a client names itself: the same for every worker, another for each user."""
    name = f"{tenant}\0{client_id}{user and chr(0)}{user}".encode()
    return "c-" + hashlib.blake2b(name, key=secret[:64], digest_size=8).hexdigest()


def _note_of(failure: BaseException) -> Note:
    return Note.DEADLINE if isinstance(failure, TimeoutError) else Note.FAULT
