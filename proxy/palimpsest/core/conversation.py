"""
The decisions of one request, as a generator: it asks for look-ups, is sent their answers, and returns a `Decision`.

    asks                              is sent                     then
    Continuation   of the last turn   Seen                        no Clues, where the request does nothing but go on
    Clues      the newest messages    Seen                        once more with older ones, where nothing is known
    Clues      echoes, tasks          Seen                        the lineage, what is replayed, the pressure
    Foreseen   a likely question      None
    FactQuery  what else is known     CurrentFacts               once the block is packed, what to tell of them
    StoredMessages                    messages by occurrence      the query
    Query                             Recalled                    packing, placement, does it fit?

There is no I/O here, no clock and no randomness: `memory/request/decider` answers from the store and the indexes, tests
answer with plain values. A look-up that failed is answered with its exception, `TimeoutError` or `MemoryFault`: then
the decision is made without it. Without the history the request is a conversation of its own, and the next one finds it
by what it was answered; without recall only earlier blocks are repeated; without its facts nothing is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import chain
from typing import Any

from palimpsest.core.block.account_lines import beside_account, with_account
from palimpsest.core.block.fact_lines import told, with_facts
from palimpsest.core.block.packing import pack
from palimpsest.core.block.placement import Replay, place, replay
from palimpsest.core.block.pressure import pressure, reply_room
from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.decision import Decision
from palimpsest.core.facts.choice import FactChoice, Telling, choose_facts, wanted
from palimpsest.core.history.lineage import extended, follows, trace
from palimpsest.core.history.link_keys import CLUE_MESSAGES, NEWEST_CLUES, clues, further_clues, shape_of
from palimpsest.core.history.request_roles import intent_of
from palimpsest.core.history.server_history import inherited
from palimpsest.core.reading import Reading
from palimpsest.core.recall.diagnosis import diagnose, newest_question
from palimpsest.core.redaction.redaction import stored_name
from palimpsest.domain import (
    BlockKind,
    Clues,
    Continuation,
    CurrentFacts,
    FactQuery,
    Follows,
    Lineage,
    Note,
    Query,
    Role,
    Seen,
    Shape,
    Speaker,
)
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.settings.policy import Policy

FAILED = (TimeoutError, MemoryFault)
"""What a look-up may be answered with instead."""

FAULTS = (Note.DEADLINE, Note.FAULT, Note.INDEXING)
"""Said of a request whatever was added to it."""


@frozen
class Foreseen:
    """A question that will probably be looked up: begin with what takes long. The answer is None, at once."""

    text: str


@frozen
class StoredMessages:
    """Look up messages by their occurrences. The answer is a mapping; what is not there is left out."""

    tenant: str
    occurrences: tuple[int, ...]


Lookup = Clues | Continuation | FactQuery | Foreseen | StoredMessages | Query
Deciding = Generator[Lookup, Any, Decision | Note]


@frozen
class Rules:
    """What decides beside the requests themselves; one per policy, with the switches that go with it."""

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

    def named(self, name: str) -> str:
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
    new_id: str = ""  # random: names the conversation that it begins, if it begins one


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
    decision = _diagnosed(request, rules, past)
    if past.note is not None:
        return replace(decision, note=past.note)
    facts = wanted(decision.reading.chat, decision.diagnosis, decision.replayed, rules.policy)
    current = (yield from _current_facts(facts)) if facts is not None and not decision.drops_blocks else None
    if decision.diagnosis.query is None:
        decision = replace(decision, note=decision.diagnosis.note)
    else:
        decision = yield from _recalled(decision, rules)
    return decision if facts is None or current is None else _with_facts(decision, rules, facts, current)


def advance(deciding: Deciding, answer: object) -> Lookup | Decision | Note:
    """
    Take one step: the next look-up, or what was decided.

    Args:
        answer: to the look-up before; None to begin. An exception is one of `FAILED`.
    """
    try:
        return deciding.throw(answer) if isinstance(answer, BaseException) else deciding.send(answer)
    except StopIteration as end:
        decided: Decision | Note = end.value
        return decided


def _past(request: Request, rules: Rules) -> Generator[Lookup, Any, _Past]:
    """Find the conversation that the request continues, and name what the client did to it."""
    reading, speaker, chat = request.reading, request.speaker, request.reading.chat
    prints, key, note = reading.history_prints, rules.key(speaker.tenant), None
    shape = shape_of(chat, reading.instruction_prints, request.user_agent, rules.named, reading.tools_tokens)
    intent = intent_of(chat, rules.signals)
    try:
        if request.follows and (continuation := follows(reading, request.follows, speaker)) is not None:
            stood: Seen = yield continuation
            if (extension := extended(reading, shape, intent, continuation, stood, speaker)) is not None:
                return _Past(extension, inherited(chat, shape, extension.head))
        seen: Seen = yield clues(chat, prints, speaker, key)
        if not seen.links and len(prints) > NEWEST_CLUES:
            seen = yield clues(chat, prints, speaker, key, CLUE_MESSAGES)
        lineage = trace(chat, prints, shape, intent, speaker, key, seen)
        if (further := further_clues(chat, lineage, speaker, key)) is not None:
            if lineage.event.is_compaction and (question := newest_question(chat, rules.signals.asides)):
                yield Foreseen(question)
            lineage = trace(chat, prints, shape, intent, speaker, key, seen, (yield further))
    except FAILED as failure:
        note = _note_of(failure)
        lineage = trace(chat, prints, shape, intent, speaker, key, Seen())
    return _Past(lineage, inherited(chat, shape, lineage.head), note)


def _diagnosed(request: Request, rules: Rules, past: _Past) -> Decision:
    """Which earlier blocks are repeated, how full the window is, and what to look for."""
    reading, lineage, policy, window = request.reading, past.lineage, rules.policy, request.window_tokens
    own_tokens = _own_tokens(reading, lineage)
    reply = reply_room(own_tokens, window, reading.chat.max_reply_tokens, policy.pressure.reply_reserve_tokens)
    replayed = replay(reading.places, lineage)
    drops_blocks = bool(replayed.tokens) and own_tokens + replayed.tokens + reply > window
    if drops_blocks:
        replayed = replace(replayed, repeated=())
    diagnosis = diagnose(
        reading.chat,
        reading.history_fulls,
        request.speaker,
        lineage,
        _conversation(request, rules, lineage),
        pressure(own_tokens + replayed.tokens, window, reply),
        replayed.standing_tokens,
        policy,
        replayed.occurrences,
        rules.signals.asides,
        () if drops_blocks else [stored.block.text for stored in replayed.standing],
    )
    return Decision(reading, past.shape, diagnosis, own_tokens, replayed, drops_blocks)


def _recalled(decision: Decision, rules: Rules) -> Generator[Lookup, Any, Decision]:
    """Look up what was diagnosed to be missing, and fit it into the budget and the window."""
    diagnosis, chat = decision.diagnosis, decision.reading.chat
    query, budget, kind, now = diagnosis.query, diagnosis.budget, diagnosis.kind, diagnosis.pressure
    assert query is not None and budget is not None and kind is not None
    try:
        if diagnosis.ask_journal:  # the last human message is gone from the request
            stored = yield StoredMessages(query.tenant, diagnosis.ask_journal)
            question = "\n".join(message.text for message in stored.values())
            query = replace(query, text=f"{question}\n{query.text}".strip())
            decision = replace(decision, diagnosis=replace(diagnosis, query=query))
        recalled = yield query
    except FAILED as failure:
        return replace(decision, note=_note_of(failure))
    early = Note.INDEXING if recalled.is_too_early else None
    decision = replace(decision, recalled=recalled)
    account = recalled.account
    if not recalled.admitted and account is None:
        return replace(decision, note=early or Note.NOTHING_RELEVANT)
    anchor, role = place(chat, diagnosis.anchor, rules.policy.memory.placement)
    block, cut = pack(recalled.candidates, beside_account(budget, account, query), kind, query.text)
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


def _current_facts(facts: FactQuery) -> Generator[Lookup, Any, CurrentFacts | None]:
    """Look up the facts that hold; None where that failed: a request can do without."""
    try:
        current: CurrentFacts = yield facts
    except FAILED:
        return None
    return current


def _with_facts(decision: Decision, rules: Rules, facts: FactQuery, current: CurrentFacts) -> Decision:
    """Tell facts in front of what the block quotes, or in a block of their own, where they fit into the window."""
    diagnosis, block, reading, lineage = decision.diagnosis, decision.block, decision.reading, decision.lineage
    if diagnosis.sheds and block is None:
        return decision
    chat, now = reading.chat, diagnosis.pressure
    held = () if lineage.head is None else (lineage.head.fulls[index] for index in lineage.held)
    telling = Telling(
        decision.conversation,
        is_whole=not facts.since,
        is_answered=block is not None and block.kind is BlockKind.RECALL,
        statements=told(stored.block.text for stored in decision.replayed.standing),
        visible=frozenset(chain(reading.history_fulls, held)),
        quoted=block.occurrences if block else (),
        question=newest_question(chat, rules.signals.asides),
        tells_all=rules.policy.facts.policy == "all",
    )
    chosen = choose_facts(current, telling, rules.policy.facts.tokens, lambda text: rules.count(text, chat.model))
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
