"""
The preparation of requests where another machine keeps the memory: it says what to add, and gets the turn afterwards.

Requests go to their providers from here, with credentials that the other machine never sees, and so does each request
for which it does not answer in time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import structlog

from palimpsest.core.caller.admission import is_unknown_mode, mode_of
from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.core.response_headers import LogFields, undecided_headers
from palimpsest.domain import TURN_PREFIX, Json, Mode, Note, RawHeaders, TooLong
from palimpsest.domain.errors import CompactionRefused
from palimpsest.domain.ports import Clock, Listener, Prepared, Wire
from palimpsest.memory.request.forwarding import untouched
from palimpsest.remote.memory import RemoteMemory
from palimpsest.remote.recorder import OURS, Recorder, naming
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.metrics import Metrics
from palimpsest.upstream.routing import needs_model
from palimpsest.wire.compaction import may_hold
from palimpsest.wire.envelope import seal, unseal
from palimpsest.wire.own_compaction import unread
from palimpsest.wire.registry import path_of

LOGGED = {"turn": "turn", "conversation": "conversation", "role": "role", "event": "history", "note": "note"}
"""Headers of an answer by which its log line tells about it, and their names there."""

log = structlog.get_logger()


class RemotePreparer:
    """Implements `Preparer`; one per policy."""

    def __init__(self, policy: Policy, signals: Signals, memory: RemoteMemory, counts: Metrics, clock: Clock) -> None:
        self._policy = policy
        self._signals = signals
        self._memory = memory
        self._counts = counts
        self._clock = clock
        self._needs_model = needs_model(policy.upstreams)

    def listener_for(self, method: str, path: str) -> Callable[[int, RawHeaders], Listener] | None:
        return None

    async def to_be_counted(self, request: ReceivedRequest, wire: Wire) -> Prepared:
        """See `Preparer`; as the client sent it."""
        return Prepared(request.body or b"", model=request.model if self._needs_model else "")

    async def prepare(
        self, request: ReceivedRequest, wire: Wire, arrived: float | None = None, turn: str = ""
    ) -> Prepared:
        body, model = request.body, request.model if self._needs_model and request.body else ""
        try:
            prepared = await self._prepare(request, wire, model, turn or TURN_PREFIX + secrets.token_hex(8))
            return _written_out(prepared, body, wire) if body and may_hold(body) else prepared
        except CompactionRefused:
            raise
        except Exception:  # a guard: memory may fail, the request may not
            self._counts.fault("pipeline")
            log.exception("memory failed, the request goes on", where="pipeline")
            return untouched(body or b"", Note.FAULT, model)

    async def _prepare(self, request: ReceivedRequest, wire: Wire, model: str, turn: str) -> Prepared:
        named, body = request.named, request.body
        mode = mode_of(named, self._policy.memory, is_read_only=False)
        if mode is Mode.OFF:
            unknown = is_unknown_mode(named) and self._policy.memory.mode is not Mode.OFF
            return untouched(body or b"", Note.UNKNOWN_MODE if unknown else Note.OFF, model)
        if body is None:
            return untouched(b"", Note.TOO_LARGE, model)
        head: Json = {"path": path_of(wire), "headers": naming(named, self._signals), "at": self._clock()}
        answer = await self._memory.prepare(turn, seal(head, body))
        record = partial(Recorder, self._memory.courier, turn, head, body, self._policy.memory.deadline_ms / 1000)
        if answer is None:
            keeps = record if mode is Mode.ON else None
            fields: LogFields = {"turn": turn, "note": Note.AWAY.value}
            self._counts.request("", "", Note.AWAY.value)
            return Prepared(body, undecided_headers(Note.AWAY, turn), model, keeps, fields)
        said, added = unseal(answer)
        if refused := said.get("refused"):
            raise CompactionRefused(refused["text"], refused["code"])
        out = body if said.get("answer") else body[: said["start"]] + added + body[said["stop"] :]
        shown = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in said["headers"])
        told = dict(said["headers"])
        fields = {name: told[OURS + header] for header, name in LOGGED.items() if OURS + header in told}
        role, event, note = (str(fields.get(name, "")) for name in ("role", "history", "note"))
        self._counts.request(role, event, note)
        is_unread = mode is Mode.ON and note in (Note.FAULT, Note.DEADLINE)  # it is read when it is brought
        keeps = record if said["is_archived"] or is_unread else None

        async def without(refusal: TooLong) -> Prepared:
            """The request as the client sent it; the other machine learns why."""
            head["too_long"] = {"window_tokens": refusal.window_tokens, "is_of_model": refusal.is_of_model}
            return Prepared(b"", undecided_headers(Note.TOO_LONG, turn), model, keeps, {"note": Note.TOO_LONG.value})

        own, opens_with = (said["answer"], added) if said.get("answer") else None, said.get("opens_with", "")
        again = None if out == body or opens_with else without
        return Prepared(out, shown, model, keeps, fields, again, answer=own, opens_with=opens_with)


def _written_out(prepared: Prepared, body: bytes, wire: Wire) -> Prepared:
    """A request with compaction items: what they stand for is known elsewhere, and so it is not sent a second time."""
    return replace(prepared, body=unread(prepared.body, wire), bare=unread(body, wire), without=None)
