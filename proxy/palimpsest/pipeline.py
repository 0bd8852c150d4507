"""
One request, from its body to what is forwarded: read, decide (`core/conversation`), render.

Memory may fail, the request may not: whatever goes wrong here, the client's own bytes go on, a header says why, and a
metric counts it. So it is when the deadline passes, whatever was being done: reading goes on beside, and the turn is
archived when it ends.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from time import perf_counter

import structlog

from palimpsest.core.archive.turns import bare_turn, turn_of, unsent_turn
from palimpsest.core.caller.admission import is_unknown_mode, mode_of
from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.proxy_keys import Key, ProxyKeys
from palimpsest.core.conversation import Request, Rules
from palimpsest.core.decision import Decision
from palimpsest.core.response_headers import LogFields, headers_of, log_fields, undecided_headers
from palimpsest.domain import REQUEST_HEADER, TURN_PREFIX, Follows, Mode, Note, RawHeaders, TooLong, Turn
from palimpsest.domain.errors import MemoryFault, WireError
from palimpsest.domain.ports import Clock, Listener, Prepared, Tracer, Wire
from palimpsest.memory.recording.deferred_turn import DeferredTurn
from palimpsest.memory.recording.memory_spans import search_span, tell_search
from palimpsest.memory.request.decider import LATE_SECONDS, Decider
from palimpsest.memory.request.model_windows import ModelWindows
from palimpsest.memory.request.request_reader import Passed, RequestReader, skipped
from palimpsest.memory.request.sized_executor import INLINE_BYTES, SizedExecutor
from palimpsest.memory.service import MemoryService
from palimpsest.memory.timeouts import await_for
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.metrics import Metrics
from palimpsest.telemetry.tracing import NO_TRACER, TRACEPARENT
from palimpsest.upstream.routing import needs_model
from palimpsest.wire.json_body import model_of

COMMIT_SECONDS = 600.0  # for a commit, behind the deadline, while there is room: a process may hang for a minute
GRACE_SECONDS = 0.03  # behind the deadline: what was looked for too long is left out, and the rest can still be sent

log = structlog.get_logger()


@dataclass(slots=True)
class _Attempt:
    """One request on its way through memory."""

    headers: RawHeaders
    named: Mapping[str, str]  # the same, lower-case names to values
    body: bytes
    wire: Wire
    key: Key | None  # of the proxy, that the caller presented
    mode: Mode
    deadline: float  # by the event loop's clock; then nothing more is looked for
    created_at: float  # Unix seconds
    turn_id: str
    turn: Turn | None = None  # as what it is archived, once that is known
    was_forwarded: bool = False  # as the client sent it, because the deadline passed
    late: DeferredTurn | None = None  # and this takes its turn, when that has been read
    traceparent: str = ""  # of the request, if it is traced
    decision: Decision | None = None  # once there is one
    # Done when the request need not wait any longer: memory has decided, or the store fails.
    released: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def release(self, _done: object = None) -> None:
        """End the wait for memory, whatever it has by then."""
        if not self.released.done():
            self.released.set_result(None)


class Pipeline:
    """One per policy; holds no state of any conversation. Await `close` in the end."""

    def __init__(
        self,
        policy: Policy,
        signals: Signals,
        secret: bytes,
        keyring: ProxyKeys,
        memory: MemoryService,
        metrics: Metrics,
        clock: Clock,
        generation: int = 0,
        off_for: frozenset[str] = frozenset(),
        tracer: Tracer = NO_TRACER,
        trusts_machine: bool = False,
    ) -> None:
        """
        Args:
            generation: number of the policy.
            off_for: tenants for whom memory is switched off; "" everybody.
            trusts_machine: programs on this machine need no credential to be remembered.
        """
        self._policy = policy
        self._keyring = keyring
        self._rules = Rules(policy, signals, secret, memory.tokens.text, generation, off_for, trusts_machine)
        self._archivist = memory.archivist
        self._traffic = memory.traffic
        self._windows = ModelWindows(policy, memory.windows)
        self._metrics = metrics
        self._clock = clock
        self._tracer = tracer
        self._work = SizedExecutor(memory.executor)
        self._reader = RequestReader(self._rules, memory.journal, memory.recent, memory.tokens, metrics, self._work)
        self._decider = Decider(
            *(self._rules, memory.journal, memory.recall, memory.assisted, metrics, self._work, clock)
        )
        self._needs_model = needs_model(policy.upstreams)
        self._running: set[asyncio.Task[Prepared]] = set()
        self._late: dict[DeferredTurn, memoryview] = {}  # that are not read yet, with how their requests begin

    async def settle(self) -> None:
        """Wait until nothing is being read any more."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Give up what is still being read."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def listener_for(self, method: str, path: str) -> Callable[[int, RawHeaders], Listener] | None:
        """The listener for the answer to a request that memory does not act on; None: none."""
        return self._windows.listener_for(method, path)

    async def prepare(
        self, headers: RawHeaders, body: bytes | None, wire: Wire, arrived: float | None = None
    ) -> Prepared:
        """Prepare one request of a memory endpoint; see `Preparer`."""
        try:
            prepared = await self._prepare(headers, body, wire, arrived)
        except Exception as fault:  # the outermost guard: what is beside the decisions may fail as well
            self._failed(fault)
            prepared = _untouched(body or b"", Note.FAULT, await self._model(body or b""))
        fields = prepared.log_fields
        if "role" not in fields and "turn" not in fields:  # else it is counted where it is decided, perhaps later
            self._metrics.request("", "", str(fields["note"]))
        return prepared

    async def _prepare(self, headers: RawHeaders, body: bytes | None, wire: Wire, arrived: float | None) -> Prepared:
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        if "" in self._rules.off_for:
            return _untouched(body or b"", Note.DISABLED, await self._model(body or b""))
        key = self._keyring.find(headers)
        mode = mode_of(named, self._policy.memory, is_read_only=key is not None and key.read_only)
        off = Note.UNKNOWN_MODE if is_unknown_mode(named) and self._policy.memory.mode is not Mode.OFF else Note.OFF
        if body is None:
            return _untouched(b"", off if mode is Mode.OFF else Note.TOO_LARGE, "")
        if mode is Mode.OFF:
            return _untouched(body, off, await self._model(body))
        begun = asyncio.get_running_loop().time() if arrived is None else arrived
        deadline, turn_id = begun + self._policy.memory.deadline_ms / 1000, TURN_PREFIX + secrets.token_hex(8)
        attempt = _Attempt(headers, named, body, wire, key, mode, deadline, self._clock(), turn_id)
        if not self._tracer.is_on:
            return await self._by_deadline(attempt)
        attempt.traceparent = named.get(TRACEPARENT.decode(), "")
        span = search_span(self._tracer, attempt.traceparent)
        try:
            prepared = await self._by_deadline(attempt)
            tell_search(self._tracer, span, attempt.decision, prepared.log_fields)
            return prepared
        finally:
            span.end()

    async def _by_deadline(self, attempt: _Attempt) -> Prepared:
        """The request to forward, once memory has decided or its deadline has passed."""
        started, now = perf_counter(), asyncio.get_running_loop().time()
        running = asyncio.create_task(self._guarded(attempt))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        self._traffic.begin()
        running.add_done_callback(self._traffic.end)
        running.add_done_callback(attempt.release)
        try:
            await await_for(attempt.released, attempt.deadline + GRACE_SECONDS - now)
        except asyncio.CancelledError:  # nobody will send it
            running.cancel()
            raise
        if running.cancelled():  # nobody has done so: it was something that it waited for
            raise MemoryFault("preparing a request: what memory waited for was cancelled")
        if running.done():
            prepared = running.result()
            if attempt.turn is not None:
                self._archivist.note(attempt.turn)
        else:
            prepared = await self._too_late(attempt, running)
        seconds = perf_counter() - started
        self._metrics.observe("memory", seconds)
        prepared.log_fields["memory_ms"] = round(seconds * 1000)
        return prepared

    async def _too_late(self, attempt: _Attempt, running: asyncio.Task[Prepared]) -> Prepared:
        """The request as the client sent it; reading goes on, so that it is archived."""
        attempt.was_forwarded = True
        skipped("request", TimeoutError(), self._metrics)
        if attempt.mode is Mode.ON:
            attempt.late = self._archivist.expect(len(attempt.body))
        try:
            model = await self._model(attempt.body)
        except asyncio.CancelledError:  # nobody will send it
            running.cancel()
            raise
        is_at_risk = self._archivist.is_failing or (attempt.mode is Mode.ON and attempt.late is None)
        note = Note.FAULT if is_at_risk else Note.DEADLINE
        if attempt.late is None:  # not to be archived, or no room to wait in
            running.cancel()
            return _untouched(attempt.body, note, model)
        if not running.done():
            self._late[attempt.late] = memoryview(attempt.body)[: len(attempt.body) // 2]
        listen = functools.partial(self._archivist.listen, attempt.late, attempt.wire)
        fields: LogFields = {"turn": attempt.turn_id, "note": note.value}
        return Prepared(attempt.body, undecided_headers(note, attempt.turn_id), model, listen, fields)

    async def _guarded(self, attempt: _Attempt) -> Prepared:
        """The request to forward; never raises, whatever memory does."""
        is_lost = False
        try:
            return await self._remember(attempt)
        except WireError:  # what we cannot read, the upstream may: it will say so itself
            self._metrics.fault("unreadable")
        except Exception as fault:  # the one broad guard: memory may fail, the request may not
            self._failed(fault)
            is_lost = attempt.turn is None
        finally:
            if attempt.late is not None:
                self._late.pop(attempt.late, None)
                attempt.late.settle(attempt.turn, is_lost)
        return _untouched(attempt.body, Note.FAULT, await self._model(attempt.body))

    async def _remember(self, attempt: _Attempt) -> Prepared:
        """
        Read, decide, render.

        Raises:
            WireError: the body is none that we understand, or nothing can be added to it.
        """
        body, wire, mode = attempt.body, attempt.wire, attempt.mode
        turn_id = attempt.turn_id if mode is Mode.ON else ""
        earlier = self._unread_before(attempt)  # one of them may be read, and not be on the disk, when this one is
        read = await self._reader.read(attempt.headers, attempt.named, body, wire, attempt.key, LATE_SECONDS, turn_id)
        if isinstance(read, Passed):
            return _untouched(body, read.note, read.model or await self._model(body))
        reading, speaker, follows = read
        await self._wait_for_earlier(attempt, [*earlier, *self._unread_before(attempt)], follows)
        model = reading.chat.model
        upstream = self._windows.upstream_of(model, wire, attempt.headers)
        window, user_agent = self._windows.of(upstream, model), attempt.named.get("user-agent", "")
        request = Request(reading, speaker, window, user_agent, follows, secrets.token_hex(8))
        decision = await self._decider.decide(request, attempt.deadline, lambda: attempt.was_forwarded)
        if isinstance(decision, Note):
            return _untouched(body, decision, model)
        out, turn = body, None
        if not attempt.was_forwarded:
            out = await self._work.run(reading.new_bytes, wire.render, reading.chat, decision.insertions)
        if mode is Mode.ON:
            diff = functools.partial(
                turn_of,
                id=attempt.turn_id,
                upstream=upstream,
                created_at=attempt.created_at,
                request=attempt.named.get(REQUEST_HEADER.decode(), ""),
                traceparent=attempt.traceparent,
            )
            turn = await self._work.run(reading.new_bytes, diff, decision, self._rules)
        # nothing is waited for from here on: what is decided now is what was sent
        if attempt.was_forwarded:
            decision = decision.bare(Note.DEADLINE, window)
            turn = turn and unsent_turn(turn, decision)
        attempt.turn, attempt.decision = turn, decision
        note = decision.note or (Note.READ_ONLY if mode is Mode.READ_ONLY else None)
        if turn is not None and self._archivist.is_uncertain(speaker.tenant, turn.size_bytes or 0):
            note = Note.FAULT  # earlier turns are still not on the disk: more urgent than why nothing is added
        role, event = decision.lineage.role.value, decision.lineage.event.value
        said = (note.value if note else "", decision.added.tokens, decision.added.own_tokens, speaker.tenant)
        self._metrics.request(role, event, *said)
        if decision.block is not None:
            self._metrics.add("blocks", 1)
        without = functools.partial(self._without, decision, wire, upstream, turn) if out != body else None
        return _prepared(out, decision, turn, note, self._listen(turn, wire), without)

    def _unread_before(self, attempt: _Attempt) -> list[DeferredTurn]:
        """Earlier requests that this one continues and that are still being read."""
        earlier = takewhile(lambda item: item[0] is not attempt.late, self._late.items())
        return [late for late, begun in earlier if attempt.body.startswith(begun)]

    async def _wait_for_earlier(
        self, attempt: _Attempt, earlier: Sequence[DeferredTurn], follows: Follows | None
    ) -> None:
        """
        Wait until what a request goes on from is on the disk, where it has its answer and is not.

        It would be archived behind what stood before that, and with all of its messages once more. The commit of an
        answer comes behind that of its request. While the store fails, the request itself waits for none of this.
        """
        commits = {late.committed for late in earlier}
        commits.add(self._archivist.commit_of(follows.turn) if follows is not None else None)
        if waited_for := [commit for commit in commits if commit is not None]:
            if self._archivist.is_failing:
                attempt.release()
            seconds = COMMIT_SECONDS if self._archivist.room.has_late else LATE_SECONDS
            await asyncio.wait(waited_for, timeout=seconds)

    def _without(self, decision: Decision, wire: Wire, upstream: str, turn: Turn | None, refusal: TooLong) -> Prepared:
        """The request as the client sent it, since the upstream finds it too long with what was added; never raises."""
        model, own_tokens, added_tokens = decision.reading.chat.model, decision.own_tokens, decision.added.tokens
        try:
            self._metrics.too_long(added_tokens)
            sent_tokens = own_tokens + added_tokens + decision.diagnosis.pressure.reply_tokens
            window = self._windows.refused(upstream, model, refusal, own_tokens, sent_tokens)
            log.warning(
                "refused for its length with memory; sent again without",
                upstream=upstream,
                added_tokens=added_tokens,
                own_tokens=own_tokens,
                window_tokens=window,
            )
            bare = decision.bare(Note.TOO_LONG, window)
            turn = turn and bare_turn(turn, bare)
            return _prepared(b"", bare, turn, Note.TOO_LONG, self._listen(turn, wire))
        except Exception as fault:  # a guard, as in `prepare`
            self._failed(fault)
            return _untouched(b"", Note.FAULT, model)

    def _listen(self, turn: Turn | None, wire: Wire) -> Callable[[int, RawHeaders], Listener] | None:
        return functools.partial(self._archivist.listen, turn, wire) if turn else None

    def _failed(self, fault: Exception) -> None:
        self._metrics.fault("pipeline")
        log.error("memory failed, the request goes on", where="pipeline", fault=type(fault).__name__, exc_info=True)

    async def _model(self, body: bytes) -> str:
        """The model that a body names, where an upstream must be chosen by it and nothing else is to be read."""
        if not self._needs_model or len(body) <= INLINE_BYTES:
            return model_of(body) if self._needs_model else ""
        return await asyncio.to_thread(model_of, body)  # not behind what others have to read


def _untouched(body: bytes, note: Note, model: str) -> Prepared:
    """A request forwarded unchanged, with the reason."""
    return Prepared(body, undecided_headers(note), model, log_fields={"note": note.value})


def _prepared(
    body: bytes,
    decision: Decision,
    turn: Turn | None,
    note: Note | None,
    listen: Callable[[int, RawHeaders], Listener] | None,
    without: Callable[[TooLong], Prepared] | None = None,
) -> Prepared:
    id = turn.id if turn else ""
    headers, fields = headers_of(decision, id, note), log_fields(decision, id, note)
    return Prepared(body, headers, decision.reading.chat.model, listen, fields, without)
