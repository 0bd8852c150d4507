"""
The reading of requests: from a body to a `Reading`, and to who sent it.

Everything that the text of a request costs is spent here, once: it is parsed, fingerprinted and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, count
from operator import is_not

import structlog

from palimpsest.core.caller.admission import is_excluded
from palimpsest.core.caller.credentials import forwarded_secrets
from palimpsest.core.caller.identity import identify, is_rotating
from palimpsest.core.caller.working_folder import FIRST_MESSAGES, working_folder
from palimpsest.core.conversation import FAILED, Rules
from palimpsest.core.history.link_keys import reply_links
from palimpsest.core.reading import Reading
from palimpsest.domain import Chat, Fingerprint, Follows, Json, Note, PersistentList, Speaker, frozen
from palimpsest.domain.ports import Counts, Wire
from palimpsest.memory.request.arrival import Arrival
from palimpsest.memory.request.recent_readings import RecentReading, RecentReadings, Summed
from palimpsest.memory.request.sized_executor import INLINE_BYTES, SizedExecutor
from palimpsest.memory.tokens.counter import TokenCounter
from palimpsest.store.journal import Journal
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.json_body import MAX_BODY_BYTES
from palimpsest.wire.layout import KnownBody, known_body, layout_of
from palimpsest.wire.message import bytes_of, parts_by_id, with_referred
from palimpsest.wire.values import memory_bytes

MAX_MESSAGES = 20_000  # a longer history passes without memory: reading it takes too long
BYTES_PER_MESSAGE = 16  # that looking through a message read before costs, in bytes that are read anew

NOTHING = Summed.of(())

log = structlog.get_logger()


@frozen
class UntouchedRequest:
    """A request that memory does not act on: the reason, and its model ("" if not read)."""

    note: Note
    model: str = ""


@dataclass(slots=True)
class RequestReader:
    """Reads requests; one per policy."""

    rules: Rules
    journal: Journal
    recent: RecentReadings
    tokens: TokenCounter
    counts: Counts
    work: SizedExecutor
    _has_warned_of_no_tenant: bool = field(default=False, init=False)

    async def read(
        self, arrival: Arrival, timeout_seconds: float, turn: str = ""
    ) -> tuple[Reading, Speaker, Follows | None] | UntouchedRequest:
        """
        Read one request.

        Args:
            timeout_seconds: that a look-up is waited for, at most.
            turn: the id that it will be archived under; "" where it will not.

        Returns:
            What it says, who says it, and the request that it goes on from, where that was read here.

        Raises:
            WireError: the body is none that we understand.
            MemoryFault: its tokens cannot be counted.
        """
        body, wire, tenant = arrival.body, arrival.wire, arrival.tenant
        if len(body) > MAX_BODY_BYTES:
            return UntouchedRequest(Note.TOO_LARGE)
        rules = self.rules
        if tenant in rules.off_for:
            return UntouchedRequest(Note.DISABLED)
        before, same, does_repeat = self.recent.find(tenant, wire, body) if tenant else (None, 0, False)
        erasures = self.recent.erasures
        new_bytes, taken = len(body) - same, None
        if before:
            of_wire = wire.LISTED, wire.FOLDS
            taken = await self.work.run(new_bytes, known_body, body, before.reading.chat, *of_wire, does_repeat)
        if taken is None:
            new_bytes = len(body)
        chat = await self.work.run(new_bytes, _parsed, arrival, taken)
        if len(chat.messages) > MAX_MESSAGES:
            return UntouchedRequest(Note.TOO_LARGE, chat.model)
        speaker = identify(tenant, arrival.request.named, chat.raw, rules.signals, arrival.request.key)
        if speaker.user or speaker.scope:
            speaker = replace(speaker, user=rules.stored_name(speaker.user), scope=rules.stored_name(speaker.scope))
        if not tenant:
            self._warn_of_no_tenant(forwarded_secrets(arrival.request.headers))
            return UntouchedRequest(Note.NO_TENANT, chat.model)
        if is_excluded(chat, speaker, self.rules.policy.memory):
            return UntouchedRequest(Note.OFF, chat.model)
        known = _known_count(chat, before)
        if before and known >= FIRST_MESSAGES:
            folder = before.speaker.folder
        else:
            find = partial(working_folder, has_tools=bool(chat.raw.get("tools")))
            folder = await self.work.run(new_bytes, find, chat.messages, rules.key(tenant))
        speaker = replace(speaker, folder=folder)
        if any(message.refers for message in chat.messages[known:]):
            chat = replace(await self._completed(chat, speaker, timeout_seconds), layout=None)
        new_bytes += BYTES_PER_MESSAGE * len(chat.messages)
        prints, sizes = await self.work.run(new_bytes, _measure, chat, rules.key(tenant), before, known)
        is_counted = known if before and before.encoding == self.tokens.encoding(chat.model) else 0
        if before and _outside(chat) is not _outside(before.reading.chat):
            is_counted = 0
        is_much = self.tokens.uncounted_chars(chat, prints, is_counted) > INLINE_BYTES
        size = INLINE_BYTES + is_much
        counted = partial(self._count_tokens, turn, speaker, wire, before, known, new_bytes, sizes)
        read = await self.work.run(size, counted, chat, prints)
        if chat.layout is not None and erasures == self.recent.erasures:
            self.recent.remember(tenant, body, read, before if does_repeat else None)
        follows = None
        if before and before.turn and known == len(before.reading.prints):
            follows = Follows(before.turn, before.speaker, len(before.reading.history))
        return read.reading, speaker, follows

    async def _completed(self, chat: Chat, speaker: Speaker, timeout_seconds: float) -> Chat:
        """The request with references by id filled in; the client's bytes are unchanged."""
        key = self.rules.key(speaker.tenant)
        named = reply_links((id for message in chat.messages for id in message.refers), key)
        try:
            async with asyncio.timeout(timeout_seconds):
                answers = await self.journal.answers(speaker.tenant, [fingerprint for _, fingerprint in named])
        except FAILED as failure:
            skipped("history", failure, self.counts)
            return chat
        parts = {id: part for answer in answers for id, part in parts_by_id(answer).items()}
        return replace(chat, messages=tuple(with_referred(message, parts) for message in chat.messages))

    def _count_tokens(
        self,
        turn: str,
        speaker: Speaker,
        wire: Wire,
        before: RecentReading | None,
        known: int,
        new_bytes: int,
        sizes: tuple[Summed, int],
        chat: Chat,
        prints: Sequence[Fingerprint],
    ) -> RecentReading:
        tokens, model = self.tokens, chat.model
        encoding = tokens.encoding(model)
        counted, at = NOTHING, 0
        if before and before.encoding == encoding:
            counted, at = before.message_tokens, known
        has_same_tools = before and at and _outside(chat) is _outside(before.reading.chat)
        tools = before.tools_tokens if before and has_same_tools else tokens.tools(chat)
        counted = counted.then(at, tokens.messages(model, chat.messages[at:], prints[at:]))
        reading = Reading(chat, prints, tokens.scaled(model, counted.total + tools), 0, tools, counted.each, new_bytes)
        if before:
            reading.fill_caches(before.reading, known)
        if chat.held:
            history = sum(counted.each[at] for at in reading.places)
            reading = replace(reading, history_tokens=tokens.scaled(model, history))
        return RecentReading(turn, speaker, wire, reading, encoding, counted, tools, *sizes)

    def _warn_of_no_tenant(self, credentials: Sequence[bytes]) -> None:
        """Say once why, and what to do: a newcomer would wonder why nothing is remembered."""
        if self._has_warned_of_no_tenant:
            return
        if not credentials:
            reason = "a request without a credential names no tenant"
        elif any(map(is_rotating, credentials)):
            reason = "credentials that change by themselves name no tenant"
        else:
            return
        self._has_warned_of_no_tenant = True
        hint = "set tenants.static, give callers keys, or start with --config personal"
        log.warning("no memory for some requests", note="no-tenant", reason=reason, hint=hint)


