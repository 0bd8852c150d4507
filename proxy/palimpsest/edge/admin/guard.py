"""
The guard of the admin API: what is checked before every operation, how its parameters are read from path, query and
body, and how failures are answered.

Access first, then the parameters, then the tenant: a proxy key reaches its own alone. All errors have one JSON shape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

import orjson
import structlog
from pydantic import ValidationError
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.edge.access import Access, Caller, Refusal
from palimpsest.edge.admin.operation import JSON, NOT_BLANK, Call, OfTenant, Operation, Refused
from palimpsest.edge.replies import UNTRUSTED, error_reply, json_reply

UNKNOWN_PATH = "there is no such path here: /memory/v1/openapi.json lists them all"
ALL_TENANTS = "this covers all tenants: send the admin token"
READ_ONLY = "this key is read-only"
FOREIGN = "a proxy key opens its own tenant only: leave tenant out, or send the admin token"

log = structlog.get_logger()

P = TypeVar("P")

MAX_BODY_BYTES = 1 << 20  # of a JSON object; the longest names and words to search for need a thousandth of it


class Guard:
    """Checks calls and runs operations."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._asking = asyncio.Lock()

    async def answer(self, operation: Operation[Any], request: Request, known: Caller | None = None) -> Response:
        """Run an operation. `known`: who asks, where that is not for the request's headers to say."""
        caller = known or self.access.caller(request.scope["headers"])
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
            asked = _of_callers_tenant(caller, await parse(operation, request))
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
                response.body_iterator = iterate_in_threadpool(())  # a body that ends at once
            for name, value in UNTRUSTED.items():
                response.headers.setdefault(name, value)
        await response(scope, receive, send)


async def unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer every other path below /memory: nothing of ours ever goes upstream."""
    await error_reply(404, UNKNOWN_PATH)(scope, receive, send)


def _of_callers_tenant(caller: Caller, asked: Any) -> Any:
    """The arguments with the caller's tenant filled in; refused where they name another."""
    if not caller.tenant or not isinstance(asked, OfTenant):
        return asked
    if asked.tenant not in ("", caller.tenant):
        raise Refused(403, FOREIGN)
    return replace(asked, tenant=caller.tenant)


async def parse(operation: Operation[P], request: Request) -> P:
    """What was asked. Raises `Refused`, with words about what is wrong."""
    known = [field.name for field in fields(operation.asks)]  # type: ignore[arg-type]
    in_path = {name: value for name, value in request.path_params.items() if name in operation.path_names}
    if blank := next((name for name, value in in_path.items() if not value.strip()), None):
        raise Refused(404, f"{blank} is required")
    outside = [name for name in known if name not in in_path]
    query = request.query_params.multi_items()
    names = [name for name, _ in query]
    if operation.body == JSON:
        _refuse_unknown(names, ())
        body = await _json_object(request)
        _refuse_unknown(body, outside)
        try:
            given = orjson.dumps(body | in_path)
        except orjson.JSONEncodeError:  # it is read more deeply nested than it is written
            raise Refused(400, "the body is nested too deeply") from None
        return _validated(operation, lambda: operation.adapter.validate_json(given, strict=True))
    _refuse_unknown(names, outside)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Refused(400, f"{twice}: given more than once")
    return _validated(operation, lambda: operation.adapter.validate_strings(dict(query) | in_path))


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The body of a request; refused where it is longer."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > most_bytes:
            raise Refused(413, f"the body is larger than {most_bytes} bytes")
    return bytes(data)


async def _json_object(request: Request) -> dict[str, Any]:
    data = await read_body(request, MAX_BODY_BYTES)
    try:
        body = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise Refused(400, "the body must be a JSON object")
    # JSON has one kind of number: 3.0 is the integer 3 to JSON Schema, and to clients that know no integers.
    return {name: int(told) if _is_integer(told) else told for name, told in body.items()}


def _is_integer(told: object) -> bool:
    return isinstance(told, float) and told.is_integer() and abs(told) < 2**53  # above, a float is not one integer


def _refuse_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """A misspelt filter that was passed over would list, or delete, more than was meant."""
    known = sorted(known)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known) or 'none'}"
            raise Refused(400, f"{name}: not known here; {hint}")


def _validated(operation: Operation[P], parsed: Callable[[], P]) -> P:
    try:
        return parsed()
    except ValidationError as wrong:
        errors = wrong.errors(include_url=False)
        bounds = operation.adapter.json_schema()["properties"]
        is_of_path = any(error["loc"][:1] and error["loc"][0] in operation.path_names for error in errors)
        raise Refused(404 if is_of_path else 400, "; ".join(_in_words(error, bounds) for error in errors)) from wrong


def _in_words(error: Mapping[str, Any], bounds: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing" or error.get("ctx", {}).get("pattern") == NOT_BLANK:
        return f"{name} is required"
    declared = bounds.get(name, {})
    if "minimum" in declared and "maximum" in declared:
        return f"{name}: must be a number from {declared['minimum']} to {declared['maximum']}"
    if error["type"] == "string_pattern_mismatch":
        meant = str(declared.get("description", "")).rstrip(".")
        return f"{name}: not understood; expected: {meant[:1].lower()}{meant[1:]}"
    text = str(error["msg"]).removeprefix("Value error, ")
    return f"{name}: {text.replace('Input should', 'must', 1)}"
