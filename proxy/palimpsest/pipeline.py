"""
One request, from its body to what is forwarded: read, decide (`core/conversation`), render.

Memory may fail, the request may not: whatever goes wrong here, the client's own bytes go on, a header says why, and a
metric counts it. So it is when the deadline passes, whatever was being done: reading goes on beside, and the turn is
archived when it ends.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING

import structlog

from palimpsest.core.archive.turns import bare_turn, turn_of, unsent_turn
from palimpsest.core.caller.admission import is_unknown_mode
from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.core.conversation import FAILED, FAULTS, Request, Rules
from palimpsest.core.decision import Decision
from palimpsest.core.reading import Reading
from palimpsest.core.response_headers import LogFields, undecided_headers
from palimpsest.domain import (
    REQUEST_HEADER,
    TURN_PREFIX,
    Block,
    Follows,
    Mode,
    Note,
    RawHeaders,
    Speaker,
    TooLong,
    Turn,
)
from palimpsest.domain.errors import MemoryFault, WireError
from palimpsest.domain.ports import Clock, Listener, Passage, Prepared, Tracer, Wire
from palimpsest.memory.recording.attempt import Attempt, UnreadAttempts
from palimpsest.memory.recording.deferred_turn import DeferredTurn
from palimpsest.memory.request.arrival import Arrival, arrival_of, sender_of
from palimpsest.memory.request.decider import LATE_SECONDS, Decider
from palimpsest.memory.request.forwarding import prepared, render_decision, untouched
from palimpsest.memory.request.model_windows import ModelWindows
from palimpsest.memory.request.refusals import Refusals, SentRequest, count_overflow
from palimpsest.memory.request.request_reader import RequestReader, UntouchedRequest, skipped
from palimpsest.memory.request.sized_executor import INLINE_BYTES, SizedExecutor
from palimpsest.memory.service import MemoryService
from palimpsest.memory.timeouts import await_for
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.metrics import Metrics
from palimpsest.telemetry.tracing import NO_TRACER, TRACEPARENT
from palimpsest.upstream.routing import needs_model
from palimpsest.wire.compaction import may_hold
from palimpsest.wire.provider_compaction import may_compact

if TYPE_CHECKING:
    from palimpsest.memory.request.compactions import CompactionAnswer, Compactions, WrittenOut

TAKE_SECONDS = 10.0  # to read a turn that passed elsewhere, and to write it: whoever brings it comes again
COMPACTION_SECONDS = 10.0  # to answer one; a model takes minutes, and upstreams that cannot do it answer with an error
LACKING_SECONDS = 3600.0  # that an upstream without compaction is not asked for one; it may be another server by then
MAX_LACKING = 10_000  # notes of that, one for each tenant and upstream: some 2 MB
COMMIT_SECONDS = 600.0  # for a commit, behind the deadline, while there is room: a process may hang for a minute
GRACE_SECONDS = 0.03  # behind the deadline: what was looked for too long is left out, and the rest can still be sent
OVERFLOW_SECONDS = 5.0  # ... for a request that would be refused as it is: reading it may take a second
LEAST_BYTES_PER_TOKEN = 3  # of a body; code and JSON have that many, texts more

log = structlog.get_logger()


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
        generation: int = 0,  # number of the policy
        off_for: frozenset[str] = frozenset(),  # tenants for whom memory is switched off; "" everybody
        tracer: Tracer = NO_TRACER,
        trusts_machine: bool = False,  # programs on this machine need no credential to be remembered
        # where it cannot be looked up what a request continues, it is archived later, by `take`
        keeps_unlinked: bool = False,
    ) -> None:
        self._policy = policy
        self._keeps_unlinked = keeps_unlinked
        self._rules = Rules(policy, signals, secret, memory.tokens.text, generation, off_for, trusts_machine)
        self._keyring = keyring
        self._archivist = memory.archivist
        self._reminders = memory.reminders
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
        trims, listen = policy.overflow == "trim", memory.archivist.listen
        self._refusals = Refusals(trims, self._windows, self._decider, metrics, listen, memory.tokens.learn)
        self._memory = memory
        self._needs_model = needs_model(policy.upstreams)
        self._running: set[asyncio.Task[Prepared]] = set()
        self._unread = UnreadAttempts()
        # when a tenant found an upstream to have no compaction: what one does wrong changes nothing for others
        self._lacking: dict[tuple[str, str], float] = {}

    @cached_property
    def _compactions(self) -> Compactions:
        """The proxy's own compactions; loaded where a request holds one, or the policy makes them."""
        from palimpsest.memory.request.compactions import Compactions

        memory, parts = self._memory, (self._metrics, self._work, self._clock)
        return Compactions(self._rules, memory.journal, memory.recall, *parts, memory.archivist.commit_of)

    def _answers(self, arrival: Arrival, upstream: str = "") -> bool:
        """Whether the proxy answers such a request: by the policy, or as its upstream ("": not known) has no answer."""
        if self._clock() - self._lacking.get((arrival.tenant, upstream), -math.inf) < LACKING_SECONDS:
            return may_compact(arrival.body, arrival.wire)
        makes = self._policy.memory.answers_compactions
        return makes and self._compactions.may_answer(arrival.body, arrival.wire)

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
        self, request: ReceivedRequest, wire: Wire, arrived: float | None = None, turn: str = ""
    ) -> Prepared:
        """Prepare one request of a memory endpoint; see `Preparer`."""
        arrival, body = arrival_of(request, wire, self._rules), request.body
        if body is None:  # it is longer than memory reads
            return self._counted_by_note(untouched(b"", self._off(arrival) or Note.TOO_LARGE, ""))
        items = await self._items(arrival)
        prepared = self._counted_by_note(await self._with_memory(arrival, arrived, turn, items))
        if items is None:
            return prepared
        without = prepared.without and partial(_written_out, items, prepared.without)
        return replace(prepared, body=items.in_place(prepared.body), bare=items.in_place(body), without=without)

    async def _items(self, arrival: Arrival) -> WrittenOut | None:
        """
        The compaction items of ours in a request; None: none.

        Raises `CompactionRefused`: one is another's, or outdated.
        """
        if not may_hold(arrival.body):
            return None
        try:
            items = await self._compactions.write_out(arrival)
        except WireError:  # the upstream will say so itself
            self._metrics.fault("unreadable")
            return None
        return items if items.texts else None

    def _counted_by_note(self, prepared: Prepared) -> Prepared:
        fields = prepared.log_fields
        if "role" not in fields and "turn" not in fields:  # else it is counted where it is decided, perhaps later
            self._metrics.request("", "", str(fields["note"]))
        return prepared

    def tenant_of(self, request: ReceivedRequest) -> str:
        """The tenant of a request; "": nobody is named."""
        return sender_of(request, self._rules)

    async def take(self, passage: Passage) -> Callable[[int, RawHeaders], Listener] | None:
        key = self._keyring.of_digest(passage.key) if passage.key else self._keyring.find(passage.headers)
        request = ReceivedRequest(passage.headers, passage.body, key)
        arrival = arrival_of(request, passage.wire, self._rules, passage.tenant)
        if self._off(arrival) is not None or arrival.mode is not Mode.ON:
            return None
        if self._archivist.is_failing or not self._archivist.room.has_turn(len(passage.body)):
            raise MemoryFault("taking a turn that passed elsewhere: nothing can be written now")
        attempt = Attempt(
            arrival,
            deadline=asyncio.get_running_loop().time() + TAKE_SECONDS,
            created_at=min(passage.at, self._clock()),
            turn_id=passage.turn,
            was_forwarded=True,
            bare_note=Note.TOO_LONG if passage.is_bare else Note.AWAY,
        )
        await self._begin(self._remember(attempt))
        if attempt.turn is None:
            return None
        self._archivist.note(attempt.turn)
        return partial(self._archivist.listen, attempt.turn, passage.wire)

    def _begin(self, remembering: Coroutine[None, None, Prepared]) -> asyncio.Task[Prepared]:
        """A task that `settle` waits for, and that is traffic while it runs."""
        running = asyncio.create_task(remembering)
        self._running.add(running)
        self._traffic.begin()
        running.add_done_callback(self._running.discard)
        running.add_done_callback(self._traffic.end)
        return running

    async def wait_until_written(self, turn: str) -> bool:
        commit = self._archivist.commit_of(turn)
        if commit is not None:
            await asyncio.wait([commit], timeout=TAKE_SECONDS)
        return commit is None or commit.done()

    async def _with_memory(
        self, arrival: Arrival, arrived: float | None, turn: str, items: WrittenOut | None
    ) -> Prepared:
        """The request with what memory adds, its items as they came; never raises."""
        try:
            if (off := self._off(arrival)) is not None:
                return untouched(arrival.body, off, await self._model(arrival))
            return await self._traced(self._attempt(arrival, arrived, turn, items))
        except Exception as fault:  # a guard around what surrounds the decisions
            self._failed(fault)
            return untouched(arrival.body, Note.FAULT, await self._model(arrival))

    def _off(self, arrival: Arrival) -> Note | None:
        """Why memory is off for a request; None: it is not."""
        if "" in self._rules.off_for:
            return Note.DISABLED
        if arrival.mode is not Mode.OFF:
            return None
        is_unknown = is_unknown_mode(arrival.request.named) and self._policy.memory.mode is not Mode.OFF
        return Note.UNKNOWN_MODE if is_unknown else Note.OFF

    def _attempt(self, arrival: Arrival, arrived: float | None, turn: str, items: WrittenOut | None) -> Attempt:
        seconds = self._policy.memory.deadline_ms / 1000
        if may_compact(arrival.body, arrival.wire) or self._answers(arrival):
            seconds = max(seconds, COMPACTION_SECONDS)
        return Attempt(
            arrival,
            deadline=seconds + (asyncio.get_running_loop().time() if arrived is None else arrived),
            created_at=self._clock(),
            turn_id=turn or TURN_PREFIX + secrets.token_hex(8),
            compacted=tuple(items.blocks) if items else (),
        )

    async def _traced(self, attempt: Attempt) -> Prepared:
        """The request to forward, within a span where requests are traced."""
        if not self._tracer.is_on:
            return await self._by_deadline(attempt)
        from palimpsest.memory.recording.memory_spans import search_span, tell_search

        attempt.traceparent = attempt.arrival.request.named.get(TRACEPARENT.decode(), "")
        span = search_span(self._tracer, attempt.traceparent)
        try:
            prepared = await self._by_deadline(attempt)
            tell_search(self._tracer, span, attempt.decision, prepared.log_fields)
            return prepared
        finally:
            span.end()

    async def _by_deadline(self, attempt: Attempt) -> Prepared:
        """The request to forward, once memory has decided or its deadline has passed."""
        started, now = perf_counter(), asyncio.get_running_loop().time()
        running = self._begin(self._guarded(attempt))
        running.add_done_callback(attempt.release)
        try:
            await await_for(attempt.released, attempt.deadline + GRACE_SECONDS - now)
            if self._policy.overflow == "trim" and not attempt.released.done() and await self._outgrows(attempt):
                await await_for(attempt.released, OVERFLOW_SECONDS)
        except asyncio.CancelledError:  # nobody will send it
            running.cancel()
            raise
        if running.cancelled():  # nobody has done so: it was something that it waited for
            raise MemoryFault("preparing a request: what memory waited for was cancelled")
        if running.done():
            forwarded = running.result()
            if attempt.turn is not None:
                self._archivist.note(attempt.turn)
        else:
            forwarded = await self._too_late(attempt, running)
        seconds = perf_counter() - started
        self._metrics.observe("memory", seconds)
        forwarded.log_fields["memory_ms"] = round(seconds * 1000)
        return forwarded

    async def _outgrows(self, attempt: Attempt) -> bool:
        """Whether a body looks longer than its model's window: forwarded as it is, it would be refused."""
        arrival = attempt.arrival
        model = await self._named_model(arrival)
        upstream = self._windows.upstream_of(model, arrival.wire, arrival.request.headers)
        return len(arrival.body) > LEAST_BYTES_PER_TOKEN * self._memory.windows.of(upstream, model)

    async def _too_late(self, attempt: Attempt, running: asyncio.Task[Prepared]) -> Prepared:
        """The request as the client sent it; reading goes on, so that it is archived."""
        arrival, body = attempt.arrival, attempt.arrival.body
        attempt.was_forwarded = True
        skipped("request", TimeoutError(), self._metrics)
        if arrival.mode is Mode.ON:
            attempt.late = self._archivist.expect(len(body))
        try:
            model = await self._model(arrival)
        except asyncio.CancelledError:  # nobody will send it
            running.cancel()
            raise
        is_at_risk = self._archivist.is_failing or (arrival.mode is Mode.ON and attempt.late is None)
        note = Note.FAULT if is_at_risk else Note.DEADLINE
        if attempt.late is None:  # not to be archived, or no room to wait in
            running.cancel()
            return untouched(body, note, model)
        if not running.done():
            self._unread.add(attempt.late, body)
        listen = partial(self._archivist.listen, attempt.late, arrival.wire)
        fields: LogFields = {"turn": attempt.turn_id, "note": note.value}
        return Prepared(body, undecided_headers(note, attempt.turn_id), model, listen, fields)

    async def _guarded(self, attempt: Attempt) -> Prepared:
        """The request to forward; never raises, whatever memory does."""
        is_lost, note = False, Note.FAULT
        try:
            return await self._remember(attempt)
        except WireError:  # what we cannot read, the upstream may: it will say so itself
            self._metrics.fault("unreadable")
            note = Note.UNREADABLE
        except MemoryFault as fault:
            skipped("history", fault, self._metrics)
            is_lost = attempt.turn is None and not self._keeps_unlinked
        except Exception as fault:  # a guard: memory may fail, the request may not
            self._failed(fault)
            is_lost = attempt.turn is None and not self._keeps_unlinked
        finally:
            if attempt.late is not None:
                self._unread.remove(attempt.late)
                attempt.late.settle(attempt.turn, is_lost)
        return untouched(attempt.arrival.body, note, await self._model(attempt.arrival))

    async def _remember(self, attempt: Attempt) -> Prepared:
        """
        Read, decide, render.

        Raises:
            WireError: the body is none that we understand, or nothing can be added to it.
            MemoryFault: it cannot be read, or not be archived as what it is.
        """
        arrival, begun = attempt.arrival, perf_counter()
        earlier = self._unread.before(attempt)  # one of them may be read, and not be on the disk, when this one is
        turn_id = attempt.turn_id if arrival.mode is Mode.ON else ""
        read = await self._reader.read(arrival, LATE_SECONDS, turn_id)
        if isinstance(read, UntouchedRequest):
            return untouched(arrival.body, read.note, read.model or await self._model(arrival))
        request, upstream = self._request(read, arrival, attempt.compacted)
        read_ms = 1000 * (perf_counter() - begun)
        has_earlier = True
        if not attempt.is_from_elsewhere:  # whoever brings others brings them in order: none of them waits here
            earlier += self._unread.before(attempt)
            has_earlier = await self._wait_for_earlier(attempt, earlier, request)
        decision = await self._decider.decide(request, attempt.deadline, lambda: attempt.was_forwarded)
        if isinstance(decision, Note):
            return untouched(arrival.body, decision, request.reading.chat.model)
        is_unlinked = decision.is_unlinked or not has_earlier
        if is_unlinked and (self._keeps_unlinked or attempt.is_from_elsewhere):
            raise MemoryFault("archiving a request: what it continues cannot be looked up now; that is done later")
        body = arrival.body
        if not attempt.was_forwarded:
            size = decision.sent.new_bytes or request.reading.new_bytes
            body = await self._work.run(size, render_decision, arrival.wire, decision)
        stages_ms = {"read": read_ms, "decide": 1000 * (perf_counter() - begun) - read_ms}
        turn = await self._turn(attempt, decision, upstream, stages_ms)
        answered: CompactionAnswer | None = None
        if not attempt.was_forwarded and self._answers(arrival, upstream):
            seconds = attempt.deadline - asyncio.get_running_loop().time()
            answered = await self._compaction(decision, turn, request.window_tokens, arrival.wire, seconds)
        return self._settled(attempt, request, decision, upstream, turn, body, answered)

    async def _turn(
        self, attempt: Attempt, decision: Decision, upstream: str, stages_ms: Mapping[str, float]
    ) -> Turn | None:
        """As what a request is archived; None: it is not to be."""
        arrival = attempt.arrival
        if arrival.mode is not Mode.ON:
            return None
        diff = partial(
            turn_of,
            id=attempt.turn_id,
            upstream=upstream,
            created_at=attempt.created_at,
            request=arrival.request.named.get(REQUEST_HEADER.decode(), ""),
            traceparent=attempt.traceparent,
            stages_ms=stages_ms,
        )
        return await self._work.run(decision.reading.new_bytes, diff, decision, self._rules)

    async def _compacts(self, sent: SentRequest) -> Prepared | None:
        """Our compaction in the place of an upstream's that has none; None: there is none either. Never raises."""
        seconds, decision = COMPACTION_SECONDS, sent.decision
        try:
            answered = await self._compaction(decision, sent.turn, sent.request.window_tokens, sent.wire, seconds)
        except Exception as fault:  # a guard, as in `prepare`
            self._failed(fault)
            return None
        if answered is None or answered.answer is None:
            return None
        log.info("the upstream has no compaction; it is answered from the archive", upstream=sent.upstream)
        if len(self._lacking) >= MAX_LACKING:
            del self._lacking[next(iter(self._lacking))]
        self._lacking[decision.diagnosis.speaker.tenant, sent.upstream] = self._clock()
        listen = partial(self._archivist.listen, answered.turn, sent.wire)
        return replace(prepared(b"", decision, answered.turn, decision.note, listen), answer=answered.answer)

    async def _compaction(
        self, decision: Decision, turn: Turn | None, window_tokens: int, wire: Wire, seconds: float
    ) -> CompactionAnswer | None:
        """The compaction that a request asks for, within so many seconds; None: none."""
        is_behind = self._archivist.is_behind(decision.diagnosis.speaker.tenant)
        if turn is None or decision.note in FAULTS or is_behind:
            return None
        try:
            async with asyncio.timeout(seconds):
                return await self._compactions.answer(decision, turn, window_tokens, wire)
        except (*FAILED, WireError) as failure:
            skipped("compaction", failure, self._metrics)
            return None

    def _settled(
        self,
        attempt: Attempt,
        request: Request,
        decision: Decision,
        upstream: str,
        turn: Turn | None,
        body: bytes,
        answered: CompactionAnswer | None,
    ) -> Prepared:
        """What is sent, and as what it is archived. It waits for nothing, so both are the same decision."""
        arrival = attempt.arrival
        if attempt.was_forwarded:
            decision, answered = decision.bare(attempt.bare_note, request.window_tokens), None
            is_bare = attempt.bare_note is Note.TOO_LONG
            turn = turn and (bare_turn(turn, decision) if is_bare else unsent_turn(turn, decision))
        elif answered is not None:
            turn = answered.turn
        attempt.turn, attempt.decision = turn, decision
        note = decision.note or (Note.READ_ONLY if arrival.mode is Mode.READ_ONLY else None)
        if turn is not None and self._archivist.is_uncertain(arrival.tenant, turn.size_bytes or 0):
            note = Note.FAULT  # earlier turns are still not on the disk: more urgent than why nothing is added
        self._count(decision, note, arrival.tenant)
        without = None
        compacts = None
        if not attempt.was_forwarded:
            count_overflow(decision, self._metrics)
            sent = SentRequest(request, decision, arrival.wire, upstream, turn, has_changed=body != arrival.body)
            if sent.has_changed or self._policy.overflow != "forward":
                without = partial(self._without, sent)
            if may_compact(arrival.body, arrival.wire):
                compacts = partial(self._compacts, sent)
        listen = partial(self._archivist.listen, turn, arrival.wire) if turn else None
        forwarded = prepared(body, decision, turn, note, listen, without)
        if answered is None:
            return replace(forwarded, compacts=compacts)
        if answered.answer is not None:
            return replace(forwarded, answer=answered.answer)
        return replace(forwarded, body=answered.body, opens_with=answered.opens_with, without=None)

    def _count(self, decision: Decision, note: Note | None, tenant: str) -> None:
        """Count a request that was decided on."""
        lineage, added = decision.lineage, decision.added
        said = (note.value if note else "", added.tokens, added.own_tokens, tenant)
        self._metrics.request(lineage.role.value, lineage.event.value, *said)
        if decision.block is not None:
            self._metrics.add("blocks", 1)

    async def _wait_for_earlier(self, attempt: Attempt, earlier: Sequence[DeferredTurn], request: Request) -> bool:
        """
        Wait until what a request goes on from is on the disk, where it has its answer and is not; False: it is not.

        It would be archived behind what stood before that, and with all of its messages once more. The commit of an
        answer comes behind that of its request. A sub-agent's first request, and any second one, may come before that:
        clients act on a call, or on why an answer stopped, and leave its end unread. While the store fails, the request
        itself waits for none of this.
        """
        follows, speaker, chat = request.follows, request.speaker, request.reading.chat
        commits = {late.committed for late in earlier}
        if follows is not None:
            commits.add(self._archivist.commit_of(follows.turn))
        elif speaker.parent_ids or chat.follows or sum(m.role == "assistant" for m in chat.history) == 1:
            commits.add(self._archivist.newest_commit(speaker.tenant))
        if waited_for := [commit for commit in commits if commit is not None]:
            if self._archivist.is_failing:
                attempt.release()
            seconds = COMMIT_SECONDS if self._archivist.room.is_late_half_empty else LATE_SECONDS
            await asyncio.wait(waited_for, timeout=seconds)
        return all(commit.done() for commit in waited_for) and not any(late.is_dropped for late in earlier)

    async def _without(self, sent: SentRequest, refusal: TooLong) -> Prepared | None:
        """What to send instead, since the upstream finds a request too long; None: nothing. Never raises."""
        try:
            return await self._refusals.shorter(sent, refusal)
        except Exception as fault:  # a guard, as in `prepare`
            self._failed(fault)
            return untouched(b"", Note.FAULT, sent.request.reading.chat.model)

    async def to_be_counted(self, request: ReceivedRequest, wire: Wire) -> Prepared:
        """What to have counted of a request that is only to be counted; see `Preparer`."""
        arrival, model = arrival_of(request, wire, self._rules), ""
        items, body = await self._items(arrival), arrival.body
        try:
            model = await self._model(arrival)
            if self._policy.overflow == "trim" and self._off(arrival) is None:
                read = await self._reader.read(arrival, LATE_SECONDS)
                if not isinstance(read, UntouchedRequest):
                    asked, _ = self._request(read, arrival, tuple(items.blocks) if items else ())
                    model = asked.reading.chat.model
                    asked = replace(asked, speaker=replace(asked.speaker, is_anybody=True))
                    decision = await self._decider.decide_bare(asked, math.inf)
                    if isinstance(decision, Decision) and decision.view is not None:
                        body = decision.sent.chat.body
        except WireError:
            self._metrics.fault("unreadable")
        except Exception as fault:  # a guard, as in `prepare`
            self._failed(fault)
        return Prepared(items.in_place(body) if items else body, model=model)

    def _request(
        self, read: tuple[Reading, Speaker, Follows | None], arrival: Arrival, compacted: tuple[Block, ...] = ()
    ) -> tuple[Request, str]:
        """A request that was read, with all that is known before anything is looked up; and its upstream."""
        reading, speaker, follows = read
        model = reading.chat.model
        upstream = self._windows.upstream_of(model, arrival.wire, arrival.request.headers)
        request = Request(
            reading,
            speaker,
            self._memory.windows.of(upstream, model),
            user_agent=arrival.request.named.get("user-agent", ""),
            follows=follows,
            compacted=compacted,
            new_id=secrets.token_hex(8),
            reminders=self._reminders.of(speaker.tenant),
            wire=arrival.wire,
            is_window_shown=self._memory.windows.is_shown(upstream, model),
        )
        return request, upstream

    def _failed(self, fault: Exception) -> None:
        self._metrics.fault("pipeline")
        log.error("memory failed, the request goes on", where="pipeline", fault=type(fault).__name__, exc_info=True)

    async def _model(self, arrival: Arrival) -> str:
        """The model that a body names, where an upstream must be chosen by it and nothing else is to be read."""
        return await self._named_model(arrival) if self._needs_model else ""

    @staticmethod
    async def _named_model(arrival: Arrival) -> str:
        if len(arrival.body) <= INLINE_BYTES:
            return arrival.request.model
        return await asyncio.to_thread(lambda: arrival.request.model)  # not behind what others have to read


async def _written_out(
    items: WrittenOut, without: Callable[[TooLong], Awaitable[Prepared | None]], refusal: TooLong
) -> Prepared | None:
    """What `without` sends instead, with messages in the place of compaction items of ours."""
    instead = await without(refusal)
    return replace(instead, body=items.in_place(instead.body)) if instead is not None and instead.body else instead
