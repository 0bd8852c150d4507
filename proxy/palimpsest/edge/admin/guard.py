"""
The guard of the admin API: what is checked before every operation, and how failures are answered.

Access first, then the parameters, then the tenant: a proxy key reaches its own alone. All errors have one JSON shape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.edge.access import Access, Caller, Refusal
from palimpsest.edge.admin.operation import Call, OfTenant, Operation, Refused
from palimpsest.edge.admin.parameters import parse
from palimpsest.edge.replies import error_reply, json_reply

UNKNOWN_PATH = "there is no such path here: /memory/v1/openapi.json lists them all"
ALL_TENANTS = "this covers all tenants: send the admin token"
READ_ONLY = "this key is read-only"
FOREIGN = "a proxy key opens its own tenant only: leave tenant out, or send the admin token"

UNTRUSTED = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Headers of all answers, streams included: see `json_reply`."""

log = structlog.get_logger()


class Guard:
    """Checks calls and runs operations."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._asking = asyncio.Lock()

    async def answer(self, operation: Operation[Any], request: Request) -> Response:
        caller = self._access.caller(request.scope["headers"])
        if isinstance(caller, Refusal):
            response = error_reply(caller.status, caller.text)
            if caller.status == 401:
                response.headers["www-authenticate"] = "Bearer"
            return response
        try:
            if operation.for_operator and caller.tenant:
                raise Refused(403, ALL_TENANTS)
            if caller.is_read_only and operation.method != "GET":
                raise Refused(403, READ_ONLY)
            asked = _within(caller, await parse(operation, request))
            async with self._asking if operation.in_turn else nullcontext():
                answer = await operation.run(Call(caller, asked, request))
            return answer if isinstance(answer, Response) else json_reply(answer, operation.status)
        except Refused as refused:
            return error_reply(refused.status, refused.text)
        except PolicyError as wrong:
            return error_reply(400, str(wrong))
        except MemoryFault as fault:
            log.warning("an admin request failed", exc_info=fault)
            return error_reply(fault.http_status, "the store or an index did not answer; the log says why")


class PathEndpoint:
    """The operations of one path by method, as an ASGI application. HEAD is GET without a body; the server drops it."""

    def __init__(self, guard: Guard, operations: Sequence[Operation[Any]]) -> None:
        self._guard = guard
        self._by_method: Mapping[str, Operation[Any]] = {operation.method: operation for operation in operations}
        if "GET" in self._by_method:
            self._by_method = {**self._by_method, "HEAD": self._by_method["GET"]}
        self._allowed = ", ".join(sorted(self._by_method))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        operation = self._by_method.get(request.method)
        if operation is None:
            response = error_reply(405, f"{request.method} is not allowed here; allowed: {self._allowed}")
            response.headers["allow"] = self._allowed
        else:
            try:
                response = await self._guard.answer(operation, request)
            except ClientDisconnect:
                return
            if request.method == "HEAD" and isinstance(response, StreamingResponse):
                response.body_iterator = _nothing()
            for name, value in UNTRUSTED.items():
                response.headers.setdefault(name, value)
        await response(scope, receive, send)


class UnknownPath:
    """The answer to every other path below /memory: nothing of ours ever goes upstream."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await error_reply(404, UNKNOWN_PATH)(scope, receive, send)


async def _nothing() -> AsyncIterator[bytes]:
    """A body that ends at once."""
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece


def _within(caller: Caller, asked: Any) -> Any:
    if not caller.tenant or not isinstance(asked, OfTenant):
        return asked
    if asked.tenant not in ("", caller.tenant):
        raise Refused(403, FOREIGN)
    return replace(asked, tenant=caller.tenant)