def skipped(where: str, failure: Exception, counts: Counts) -> None:
    """Count and log a look-up of a request that failed, or was not waited for."""
    is_late = isinstance(failure, TimeoutError)
    counts.fault(f"{where}_deadline" if is_late else where)
    log.warning("memory skipped", where=where, reason="deadline" if is_late else str(failure))


def _parsed(arrival: Arrival, known: KnownBody | None) -> Chat:
    """A request with its layout, where that can be told; what was read before is not read again."""
    body, wire = arrival.body, arrival.wire
    chat = wire.parse(body, known, None if known else arrival.request.json_object)
    if known is not None or not arrival.tenant or any(message.refers for message in chat.messages):
        return chat  # references are completed by what is stored, which may change
    return replace(chat, layout=layout_of(body, chat.raw, wire.LISTED))


def _known_count(chat: Chat, before: RecentReading | None) -> int:
    """How many of the first messages are those that were read before."""
    if before is None:
        return 0
    old, new = before.reading.chat.messages, chat.messages
    if isinstance(new, PersistentList) and (shared := new.shared(old)):
        return shared
    return next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))  # thousands, most of them the same


def _measure(
    chat: Chat, key: bytes, before: RecentReading | None, known: int
) -> tuple[Sequence[Fingerprint], tuple[Summed, int]]:
    """The fingerprints of all messages; bytes of memory that each takes, and that what stands beside them takes."""
    sizes = (before.message_bytes if before else NOTHING).then(known, [*map(bytes_of, chat.messages[known:])])
    outside = _outside(chat)
    is_known = before and outside is _outside(before.reading.chat)
    outside_bytes = before.outside_bytes if before and is_known else memory_bytes(outside)
    return _fingerprints(chat, key, before, known), (sizes, outside_bytes)


def _fingerprints(chat: Chat, key: bytes, before: RecentReading | None, known: int) -> Sequence[Fingerprint]:
    if before is None:
        return tuple(fingerprint_of(message, key) for message in chat.messages)
    old, new = before.reading, chat.messages[known:]
    moved: dict[int, Fingerprint] = {}
    if known < len(old.prints):
        further = zip(old.chat.messages[known:], old.prints[known:], strict=True)
        moved = {id(message): fingerprint for message, fingerprint in further}
    read = [moved.get(id(message)) or fingerprint_of(message, key) for message in new]
    return PersistentList.of(old.prints).then(known, read)


def _outside(chat: Chat) -> Json | None:
    return chat.layout.outside if chat.layout else None
