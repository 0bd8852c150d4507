"""
One request, from its body to what is forwarded: read, decide (`core/conversation`), render.

Memory may fail, the request may not: whatever goes wrong here, the client's own bytes go on, a header says why, and a
metric counts it. A turn is archived even where recall failed.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from time import perf_counter

import structlog

from proxy.core.archive.turns import bare_turn, turn_of
from proxy.core.caller.admission import mode_of
from proxy.core.caller.client_table import Signals
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
from proxy.core.response_headers import headers_of, log_fields, undecided_headers
from proxy.domain import (
    TURN_PREFIX,
    Clues,
    Mode,
    Note,
    Prepared,
    RawHeaders,
    TooLong,
    Turn,
)
from proxy.errors import WireError
from proxy.memory.archivist import Archivist
from proxy.memory.model_windows import ModelWindows
from proxy.memory.off_loop import OffLoop
from proxy.memory.recent_readings import RecentReadings
from proxy.memory.request_reader import Passed, RequestReader, skipped
from proxy.metrics import Metrics
from proxy.ports import Clock, Listener, Remembering, Wire
from proxy.settings.policy import Policy
from proxy.store.journal import Journal
from proxy.tokens.counter import TokenCounter
from proxy.tokens.windows import Windows
from proxy.upstream.routing import needs_model
from proxy.wire.json_body import model_of

RECALL_LIMIT = 100  # candidates that packing may choose from; a block holds some forty short messages

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
        recent: RecentReadings,
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
        self._windows = ModelWindows(policy, windows)
        self._metrics = metrics
        self._clock = clock
        self._work = OffLoop(executor)
        self._reader = RequestReader(self._rules, keyring, journal, recent, tokens, metrics, self._work)
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
        read = await self._reader.read(headers, named, body, wire, deadline)
        if isinstance(read, Passed):
            return _untouched(body, read.note, read.model or self._model(body))
        reading, speaker = read
        upstream = self._windows.upstream_of(reading.chat.model, wire, headers)
        window = self._windows.of(upstream, reading.chat.model)
        request = Request(reading, speaker, window, named.get("user-agent", ""), secrets.token_hex(8))
        decision = await self._decided(request, deadline)
        if isinstance(decision, Note):
            return _untouched(body, decision, reading.chat.model)
        out = await self._work.run(reading.new_bytes, wire.render, reading.chat, decision.insertions)
        turn = listen = None
        if mode is Mode.ON:
            turn = await self._work.run(reading.new_bytes, self._turn, decision, upstream)
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

    async def _decided(self, request: Request, deadline: float) -> Decision | Note:
        """Drive the decisions of one request, and answer what they ask."""
        size, deciding = request.reading.new_bytes, decide(request, self._rules)
        step = await self._work.run(size, advance, deciding, None)
        while not isinstance(step, Decision | Note):
            try:
                async with asyncio.timeout_at(deadline):
                    answer = await self._look_up(step)
            except FAILED as failure:
                skipped("history" if isinstance(step, Clues) else "recall", failure, self._metrics)
                answer = failure
            step = await self._work.run(size, advance, deciding, answer)
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
            bare = decision.bare(Note.TOO_LONG, window)
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

    def _model(self, body: bytes) -> str:
        """The model that a body names, where an upstream must be chosen by it and nothing else is to be read."""
        return model_of(body) if self._needs_model else ""


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
