"""
Import: turns from files, written to the archive as if they had passed through the proxy.

They are redacted, cut into passages and made findable by the code that archives requests. A batch is one transaction,
and a turn that is stored is passed over: an import that was cut off is taken up by starting it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from palimpsest.core.archive.records import answer_record, record_of
from palimpsest.core.archive.retention import SIDE_REQUESTS, TOOL_RESULTS, TURNS, Cutoffs, cutoffs
from palimpsest.core.archive.tombstones import scope_print
from palimpsest.core.caller.client_table import Asides
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.caller.working_folder import working_folder
from palimpsest.core.conversation import conversation_named
from palimpsest.core.history.link_keys import flags_of, request_links
from palimpsest.core.recall.human_text import is_unspoken, typed_behind
from palimpsest.core.redaction.redaction import is_withheld, redact, stored_name
from palimpsest.domain import (
    TOOL_ROLES,
    AnswerRecord,
    Block,
    Completion,
    Fact,
    HeadFlag,
    NewMessage,
    Record,
    Role,
    Shape,
    Speaker,
    Turn,
    frozen,
)
from palimpsest.domain.errors import DataFault, PolicyError, WireError
from palimpsest.domain.portable_turn import ForgottenFact, PortableMessage, PortableTurn, stable_id
from palimpsest.settings.policy import RetentionPolicy
from palimpsest.store.engine import Engine
from palimpsest.store.knowledge.added_facts import add_facts
from palimpsest.store.knowledge.forgotten_facts import forget_again
from palimpsest.store.turns.arrivals import Arrival, Arrivals, ImportedCounts, stored_turns, without_words
from palimpsest.store.turns.tombstones import without_text
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message
from palimpsest.wire.storage_codec import storable
from palimpsest.wire.values import chars_of

BATCH_TURNS = 64  # of one transaction, some 50 ms: a proxy beside it writes its own in between
BATCH_CHARS = 512 * 1024  # ... of which no batch has more, unless one turn alone has
WITHOUT_TENANT = (
    "tenant: required, because these conversations come from another program: name one (--tenant), or use a "
    "configuration with tenants.static (--config personal)"
)


UNSTORABLE = (DataFault, ValueError, OverflowError)
"""What writing raises where it is the turn itself that cannot be stored."""

log = structlog.get_logger()

Clean = Callable[[str], str]


@frozen
class Destination:
    """Whose the imported turns become. "" keeps what the file says."""

    tenant: str = ""
    user: str = ""
    scope: str = ""
    default_tenant: str = ""  # of turns that name none: those of other programs


@dataclass(slots=True)
class Totals:
    """What an import has done so far."""

    written: ImportedCounts = field(default_factory=ImportedCounts)
    known: int = 0  # turns that were stored before
    of_nobody: int = 0  # turns that belong to no user
    broken: list[str] = field(default_factory=list)  # turns that cannot be stored, and why
    withheld: int = 0  # texts with more possible credentials than can be checked


@dataclass(slots=True)
class AgeCounts:
    """Messages in files, and how many of them retention erases as soon as they are stored."""

    messages: int = 0
    too_old: int = 0


def count_too_old(turns: Iterable[PortableTurn], into: Destination, policy: RetentionPolicy, now: float) -> AgeCounts:
    """Count the messages of these turns, and those that are older than retention keeps them."""
    found, of_tenant = AgeCounts(), dict[str, Cutoffs]()
    for turn in turns:
        tenant = _tenant_for(turn.tenant, into)
        if tenant not in of_tenant:
            of_tenant[tenant] = cutoffs(policy, tenant, now)
        said = [(message, turn.created_at) for message in turn.messages]
        said += [(turn.answer, turn.answered_at)] if turn.answer else []
        for message, created_at in said:
            kind = TOOL_RESULTS if message.raw.get("role") in TOOL_ROLES else TURNS
            kind = SIDE_REQUESTS if turn.role is Role.SIDE else kind
            found.messages += 1
            found.too_old += not message.is_erased and created_at <= getattr(of_tenant[tenant], kind)
    return found


class Importing:
    """Writes turns from files into one database; any number of processes may do so beside others that write."""

    def __init__(self, database: Engine, secret: bytes, redacts: bool = True) -> None:
        self._database = database
        self._secret = secret
        self._redacts = redacts
        self._arrivals = Arrivals()
        self.totals = Totals()

    async def import_turns(
        self, turns: Iterable[PortableTurn], into: Destination, report: Callable[[Totals], None] = lambda totals: None
    ) -> Totals:
        """Write turns, parents first, read on another thread; `report` is told the totals after each batch."""
        await self._database.open()
        batches = _batches(turns)
        while batch := await asyncio.to_thread(next, batches, None):
            await self._write([_reowned(turn, into) for turn in batch])
            report(self.totals)
        return self.totals

    async def import_facts(self, facts: Sequence[Fact], into: Destination) -> int:
        """Write added facts from another installation, but those forgotten here; returns how many are stored."""
        moved = [self._fact(fact, into) for fact in facts]
        key_of = partial(tenant_key, self._secret)
        stored = 0
        for start in range(0, len(moved), BATCH_TURNS):
            batch = moved[start : start + BATCH_TURNS]
            stored += sum(map(bool, await self._database.transact(partial(add_facts, facts=batch, key_of=key_of))))
        return stored

    async def import_forgotten(self, facts: Sequence[ForgottenFact], into: Destination, now: float) -> int:
        """Forget facts that were forgotten elsewhere, if their messages are stored; returns how many."""
        moved = [_moved_place(fact, into) for fact in facts]
        key_of = partial(tenant_key, self._secret)
        kept = 0
        for start in range(0, len(moved), BATCH_TURNS):
            step = partial(forget_again, facts=moved[start : start + BATCH_TURNS], key_of=key_of, now=now)
            kept += await self._database.transact(step)
        return kept

    def _fact(self, fact: Fact, into: Destination) -> Fact:
        return replace(
            fact,
            tenant=_tenant_for(fact.tenant, into),
            user=self._stored_name(into.user or fact.user),
            scope=self._stored_name(into.scope or fact.scope),
            subject=self._clean(fact.subject),
            slot=self._clean(fact.slot),
            value=self._clean(fact.value),
            source=replace(fact.source, who=self._clean(fact.source.who)),
        )

    async def _write(self, turns: Sequence[PortableTurn]) -> None:
        """Write the turns that are new or newly complete; one by one where a batch cannot be stored."""
        stored = await self._database.ask(lambda ask: stored_turns(ask, [turn.id for turn in turns]))
        wanted = [turn for turn in turns if turn.id not in stored or (stored[turn.id][1] and turn.is_complete)]
        self.totals.known += len(turns) - len(wanted)
        if not wanted:
            return
        arrivals = await asyncio.to_thread(self._read, wanted)
        try:
            await self._transact(arrivals)
        except UNSTORABLE:
            for arrival in arrivals:  # all but what cannot be stored
                try:
                    await self._transact([arrival])
                except UNSTORABLE as fault:
                    self.totals.broken.append(f"turn {arrival.source.id}: {fault}")

    async def _transact(self, arrivals: Sequence[Arrival]) -> None:
        """Write arrivals in one transaction, and count them."""
        try:
            written = await self._database.transact(lambda transaction: self._arrivals.write(transaction, arrivals))
        except BaseException:
            self._arrivals.start_over()
            raise
        self.totals.written.add(written)

    def _read(self, turns: Sequence[PortableTurn]) -> list[Arrival]:
        """The turns as arrivals; those that cannot be read are listed as broken."""
        found = []
        for turn in turns:
            try:
                found.append(self._arrival(turn))
                self.totals.of_nobody += not turn.user
            except WireError as wrong:
                self.totals.broken.append(f"turn {turn.id}: {wrong}")
        return found

    def _arrival(self, source: PortableTurn) -> Arrival:
        """A turn as the archive takes it, without what it keeps of earlier ones."""
        key = tenant_key(self._secret, source.tenant)
        conversation, serves = source.conversation, source.serves
        if source.client_ids:  # as the proxy names it when that client goes on
            conversation = conversation_named(source.tenant, source.client_ids[0], self._secret)
            serves = conversation_named(source.tenant, serves, self._secret) if serves else ""
        new = tuple(self._new_message(message, key) for message in source.messages)
        history = [one for one in new if not one.message.is_instruction]
        instructions = [one.fingerprint for one in new if one.message.is_instruction]
        messages, prints = [one.message for one in history], [one.fingerprint for one in history]
        user, scope, model = map(self._stored_name, (source.user, source.scope, source.model))
        model = storable(model)
        speaker = Speaker(source.tenant, user, scope, client_ids=source.client_ids)
        is_side = source.role is Role.SIDE
        turn = Turn(
            id=source.id,
            tenant=source.tenant,
            conversation=conversation,
            role=source.role,
            event=source.event,
            kept=(),
            new=new,
            parent_turn=None,
            parent_conversation=serves,
            shape=Shape(
                model=model,
                instructions=tuple(p.full for p in instructions),
                opens=instructions[0].opening if instructions else 0,
            ),
            links=() if is_side else request_links(messages, prints, range(len(history)), speaker, key),
            model=model,
            user=user,
            scope=scope,
            created_at=source.created_at,
            block=_block(source),
            anchor=source.block.position if source.block else -1,
            replaces_blocks=source.sheds_blocks,
            last_full=prints[-1].full if prints else 0,
            tokens=source.prompt_tokens or 0,
            explain={"role": source.role.value, "event": source.event.value, "evidence": ["imported"]},
            chars=sum(chars_of(message.raw) for message in source.messages),
            folder=0 if source.parent else working_folder([one.message for one in new], key),
        )
        record = record_of(turn, key, self._clean)
        erased = {message.position for message in source.messages if message.is_erased}
        entries = tuple(without_text(e) if e.new.position in erased else e for e in record.entries)
        # what was never here may come, though its tenant's or user's past was erased: single messages are compared
        scopes = tuple(scope_print(key, "conversation", name) for name in (conversation, serves) if name)
        return Arrival(source, Record(record.turn, entries, scopes), self._heard(source, turn, key))

    def _heard(self, source: PortableTurn, turn: Turn, key: bytes) -> AnswerRecord | None:
        """The answer of a turn as it would have been archived; None: it has none."""
        if source.ending is None:
            return None
        message = read_message(source.answer.raw) if source.answer else None
        completion = Completion(message, source.prompt_tokens)
        heard = answer_record(turn, completion, source.ending, source.answered_at, key, self._clean)
        return without_words(heard) if source.answer and source.answer.is_erased else heard

    def _new_message(self, message: PortableMessage, key: bytes) -> NewMessage:
        read = read_message(message.raw)
        aside = HeadFlag.ASIDE * is_unspoken(read, Asides())
        flags = flags_of(read) | aside
        if message.is_summary:
            flags |= HeadFlag.SUMMARY | HeadFlag.TYPED * bool(typed_behind(read, Asides()))
        return NewMessage(read, fingerprint_of(read, key), message.position, flags)

    def _clean(self, text: str) -> str:
        """The text without credentials, where the policy redacts."""
        if not self._redacts:
            return text
        cleaned = redact(text)
        self.totals.withheld += is_withheld(cleaned, text)
        return cleaned

    def _stored_name(self, name: str) -> str:
        return stored_name(name, self._secret, self._redacts)


def _block(source: PortableTurn) -> Block | None:
    said = source.block
    return Block(said.text, said.kind, (), said.tokens, said.role) if said else None


def _tenant_for(named: str, into: Destination) -> str:
    if tenant := into.tenant or named or into.default_tenant:
        return tenant
    raise PolicyError(WITHOUT_TENANT)


def _reowned(turn: PortableTurn, into: Destination) -> PortableTurn:
    """The turn as the new owner's, with another id in another tenant, so that both can be stored."""
    tenant = _tenant_for(turn.tenant, into)
    turn = replace(turn, user=into.user or turn.user, scope=into.scope or turn.scope)
    if tenant == turn.tenant:
        return turn

    def named(id: str) -> str:
        return stable_id(tenant, id) if id else id

    block = turn.block and replace(turn.block, quotes=tuple((named(id), at) for id, at in turn.block.quotes))
    elsewhere = tuple((position, (named(id), at)) for position, (id, at) in turn.kept_elsewhere)
    return replace(
        turn, tenant=tenant, id=named(turn.id), parent=named(turn.parent), kept_elsewhere=elsewhere, block=block
    )


def _moved_place(fact: ForgottenFact, into: Destination) -> ForgottenFact:
    """The place of a forgotten fact in the turn that `_reowned` made."""
    tenant, (turn, position) = _tenant_for(fact.tenant, into), fact.place
    named = turn if tenant == fact.tenant else stable_id(tenant, turn)
    return replace(fact, tenant=tenant, place=(named, position))


def _batches(turns: Iterable[PortableTurn]) -> Iterator[list[PortableTurn]]:
    """Group turns into batches, limited in turns and characters."""
    batch: list[PortableTurn] = []
    chars = 0
    for turn in turns:
        size = sum(chars_of(message.raw) for message in (*turn.messages, *filter(None, [turn.answer])))
        if batch and (len(batch) == BATCH_TURNS or chars + size > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(turn)
        chars += size
    if batch:
        yield batch
