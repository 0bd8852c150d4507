"""
The proxied paths: every request that is not for the proxy itself, passed through with memory where it acts.

Everything goes through here that no endpoint of our own takes: `/v1/...`, and unknown paths too (clients probe with
`HEAD /`). Memory acts on the wires that it reads; whatever else there is passes untouched.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import structlog
from starlette.types import Receive, Scope, Send

from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain import Ending, Mode, RawHeaders, frozen
from palimpsest.domain.errors import CompactionRefused, NotServed, UpstreamUnreachable
from palimpsest.domain.ports import Body, Prepared, Preparer, Sender, Tracer, UpstreamAnswer
from palimpsest.edge.first_look import BufferedAnswer
from palimpsest.edge.http import CUT, LEAVING, can_switch
from palimpsest.edge.key_limits import Limits, RequestRefused
from palimpsest.edge.relay import Relay
from palimpsest.edge.request_id import request_id, with_request_id
from palimpsest.edge.request_log import RequestLog, end, server_span, with_trace
from palimpsest.edge.room import BOUNDLESS, ROOM, Room
from palimpsest.edge.upload import BodyTooLarge, ClientGone, Copies, Upload
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.tracing import NO_SPAN, NO_TRACER
from palimpsest.upstream.routing import needs_model
from palimpsest.upstream.upgraded import UpgradedAnswer
from palimpsest.wire import responses
from palimpsest.wire.json_body import MAX_BODY_BYTES
from palimpsest.wire.refusal import refusal_of
from palimpsest.wire.registry import counting_wire_of, wire_of

# Readers disagree on what these mean: what is checked here might not be what is opened there.
_STRANGE_PATH = re.compile(r"^[^/]|//|\\|%5[cC]|(?:/|%2[fF])(?:\.|%2[eE]){1,2}(?:/|%2[fF]|;|$)")

if TYPE_CHECKING:
    from palimpsest.edge.provider_state import ProviderState
    from palimpsest.edge.socket import SocketMemory

TIMED_OUT, UNREACHABLE = "upstream_timeout", "upstream_unreachable"  # codes of errors in the upstream's place


@frozen
class Outgoing:
    """A request as it goes upstream. `sent` is what the client sent, headers and body; None: the same."""

    prepared: Prepared
    headers: RawHeaders
    body: Body
    sent: tuple[RawHeaders, Body] | None = None


log = structlog.get_logger()


class ProxyRoutes:
    """The ASGI application behind our own endpoints: one call a request, no middleware, no request object."""

    def __init__(
        self,
        policy: Policy,
        pipeline: Preparer,
        upstreams: Sender,  # opened and closed by the caller, around the life of this application
        keyring: ProxyKeys,  # says who is refused for the key that is shown, or missing
        # the rules for callers that share the provider's account; None: no rules needed
        state: ProviderState | None = None,
        # told the status of each answer, but for requests that were refused here
        answered: Callable[[int], None] = lambda status: None,
        tracer: Tracer = NO_TRACER,
        limits: Limits | None = None,  # of what the requests of a key may name; None: nothing is refused
    ) -> None:
        self._needs_model = needs_model(policy.upstreams)
        self._joins_sockets = policy.memory.websockets == "remember" and policy.memory.mode is not Mode.OFF
        self._declines_sockets = policy.memory.websockets == "decline" and policy.memory.mode is not Mode.OFF
        self._is_off = policy.memory.mode is Mode.OFF
        self._limit_bytes = policy.limits.body_bytes
        self._copies = Copies(min(MAX_BODY_BYTES, self._limit_bytes), policy.memory.deadline_ms / 1000)
        self._pipeline = pipeline
        self._upstreams = upstreams
        self._keyring = keyring
        self._state = state
        self._answered = answered
        self._tracer = tracer
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["raw_path"].decode("latin-1")
        id = request_id(scope)
        line, relay = RequestLog(scope["method"], path, id), Relay(send, refusal_of(path, scope["headers"]), id)
        span = server_span(self._tracer, scope, path, id) if self._tracer.is_on else NO_SPAN
        try:
            headers = with_trace(with_request_id(scope["headers"], id), span)
            upload = Upload(receive, self._limit_bytes, scope.get("extensions", {}).get(LEAVING, _unnoticed))
            await self._answer(scope, path, headers, upload, relay)
        finally:
            line.write(relay)
            if self._tracer.is_on:
                end(span, relay)
            if relay.status and relay.code in ("", TIMED_OUT, UNREACHABLE):
                self._answered(relay.status)

    async def _answer(self, scope: Scope, path: str, headers: RawHeaders, upload: Upload, relay: Relay) -> None:
        request = ReceivedRequest(headers, None, self._keyring.find(headers))
        if _STRANGE_PATH.search(path):
            text = "the path contains //, dot segments or backslashes, or does not start with /; send it without"
            await relay.refuse(400, "invalid_path", text)
        elif self._keyring.refuses(headers, request.key):
            if self._keyring.is_complete:
                text = "no valid key: send one of this proxy's keys as authorization: Bearer, or as x-api-key"
                await relay.refuse(401, "invalid_api_key", text)
            else:
                text = "the keys of this proxy cannot be read now, so none can be checked; try again in a moment"
                await relay.refuse(503, "keys_unavailable", text)
        elif (room := _room(scope)).is_busy:
            text = (
                f"the proxy already forwards {room.requests} requests, as many as its limit of open files allows; "
                "try again in a moment"
            )
            await relay.refuse(503, "overloaded", text)
        elif self._declines_sockets and can_switch(scope) and wire_of("POST", path) is not None:
            text = "WebSockets are declined here (memory.websockets of the proxy): use HTTP"
            await relay.refuse(426, "websocket_declined", text)
        else:
            room.begin()
            try:
                if self._limits is not None:
                    await self._limits(request)
                if self._state is not None:
                    self._state.check_path(scope["method"], path, switches=can_switch(scope))
                await self._forward(scope, path, request, upload, relay)
            except ClientGone:
                pass
            except (RequestRefused, CompactionRefused) as refused:
                await relay.refuse(refused.http_status, refused.code, str(refused))
            except BodyTooLarge as too_large:
                if not relay.has_begun:
                    text = f"the request is larger than {self._limit_bytes} bytes (limits.body_bytes)"
                    await relay.refuse(413, "request_too_large", str(too_large) or text)
            finally:
                room.end()

    async def _forward(self, scope: Scope, path: str, request: ReceivedRequest, upload: Upload, relay: Relay) -> None:
        socket: SocketMemory | None = None
        if self._joins_sockets and can_switch(scope) and wire_of("POST", path) is responses:
            from palimpsest.edge.socket import EXTENSIONS, SocketMemory

            headers = [header for header in request.headers if header[0] != EXTENSIONS]
            request = ReceivedRequest(headers, None, request.key)
            socket = SocketMemory(self._pipeline, request, self._limits, self._state)
        outgoing = await self._prepare(scope["method"], path, request, upload)
        query = scope["query_string"].decode("latin-1")
        relay.take(outgoing.prepared)
        answer: UpstreamAnswer | None = None
        try:
            if outgoing.prepared.answer is not None:
                return await relay.forward(_own_answer(*outgoing.prepared.answer))
            target = f"{path}?{query}" if query else path
            model = outgoing.prepared.model or (_model_in(query) if self._needs_model else "")

            def send(headers: RawHeaders, body: Body) -> Awaitable[UpstreamAnswer]:
                return self._upstreams.send(model, scope["method"], target, headers, body)

            try:
                with upload.attended():
                    answering, opens_with = _answer(outgoing, send, relay), outgoing.prepared.opens_with
                    del outgoing  # an answer may take minutes
                    answer = await answering
                    if opens_with:
                        from palimpsest.edge.opened_answer import OpenedAnswer

                        answer = OpenedAnswer(answer, opens_with)
                    if not isinstance(answer, UpgradedAnswer):
                        await relay.forward(answer)
                    elif socket is not None:
                        from palimpsest.edge.socket import converse

                        await converse(scope, answer, socket, self._limit_bytes)
                    else:
                        from palimpsest.edge.tunnel import tunnel  # late: few clients ask for a WebSocket

                        await tunnel(scope, answer)
            finally:  # whoever has the whole answer may go, and closing it takes its time: that is not attended
                if answer is not None:
                    await answer.aclose()
        except NotServed as refused:
            relay.end(Ending.REFUSED)
            await relay.refuse(refused.http_status, refused.code, str(refused))
        except UpstreamUnreachable as broken:
            if upload.failure is not None:  # the client's end broke, and the upstream's only thereby
                raise upload.failure from broken
            relay.end(Ending.UPSTREAM_BROKE)
            log.warning("upstream unreachable", reason=str(broken), has_begun=relay.has_begun)
            if relay.has_begun:
                scope.get("extensions", {}).get(CUT, _nothing)()  # the client's stream, as the upstream cut ours
            else:
                code = TIMED_OUT if broken.http_status == 504 else UNREACHABLE
                await relay.refuse(broken.http_status, code, str(broken))
        finally:
            relay.end(Ending.CLIENT_GONE)  # unless it ended otherwise before

    async def _prepare(self, method: str, path: str, request: ReceivedRequest, upload: Upload) -> Outgoing:
        """Prepare a request with memory. Its body is read whole if memory or routing needs it, or else streamed."""
        headers = request.headers
        if _declared_bytes(headers) > self._limit_bytes:
            raise BodyTooLarge
        if (wire := wire_of(method, path)) is not None:
            sent, arrived = await upload.whole(), asyncio.get_running_loop().time()
            async with self._copies.copy(sent, headers) as body:
                if body is None and self._needs_model:
                    raise _unreadable()
                whole = request.with_body(body)
                if self._state is not None:
                    await self._state.check_body(whole)
                if self._limits is not None:
                    await self._limits(whole)
                prepared = await self._pipeline.prepare(whole, wire, arrived)
                if prepared.body == (body or b""):
                    return Outgoing(prepared, headers, sent)
            dropped = (b"content-encoding", b"accept-encoding" if prepared.opens_with else b"")
            plain = [header for header in headers if header[0] not in dropped]
            without = (headers, sent) if prepared.bare is None else (plain, prepared.bare)
            return Outgoing(prepared, plain, prepared.body, without)
        if not self._is_off and (counted := counting_wire_of(method, path)) is not None:
            sent = await upload.whole()
            async with self._copies.copy(sent, headers) as body:
                whole = request.with_body(body)
                if self._state is not None:
                    await self._state.check_body(whole)
                prepared = Prepared(b"") if body is None else await self._pipeline.to_be_counted(whole, counted)
                if prepared.body in (b"", body):
                    return Outgoing(prepared, headers, sent)
            plain = [header for header in headers if header[0] != b"content-encoding"]
            return Outgoing(prepared, plain, prepared.body)
        checks = self._state if method == "POST" and not _is_form(headers) else None
        if checks is not None or (self._needs_model and _is_json(headers)):
            sent = await upload.whole()
            async with self._copies.copy(sent, headers) as body:
                whole = request.with_body(body)
                if checks is not None:
                    await checks.check_body(whole)
                if body is None:
                    raise _unreadable()
                return Outgoing(Prepared(b"", model=whole.model if self._needs_model else ""), headers, sent)
        first = await upload.piece()
        prepared = Prepared(b"", listen=self._pipeline.listener_for(method, path))
        return Outgoing(prepared, headers, first if upload.has_arrived else upload.rest(first))


async def _answer(
    outgoing: Outgoing, send: Callable[[RawHeaders, Body], Awaitable[UpstreamAnswer]], relay: Relay
) -> UpstreamAnswer:
    """The upstream's answer; if the prompt is too long, the answer to the client's own request, or to a shorter one."""
    without, compacts, sent = outgoing.prepared.without, outgoing.prepared.compacts, outgoing.sent
    if without is not None and sent is None:
        sent = outgoing.headers, outgoing.body
    sending = send(outgoing.headers, outgoing.body)
    del outgoing
    if compacts is not None:
        return await _compact(sending, compacts, relay)
    answer = await sending
    if without is None or sent is None:
        return answer
    looked_at = BufferedAnswer(answer)
    try:
        refused = await looked_at.look()
    except BaseException:
        await looked_at.aclose()
        raise
    if refused is None or (instead := await without(refused)) is None:
        return looked_at
    await looked_at.aclose()
    relay.take(instead)
    if instead.body:
        headers, body = [header for header in sent[0] if header[0] != b"content-encoding"], instead.body
        return await send(headers, body)
    return await send(*sent)


async def _compact(
    sending: Awaitable[UpstreamAnswer], compacts: Callable[[], Awaitable[Prepared | None]], relay: Relay
) -> UpstreamAnswer:
    """The upstream's answer to a compaction request, or our own if the upstream cannot compact."""
    try:
        answer = await sending
    except NotServed:
        if (own := await compacts()) is None or own.answer is None:
            raise
    else:
        looked_at = BufferedAnswer(answer)
        try:
            own = await compacts() if await looked_at.lacks_compaction() else None
        except BaseException:
            await looked_at.aclose()
            raise
        if own is None or own.answer is None:
            return looked_at
        await looked_at.aclose()
    relay.take(own)
    return _own_answer(*own.answer)


