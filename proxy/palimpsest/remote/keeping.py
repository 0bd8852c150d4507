"""
Memory on a database server, which may be away: what cannot be archived now waits on this machine's disk.

While the server is away or slow, requests pass as they came, and their turns are kept with their requests as they were
sent. When it is back they are read and archived, those of each tenant in their order; until then no request of that
tenant is read, as it would not be known what it goes on from.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from palimpsest.core.caller.admission import mode_of
from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.core.response_headers import undecided_headers
from palimpsest.domain import TURN_PREFIX, Ending, Json, Mode, Note, RawHeaders, TooLong
from palimpsest.domain.errors import MemoryFault, WireError
from palimpsest.domain.ports import Clock, Counts, Listener, Passage, Prepared, TurnTaker, Wire
from palimpsest.memory.recording.turn_recorder import TurnRecorder
from palimpsest.memory.service import MemoryService
from palimpsest.remote.courier import Away, Courier, Unacceptable
from palimpsest.remote.recorder import Keeper, Recorder, naming
from palimpsest.settings.policy import Policy
from palimpsest.upstream.routing import needs_model
from palimpsest.wire.compaction import may_hold
from palimpsest.wire.envelope import unseal
from palimpsest.wire.registry import path_of, wire_of

AWAY_SECONDS = 1.0  # between looks whether the server is back: it is one question to a pool of our own
READ_SECONDS = 30.0  # for what it goes on from to be looked up: a connection may hang that long; then it is tried again
SETTLE_SECONDS = 0.1  # that a request waits for turns that are being brought: writing one takes some milliseconds
WAITING = "turns wait on this disk until they can be archived; their tenants' requests pass without memory until then"
UNREAD = (Note.FAULT, Note.DEADLINE)

TenantOf = Callable[[ReceivedRequest], str]
"""The tenant of a request; "": nobody is named."""


class KeptMemory:
    """The turns that wait for the server; one per process."""

    def __init__(self, policy: Policy, secret: bytes, memory: MemoryService, taker: Callable[[], TurnTaker]) -> None:
        self._memory = memory
        self._taker = taker  # the pipeline of the policy in force
        counts: Counts = memory.counts
        waits = (AWAY_SECONDS, AWAY_SECONDS, memory.archivist.room.set_kept)
        self.courier = Courier(policy.data, secret, self._bring, self._check, counts, *waits)

    @property
    def is_away(self) -> bool:
        """Whether nothing can be looked up, be it in time or at all, or nothing written."""
        memory = self._memory
        return bool(not memory.database.is_healthy or memory.archivist.is_failing or memory.follower.failure)

    @property
    def concern(self) -> str:
        """Whether requests pass without memory, in words; "": memory has all turns, or is writing them."""
        return WAITING if self.courier.is_behind else ""

    async def _check(self) -> None:
        """Check that turns can be written and looked up; `Away`: they cannot."""
        try:
            await self._memory.journal.check()  # a write, so that one that failed long ago is not held against it
        except MemoryFault as fault:
            raise Away(str(fault)) from fault
        if self.is_away:
            raise Away("turns cannot be written, or nothing read")

    async def _bring(self, turn: str, envelope: bytes) -> None:
        try:
            head, rest = unseal(envelope)
            stop, wire = int(head["request_bytes"]), wire_of("POST", head["path"])
            headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]]
            answered = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["answer_headers"]]
            whose = {"tenant": head["tenant"], "key": bytes.fromhex(head["key"])}
            ending = Ending(head["ending"])
            if wire is None:
                raise WireError("memory does not act on its path")
        except (WireError, KeyError, ValueError, TypeError) as wrong:
            raise Unacceptable(f"reading it: {wrong}; it may have been kept with another secret") from wrong
        try:
            async with asyncio.timeout(READ_SECONDS):
                listen = await self._taker().take(Passage(turn, headers, rest[:stop], wire, head["at"], **whose))
        except WireError as wrong:
            raise Unacceptable(str(wrong)) from wrong
        except (MemoryFault, TimeoutError) as fault:
            raise Away(str(fault) or "it has not answered in time") from fault
        if listen is not None:
            listener = listen(head["status"], answered)
            listener.feed(rest[stop:])
            listener.finish(ending)
            await listener.committed()
            if not await self._taker().wait_until_written(turn):
                raise Away("turns cannot be written in time")


@dataclass(slots=True)
class KeepingPreparer:
    """Implements `Preparer` by the pipeline; one per policy."""

    policy: Policy
    signals: Signals
    keyring: ProxyKeys
    memory: KeptMemory
    pipeline: TurnTaker
    tenant: TenantOf
    clock: Clock

    def listener_for(self, method: str, path: str) -> Callable[[int, RawHeaders], Listener] | None:
        return self.pipeline.listener_for(method, path)

    async def to_be_counted(self, request: ReceivedRequest, wire: Wire) -> Prepared:
        return await self.pipeline.to_be_counted(request, wire)

    async def prepare(
        self, request: ReceivedRequest, wire: Wire, arrived: float | None = None, turn: str = ""
    ) -> Prepared:
        body, named, key = request.body, request.named, request.key
        mode = mode_of(named, self.policy.memory, is_read_only=key is not None and key.read_only)
        tenant = self.tenant(request)
        if body is None or mode is not Mode.ON or not tenant or may_hold(body):
            return await self.pipeline.prepare(request, wire, arrived, turn)
        turn, courier = turn or TURN_PREFIX + secrets.token_hex(8), self.memory.courier
        shown = self.keyring.digest_in(request.headers) if key is not None else b""
        head: Json = {"path": path_of(wire), "headers": naming(named, self.signals), "at": self.clock()}
        head |= {"tenant": tenant, "key": shown.hex()}
        record = partial(Recorder, courier, turn, head, body, 0.0)
        if self.memory.is_away:
            courier.fail(Away("the database server is away"))
        if not await courier.settled(SETTLE_SECONDS, tenant):
            return self._kept(request, turn, record)
        prepared = await self.pipeline.prepare(request, wire, arrived, turn)
        if prepared.listen is None:
            return self._kept(request, turn, record) if prepared.log_fields.get("note") in UNREAD else prepared
        return self._keeping(prepared, record, turn)

    def _keeping(self, prepared: Prepared, record: Callable[[int, RawHeaders], Recorder], turn: str) -> Prepared:
        """The same request, whose turn is kept here until it is archived, also where it is sent a second time."""
        archives, sends_bare, makes = prepared.listen, prepared.without, prepared.compacts

        def listen(status: int, headers: RawHeaders) -> Listener:
            assert archives is not None
            listener = archives(status, headers)
            if not isinstance(listener, TurnRecorder):
                return listener
            return Keeper(listener, record(status, headers), self.memory.courier, turn)

        async def without(refusal: TooLong) -> Prepared | None:
            assert sends_bare is not None
            again = await sends_bare(refusal)
            return self._keeping(again, record, turn) if again else None

        async def compacts() -> Prepared | None:
            assert makes is not None
            own = await makes()
            return self._keeping(own, record, turn) if own else None

        again, own = sends_bare and without, makes and compacts
        return replace(prepared, listen=archives and listen, without=again, compacts=own)

    def _kept(self, request: ReceivedRequest, turn: str, record: Callable[[int, RawHeaders], Recorder]) -> Prepared:
        body, model = request.body or b"", request.model if needs_model(self.policy.upstreams) else ""
        fields: dict[str, str | int | float] = {"turn": turn, "note": Note.FAULT.value}
        return Prepared(body, undecided_headers(Note.FAULT, turn), model, record, fields)
