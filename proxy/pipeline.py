"""
One request, from its body to what is forwarded: read, decide (`core/conversation`), render.

Memory may fail, the request may not: whatever goes wrong here, the client's own bytes go on, a header says why, and a
metric counts it. A turn is archived even where recall failed.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from time import perf_counter
from typing import TypeVar

import structlog

from proxy.core.archive.turns import bare_turn, turn_of
from proxy.core.caller.admission import is_excluded, mode_of
from proxy.core.caller.client_table import Signals
from proxy.core.caller.credentials import forwarded
from proxy.core.caller.identity import identify, is_rotating
from proxy.core.caller.proxy_keys import ProxyKeys
from proxy.core.conversation import (
    FAILED,
    Foreseen,
    Lookup,
    Request,
    Rules,
    StoredMessages,
    advance,
    decide,
)
from proxy.core.decision import Decision
from proxy.core.history.link_keys import reply_links
from proxy.core.reading import Reading
from proxy.core.response_headers import headers_of, log_fields, undecided_headers
from proxy.domain import (
    TURN_PREFIX,
    Chat,
    Clues,
    Fingerprint,
    Mode,
    Note,
    Prepared,
    RawHeaders,
    Speaker,
    TooLong,
    Turn,
)
from proxy.errors import WireError
from proxy.memory.archivist import Archivist
from proxy.memory.model_windows import ModelWindows
from proxy.metrics import Metrics
from proxy.ports import Clock, Listener, Remembering, Wire
from proxy.settings.policy import Policy
from proxy.store.journal import Journal
from proxy.tokens.counter import TokenCounter
from proxy.tokens.windows import Windows
from proxy.upstream.routing import needs_model
from proxy.wire.fingerprint import fingerprint
from proxy.wire.json_body import model_of
from proxy.wire.message import parts_by_id, with_referred

INLINE_BYTES = 64 * 1024  # more work than this at once stalls every other request: off the event loop
RECALL_LIMIT = 100  # candidates that packing may choose from; a block holds some forty short messages

T = TypeVar("T")
log = structlog.get_logger()


class Pipeline:
    """One per app; holds no state of any conversation."""

    def __init__(
        self,
        *,
        policy: Policy,
        signals: Signals,
        secret: bytes,
        journal: Journal,
        remembering: Remembering,
        archivist: Archivist,
        tokens: TokenCounter,
        windows: Windows,
        metrics: Metrics,
        keyring: ProxyKeys,
        clock: Clock,
        executor: Executor,
    ) -> None:
        self._policy = policy
        self._rules = Rules(policy, signals, secret, tokens.text)
        self._journal = journal
        self._remembering = remembering
        self._archivist = archivist
        self._tokens = tokens
        self._windows = ModelWindows(policy, windows)
        self._metrics = metrics
        self._keyring = keyring
        self._clock = clock
        self._executor = executor
        self._warned_of_no_tenant = False
        self._needs_model = needs_model(policy.upstreams)

    async def prepare(self, headers: RawHeaders, body: bytes | None, wire: Wire) -> Prepared:
        """What to forward for one request of a memory endpoint, and what to say of it; see `Preparing`."""
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        mode = mode_of(named, self._policy.memory)
        if body is None:
            return _untouched(b"", Note.OFF if mode is Mode.OFF else Note.TOO_LARGE, "")
        if mode is Mode.OFF:
            return _untouched(body, Note.OFF, self._model(body))
        started = perf_counter()
        try:
            prepared = await self._remember(headers, named, body, wire, mode)
        except WireError:  # what we cannot read, the upstream may: it will say so itself
            self._metrics.fault("unreadable")
            prepared = _untouched(body, Note.FAULT, self._model(body))
        except Exception as fault:  # the one broad guard: memory may fail, the request may not
            self._failed(fault)
            prepared = _untouched(body, Note.FAULT, self._model(body))
        seconds = perf_counter() - started
        self._metrics.observe("memory", seconds)
        return replace(prepared, told={**prepared.told, "memory_ms": round(seconds * 1000)})

    def overhears(self, method: str, path: str) -> Callable[[int, RawHeaders], Listener] | None:
        """Who listens to the answer to a request that memory does not act on; None: nobody."""
        return self._windows.overhears(method, path)

    async def _remember(
        self, headers: RawHeaders, named: Mapping[str, str], body: bytes, wire: Wire, mode: Mode
    ) -> Prepared:
        """
        Read, decide, render.

        Raises:
            WireError: the body is none that we understand.
        """
        deadline = asyncio.get_running_loop().time() + self._policy.memory.deadline_ms / 1000
        read = await self._read(headers, named, body, wire, deadline)
        if isinstance(read, Prepared):
            return read
        reading, speaker = read
        upstream = self._windows.upstream_of(reading.chat.model, wire, headers)
        window = self._windows.of(upstream, reading.chat.model)
        request = Request(reading, speaker, window, named.get("user-agent", ""), secrets.token_hex(8))
        decision = await self._decided(request, deadline)
        if isinstance(decision, Note):
            return _untouched(body, decision, reading.chat.model)
        out = await self._run(len(body), wire.render, reading.chat, decision.insertions)
        turn = listen = None
        if mode is Mode.ON:
            turn = await self._run(len(body), self._turn, decision, upstream)
            self._archivist.note(turn)
            listen = functools.partial(self._archivist.listen, turn, wire)
        note = decision.note or (Note.READ_ONLY if mode is Mode.READ_ONLY else None)
        if mode is Mode.ON and self._archivist.is_behind(speaker.tenant):
            note = Note.FAULT  # what was said before is still not on the disk: more urgent than why we are silent
        lineage, added = decision.lineage, decision.added
        self._metrics.request(
            lineage.role.value, lineage.event.value, note.value if note else "", added.tokens, added.own_tokens
        )
        without = None
        if out != body:
            without = functools.partial(self._without, decision, wire, upstream, turn)
        return _prepared(out, decision, turn, note, listen, without)

    async def _read(
        self, headers: RawHeaders, named: Mapping[str, str], body: bytes, wire: Wire, deadline: float
    ) -> tuple[Reading, Speaker] | Prepared:
        """
        Read a request and say who sent it; or what is forwarded, where memory has no part in it.

        Raises:
            WireError: the body is none that we understand.
        """
        policy = self._policy
        if len(body) > policy.limits.memory_body_bytes:
            return _untouched(body, Note.TOO_LARGE, self._model(body))
        chat = await self._run(len(body), wire.parse, body)
        if len(chat.messages) > policy.limits.memory_messages:
            return _untouched(body, Note.TOO_LARGE, chat.model)
        credentials, key = forwarded(headers), self._keyring.find(headers)
        rules = self._rules
        speaker = identify(named, credentials, chat.raw, rules.signals, policy.tenants, rules.secret, key)
        speaker = replace(speaker, user=rules.named(speaker.user), scope=rules.named(speaker.scope))
        if not speaker.tenant:
            self._warn_of_no_tenant(credentials)
            return _untouched(body, Note.NO_TENANT, chat.model)
        if is_excluded(chat, speaker, policy.memory):
            return _untouched(body, Note.OFF, chat.model)
        if any(message.refers for message in chat.messages):
            chat = await self._completed(chat, speaker, deadline)
        prints = await self._run(len(body), _fingerprints, chat, rules.key(speaker.tenant))
        is_much = self._tokens.uncounted_chars(chat, prints) > INLINE_BYTES
        return await self._run(INLINE_BYTES + is_much, self._measured, chat, prints), speaker

    async def _completed(self, chat: Chat, speaker: Speaker, deadline: float) -> Chat:
        """The request with what it only names by an id; the client's bytes stay as they are."""
        key = self._rules.key(speaker.tenant)
        named = reply_links((id for message in chat.messages for id in message.refers), key)
        try:
            async with asyncio.timeout_at(deadline):
                answers = await self._journal.answers(speaker.tenant, [print for _, print in named])
        except FAILED as failure:
            self._skipped("history", failure)
            return chat
        parts = {id: part for answer in answers for id, part in parts_by_id(answer).items()}
        return replace(chat, messages=tuple(with_referred(message, parts) for message in chat.messages))

    def _measured(self, chat: Chat, prints: tuple[Fingerprint, ...]) -> Reading:
        reading = Reading(chat, prints, self._tokens.prompt(chat, prints))
        if chat.held:
            history = replace(chat, messages=reading.history, raw={})
            reading = replace(reading, history_tokens=self._tokens.prompt(history, reading.history_prints))
        return reading

    async def _decided(self, request: Request, deadline: float) -> Decision | Note:
        """Drive the decisions of one request, and answer what they ask."""
        size, deciding = len(request.reading.chat.body), decide(request, self._rules)
        step = await self._run(size, advance, deciding, None)
        while not isinstance(step, Decision | Note):
            try:
                async with asyncio.timeout_at(deadline):
                    answer = await self._look_up(step)
            except FAILED as failure:
                self._skipped("history" if isinstance(step, Clues) else "recall", failure)
                answer = failure
            step = await self._run(size, advance, deciding, answer)
        return step

    async def _look_up(self, asked: Lookup) -> object:
        match asked:
            case Clues():
                return await self._journal.seen(asked)
            case Foreseen():
                self._remembering.expect(asked.text)
                return None
            case StoredMessages():
                return await self._journal.messages(asked.tenant, asked.occurrences)
            case _:
                return await self._remembering.recall(asked, RECALL_LIMIT)

    def _turn(self, decision: Decision, upstream: str) -> Turn:
        id = TURN_PREFIX + secrets.token_hex(8)
        return turn_of(decision, self._rules, id=id, upstream=upstream, created_at=self._clock())

    def _without(self, decision: Decision, wire: Wire, upstream: str, turn: Turn | None, refusal: TooLong) -> Prepared:
        """The request as the client sent it, since the upstream finds it too long with what was added; never raises."""
        model, own_tokens, added_tokens = decision.reading.chat.model, decision.own_tokens, decision.added.tokens
        try:
            self._metrics.too_long(added_tokens)
            sent_tokens = own_tokens + added_tokens + decision.diagnosis.pressure.reply_tokens
            window = self._windows.refused(upstream, model, refusal, own_tokens, sent_tokens)
            log.warning(
                "too long with what memory added, sent once more without it",
                upstream=upstream,
                added_tokens=added_tokens,
                own_tokens=own_tokens,
                window_tokens=window,
            )
            bare = decision.bare(Note.TOO_LONG, window, self._policy.pressure)
            listen = None
            if turn is not None:
                turn = bare_turn(turn, bare)
                listen = functools.partial(self._archivist.listen, turn, wire)
            return _prepared(b"", bare, turn, Note.TOO_LONG, listen)
        except Exception as fault:  # a guard, as in `prepare`
            self._failed(fault)
            return _untouched(b"", Note.FAULT, model)

    def _failed(self, fault: Exception) -> None:
        self._metrics.fault("pipeline")
        log.error("memory failed, the request goes on", where="pipeline", fault=type(fault).__name__, exc_info=True)

    def _skipped(self, where: str, failure: Exception) -> None:
        late = isinstance(failure, TimeoutError)
        self._metrics.fault(f"{where}_deadline" if late else where)
        log.warning("memory skipped", where=where, reason="deadline" if late else str(failure))

    def _model(self, body: bytes) -> str:
        """The model that a body names, where an upstream must be chosen by it and nothing else is to be read."""
        return model_of(body) if self._needs_model else ""

    def _warn_of_no_tenant(self, credentials: Sequence[bytes]) -> None:
        """Say once why, and what to do: a newcomer would wonder why nothing is remembered."""
        if self._warned_of_no_tenant:
            return
        if not credentials:
            reason = "a request without a credential names no tenant"
        elif any(map(is_rotating, credentials)):
            reason = "bearers that change by themselves name no tenant"
        else:
            return
        self._warned_of_no_tenant = True
        hint = "set tenants.static, or start with --config personal"
        log.warning("no memory for some requests", note="no-tenant", reason=reason, hint=hint)

    async def _run(self, size: int, function: Callable[..., T], *args: object) -> T:
        """Run pure work here, or off the event loop where it is large."""
        if size <= INLINE_BYTES:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(self._executor, functools.partial(function, *args))


def _fingerprints(chat: Chat, key: bytes) -> tuple[Fingerprint, ...]:
    return tuple(fingerprint(message, key) for message in chat.messages)


def _untouched(body: bytes, note: Note, model: str) -> Prepared:
    """A request that passes as it came, and why memory has no part in it."""
    return Prepared(body, undecided_headers(note), model, told={"note": note.value})


def _prepared(
    body: bytes,
    decision: Decision,
    turn: Turn | None,
    note: Note | None,
    listen: Callable[[int, RawHeaders], Listener] | None,
    without: Callable[[TooLong], Prepared] | None = None,
) -> Prepared:
    id = turn.id if turn else ""
    headers, told = headers_of(decision, id, note), log_fields(decision, id, note)
    return Prepared(body, headers, decision.reading.chat.model, listen, told, without)