def _own_answer(content_type: str, body: bytes) -> UpstreamAnswer:
    from palimpsest.upstream.listing import StaticAnswer  # late: few requests get one

    return StaticAnswer(200, body, [(b"content-type", content_type.encode())])


def _room(scope: Scope) -> Room:
    room: Room = scope.get("extensions", {}).get(ROOM, BOUNDLESS)
    return room


def _nothing() -> None:
    """Fallback for servers that cut an unfinished answer themselves when the application returns."""


def _unnoticed(_call: object) -> bool:
    """Fallback for servers that do not say when a client leaves: what it asked for is gone on with."""
    return True


def _unreadable() -> BodyTooLarge:
    return BodyTooLarge(
        "the compressed request is larger than 32 MiB when decoded, and its model decides "
        "where it goes: send it uncompressed"
    )


def _model_in(query: str) -> str:
    """The model of a request without a body (`/v1/realtime?model=...`)."""
    return next(iter(parse_qs(query).get("model", ())), "")


def _declared_bytes(headers: RawHeaders) -> int:
    return next((int(value) for name, value in headers if name == b"content-length" and value.isdigit()), 0)


def _is_form(headers: RawHeaders) -> bool:
    """Whether the body is an upload, which contains no ids."""
    return any(name == b"content-type" and value.lower().startswith(b"multipart/") for name, value in headers)


def _is_json(headers: RawHeaders) -> bool:
    return any(name == b"content-type" and b"json" in value.lower() for name, value in headers)
