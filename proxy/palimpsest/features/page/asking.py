"""
Questions of the page to the admin API, within the process: guarded, parsed and answered as those of any other caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.types import Message

from palimpsest.domain.frozen import frozen
from palimpsest.edge.access import Caller
from palimpsest.edge.admin.guard import Guard
from palimpsest.edge.admin.operation import JSON, Operation


@frozen
class Answer:
    """The answer of an operation: its status, and what its JSON says."""

    status: int
    value: Any

    @property
    def error(self) -> str:
        """What was wrong, in words; "" where nothing was."""
        said = self.value.get("error") if isinstance(self.value, dict) else None
        return str(said["message"]) if self.status >= 400 and isinstance(said, dict) else ""


class Api:
    """The operations of the admin API, by method and path."""

    def __init__(self, operations: Sequence[Operation[Any]], guard: Guard) -> None:
        self._guard = guard
        self._operations = {(operation.method, operation.path): operation for operation in operations}

    async def call(
        self,
        request: Request,
        caller: Caller | None,
        place: tuple[str, str],
        in_path: Mapping[str, str],
        given: Mapping[str, Any],
    ) -> Answer:
        """
        Call an operation of the admin API on behalf of the page's reader.

        Args:
            request: the reader's, whose `Host` is checked like any other.
            caller: who signed in; None: nobody did.
            place: method and path of the operation.
            given: its query, or the fields of its body.
        """
        operation = self._operations[place]
        # A key in a header is no session, and opens no form; a program that reads JSON asks as it asks the API.
        is_program = caller is None and request.method == "GET" and request.query_params.get("format") == "json"
        hidden = (b"cookie",) if is_program else (b"authorization", b"cookie")
        shown = [(name, value) for name, value in request.scope["headers"] if name not in hidden]
        has_body = operation.body == JSON
        body = orjson.dumps({**given}) if has_body else b""

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        scope = {
            **request.scope,
            "method": operation.method,
            "path_params": dict(in_path),
            "query_string": b"" if has_body else urlencode(given).encode(),
            "headers": shown,
        }
        response = await self._guard.answer(operation, Request(scope, receive), caller)
        return Answer(response.status_code, orjson.loads(response.body))
