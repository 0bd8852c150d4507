"""
The link: proxies on other machines that keep their memory here, and send their requests to providers themselves.

Such a proxy has each request prepared, and brings the whole turn when it is over; so a turn that passed while this
machine was away is taken in the same way, later. It names its turns itself: one that is brought twice is stored once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from palimpsest import __version__
from palimpsest.core.caller.credentials import NAMES
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain import Ending, Json, Note, RawHeaders, TooLong, frozen
from palimpsest.domain.errors import CompactionRefused, WireError
from palimpsest.domain.ports import Listener, Passage, Wire
from palimpsest.edge.admin.guard import read_body
from palimpsest.edge.admin.operation import Call, Nothing, Refused, Routes, operation
from palimpsest.edge.admin.prepare_routes import demand_tenant
from palimpsest.edge.open_turns import OpenTurn
from palimpsest.wire.envelope import MEDIA_TYPE, difference, seal, unseal
from palimpsest.wire.json_body import MAX_BODY_BYTES
from palimpsest.wire.registry import wire_of

MOST_BYTES = MAX_BODY_BYTES + (16 << 20)  # a request as large as memory reads, an answer, and their headers
TURN = r"^t-[0-9a-f]{16}$"
FROM_OUTSIDE = NAMES | {b"host"}  # of whoever asks here, and not of the client there
UNREADABLE = "this turn cannot be read, and never will be: {}"
NO_ID = "The path does not name a turn id."
NEVER = {422: "It can never be read."}
NOT_YET = "the turn is not written yet: send it again"


@frozen
class LinkState:
    """Whether memory is kept here for whoever asks."""

    tenant: Annotated[str, Field(description="The tenant whose memory it is; empty: that of programs here.")]
    mode: Annotated[str, Field(description="`memory.mode` here.")]
    version: Annotated[str, Field(description="The version of Palimpsest.")]


@dataclass(frozen=True)
class LinkedTurn:
    turn: Annotated[
        str, Field(pattern=TURN, description="Id of the turn, made by whoever asks: t- and 16 hexadecimal digits.")
    ]


@frozen
class _Request:
    """A client's request on the other machine."""

    headers: RawHeaders  # the client's, with what this caller showed here in place of its credential
    body: bytes
    wire: Wire


class LinkRoutes(Routes):
    @operation("GET /link", "Tell whether this proxy may keep the memory of a proxy on another machine", in_turn=False)
    async def state(self, call: Call[Nothing]) -> LinkState:
        demand_tenant(call)
        return LinkState(call.caller.tenant, str(self._parts.policies.policy.memory.mode), __version__)

    @operation(
        "POST /link/{turn}",
        "Add memory to a request that a proxy on another machine forwards",
        missing=NO_ID,
        replies=str,
        takes=MEDIA_TYPE,
        gives=MEDIA_TYPE,
        statuses=NEVER,
        in_turn=False,
    )
    async def prepare(self, call: Call[LinkedTurn]) -> Response:
        demand_tenant(call)
        turn = call.asked.turn
        head, rest = await _envelope(call)
        asked = _request(call, head, rest)
        try:
            request = ReceivedRequest(asked.headers, asked.body, self._parts.keyring.find(asked.headers))
            prepared = await self._parts.preparer.prepare(request, asked.wire, turn=turn)
        except CompactionRefused as refused:
            said: Json = {"refused": {"text": str(refused), "code": refused.code}}
            return Response(seal(said, b""), media_type=MEDIA_TYPE)
        if prepared.listen is not None and prepared.log_fields.get("note") != Note.DEADLINE:
            self._parts.open_turns.add(turn, OpenTurn(prepared, call.caller.tenant))
        start, stop, added = difference(asked.body, prepared.body)
        said = {
            "answer": prepared.answer and prepared.answer[0],
            "opens_with": prepared.opens_with,
            "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in prepared.headers],
            "start": start,
            "stop": stop,
            "is_archived": prepared.listen is not None,
        }
        return Response(seal(said, prepared.answer[1] if prepared.answer else added), media_type=MEDIA_TYPE)

    @operation(
        "PUT /link/{turn}",
        "Archive a turn that a proxy on another machine forwarded; once, however often it is sent",
        missing=NO_ID,
        takes=MEDIA_TYPE,
        statuses=NEVER | {503: "It is not written yet: send it again."},
        in_turn=False,
    )
    async def take(self, call: Call[LinkedTurn]) -> LinkedTurn:
        demand_tenant(call)
        turn = call.asked.turn
        head, rest = await _envelope(call)
        try:
            stop, at, status = int(head["request_bytes"]), float(head["at"]), int(head["status"])
            headers, ending = _headers(head["answer_headers"]), Ending(head["ending"])
            refusal = TooLong(**head["too_long"]) if head.get("too_long") else None
        except (KeyError, TypeError, ValueError, AttributeError, UnicodeError) as wrong:
            raise Refused(422, UNREADABLE.format(type(wrong).__name__)) from wrong
        asked = _request(call, head, rest[:stop])
        listen = await self._listen_open(turn, call.caller.tenant, refusal)
        if listen is None:
            passage = Passage(turn, asked.headers, asked.body, asked.wire, at, is_bare=refusal is not None)
            try:
                listen = await self._parts.preparer.take(passage)
            except WireError as wrong:
                raise Refused(422, UNREADABLE.format(wrong)) from wrong
        if listen is not None:
            listener: Listener = listen(status, headers)
            listener.feed(rest[stop:])
            listener.finish(ending)
            await listener.committed()
            if not await self._parts.preparer.wait_until_written(turn):
                raise Refused(503, NOT_YET)
        return LinkedTurn(turn)

    async def _listen_open(
        self, turn: str, tenant: str, refusal: TooLong | None
    ) -> Callable[[int, RawHeaders], Listener] | None:
        """Who listens to the answer of a turn that was prepared in this process; None: it was not."""
        opened = self._parts.open_turns.remove(turn, tenant)
        if opened is None:
            return None
        prepared = opened.prepared
        if refusal is not None and prepared.without is not None:
            prepared = await prepared.without(refusal) or prepared
        return prepared.listen


async def _envelope(call: Call[Any]) -> tuple[dict[str, Any], bytes]:
    data = await read_body(call.request, MOST_BYTES)
    try:
        return unseal(data)
    except WireError as wrong:
        raise Refused(400, str(wrong)) from wrong


def _request(call: Call[Any], head: dict[str, Any], body: bytes) -> _Request:
    wire = wire_of("POST", str(head.get("path")))
    if wire is None:
        raise Refused(422, UNREADABLE.format("memory does not act on its path"))
    try:
        theirs = _headers(head["headers"])
    except (KeyError, TypeError, ValueError, AttributeError, UnicodeError) as wrong:
        raise Refused(422, UNREADABLE.format(type(wrong).__name__)) from wrong
    own = [header for header in call.request.scope["headers"] if header[0] in FROM_OUTSIDE]
    return _Request([*own, *(header for header in theirs if header[0] not in FROM_OUTSIDE)], body, wire)


def _headers(given: Any) -> RawHeaders:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]
