"""
The reading of requests: from a body to a `Reading`, and to who sent it.

Everything that the text of a request costs is spent here, once: it is parsed, fingerprinted and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from proxy.core.caller.admission import is_excluded
from proxy.core.caller.credentials import forwarded
from proxy.core.caller.identity import identify, is_rotating
from proxy.core.caller.proxy_keys import ProxyKeys
from proxy.core.conversation import FAILED, Rules
from proxy.core.history.link_keys import reply_links
from proxy.core.reading import Reading
from proxy.domain import Chat, Fingerprint, Note, RawHeaders, Speaker
from proxy.memory.off_loop import INLINE_BYTES, OffLoop
from proxy.ports import Counts, Wire
from proxy.store.journal import Journal
from proxy.tokens.counter import TokenCounter
from proxy.wire.fingerprint import fingerprint
from proxy.wire.json_body import MAX_BODY_BYTES
from proxy.wire.message import parts_by_id, with_referred

MAX_MESSAGES = 20_000  # a longer history passes without memory: reading it takes too long

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Passed:
    """A request that memory has no part in: why, and the model that it asks ("" where that was not read)."""

    note: Note
    model: str = ""


class RequestReader:
    """Reads requests; one per app."""

    def __init__(
        self,
        rules: Rules,
        keyring: ProxyKeys,
        journal: Journal,
        tokens: TokenCounter,
        counts: Counts,
        work: OffLoop,
    ) -> None:
        self._rules = rules
        self._keyring = keyring
        self._journal = journal
        self._tokens = tokens
        self._counts = counts
        self._work = work
        self._has_warned_of_no_tenant = False

    async def read(
        self, headers: RawHeaders, named: Mapping[str, str], body: bytes, wire: Wire, deadline: float
    ) -> tuple[Reading, Speaker] | Passed:
        """
        Read one request.

        Args:
            named: the headers, lower-case names to values.
            deadline: by the event loop's clock; then no look-up is waited for.

        Raises:
            WireError: the body is none that we understand.
            MemoryFault: its tokens cannot be counted.
        """
        if len(body) > MAX_BODY_BYTES:
            return Passed(Note.TOO_LARGE)
        chat = await self._work.run(len(body), wire.parse, body)
        if len(chat.messages) > MAX_MESSAGES:
            return Passed(Note.TOO_LARGE, chat.model)
        speaker = self._speaker(headers, named, chat)
        if not speaker.tenant:
            return Passed(Note.NO_TENANT, chat.model)
        if is_excluded(chat, speaker, self._rules.policy.memory):
            return Passed(Note.OFF, chat.model)
        if any(message.refers for message in chat.messages):
            chat = await self._completed(chat, speaker, deadline)
        prints = await self._work.run(len(body), _fingerprints, chat, self._rules.key(speaker.tenant))
        is_much = self._tokens.uncounted_chars(chat, prints) > INLINE_BYTES
        return await self._work.run(INLINE_BYTES + is_much, self._counted, chat, prints), speaker

    def _speaker(self, headers: RawHeaders, named: Mapping[str, str], chat: Chat) -> Speaker:
        rules, credentials, key = self._rules, forwarded(headers), self._keyring.find(headers)
        speaker = identify(named, credentials, chat.raw, rules.signals, rules.policy.tenants, rules.secret, key)
        if not speaker.tenant:
            self._warn_of_no_tenant(credentials)
        return replace(speaker, user=rules.named(speaker.user), scope=rules.named(speaker.scope))

    async def _completed(self, chat: Chat, speaker: Speaker, deadline: float) -> Chat:
        """The request with what it only names by an id; the client's bytes stay as they are."""
        key = self._rules.key(speaker.tenant)
        named = reply_links((id for message in chat.messages for id in message.refers), key)
        try:
            async with asyncio.timeout_at(deadline):
                answers = await self._journal.answers(speaker.tenant, [print for _, print in named])
        except FAILED as failure:
            skipped("history", failure, self._counts)
            return chat
        parts = {id: part for answer in answers for id, part in parts_by_id(answer).items()}
        return replace(chat, messages=tuple(with_referred(message, parts) for message in chat.messages))

    def _counted(self, chat: Chat, prints: tuple[Fingerprint, ...]) -> Reading:
        reading = Reading(chat, prints, self._tokens.prompt(chat, prints))
        if chat.held:
            history = replace(chat, messages=reading.history, raw={})
            reading = replace(reading, history_tokens=self._tokens.prompt(history, reading.history_prints))
        return reading

    def _warn_of_no_tenant(self, credentials: Sequence[bytes]) -> None:
        """Say once why, and what to do: a newcomer would wonder why nothing is remembered."""
        if self._has_warned_of_no_tenant:
            return
        if not credentials:
            reason = "a request without a credential names no tenant"
        elif any(map(is_rotating, credentials)):
            reason = "bearers that change by themselves name no tenant"
        else:
            return
        self._has_warned_of_no_tenant = True
        hint = "set tenants.static, or start with --config personal"
        log.warning("no memory for some requests", note="no-tenant", reason=reason, hint=hint)


def skipped(where: str, failure: Exception, counts: Counts) -> None:
    """Count and log a look-up of a request that failed, or was not waited for."""
    is_late = isinstance(failure, TimeoutError)
    counts.fault(f"{where}_deadline" if is_late else where)
    log.warning("memory skipped", where=where, reason="deadline" if is_late else str(failure))


def _fingerprints(chat: Chat, key: bytes) -> tuple[Fingerprint, ...]:
    return tuple(fingerprint(message, key) for message in chat.messages)
