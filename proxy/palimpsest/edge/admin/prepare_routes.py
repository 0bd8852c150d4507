"""
Preparation over HTTP: for gateways that send requests themselves, and only want memory in them.

A request is prepared as one that passes, for the tenant that its headers name; its answer is handed over afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from palimpsest.core.caller.credentials import is_local
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain.errors import CompactionRefused
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import NOT_BLANK, Call, Refused, Routes, operation
from palimpsest.edge.open_turns import OpenTurn
from palimpsest.wire.registry import wire_of

TURN_HEADER = b"x-palimpsest-turn"
NO_KEY = "an admin token names no tenant: send one of this proxy's keys, or ask from this machine where no token is set"
NOT_OPEN = "this process has no such open turn; its request is archived without an answer"


@dataclass(frozen=True)
class Preparation:
    api: Annotated[
        Literal["chat/completions", "responses", "messages"], Field(description="The API that the request is for.")
    ]
    request: Annotated[dict[str, Any], Field(description="The body of the request.")]


@frozen
class PreparedRequest:
    """A request with memory."""

    turn: Annotated[str, Field(description="Id to send with the answer; empty: no answer is expected.")]
    request: Annotated[dict[str, Any], Field(description="The request body to send to the provider.")]
    headers: Annotated[
        dict[str, str], Field(description="The `x-palimpsest-*` headers that the proxy would add to the answer.")
    ]


@dataclass(frozen=True)
class Answer:
    turn: Annotated[str, Field(description="The `turn` that /prepare returned.", pattern=NOT_BLANK)]
    answer: Annotated[dict[str, Any], Field(description="The complete body of the provider's answer.")]


@frozen
class AcceptedAnswer:
    """An answer that was accepted."""

    turn: Annotated[str, Field(description="Id of the turn.")]


class PrepareRoutes(Routes):
    @operation("POST /prepare", "Add memory to a request without forwarding it", in_turn=False)
    async def prepare(self, call: Call[Preparation]) -> PreparedRequest:
        demand_tenant(call)
        headers = call.request.scope["headers"]
        wire = wire_of("POST", f"/v1/{call.asked.api}")
        assert wire is not None
        body = orjson.dumps(call.asked.request)
        try:
            request = ReceivedRequest(headers, body, self._parts.keyring.find(headers))
            prepared = await self._parts.preparer.prepare(request, wire)
        except CompactionRefused as refused:
            raise Refused(400, str(refused)) from refused
        turn = next((value.decode() for name, value in prepared.headers if name == TURN_HEADER), "")
        if turn and prepared.listen is not None:
            self._parts.open_turns.add(turn, OpenTurn(prepared, call.caller.tenant))
        added = {name.decode("latin-1"): value.decode("latin-1") for name, value in prepared.headers}
        return PreparedRequest(turn, orjson.loads(prepared.body), added)

    @operation(
        "POST /turns", "Archive the answer to a prepared request", missing="No such turn is open.", in_turn=False
    )
    async def take(self, call: Call[Answer]) -> AcceptedAnswer:
        if not await self._parts.open_turns.answer(
            call.asked.turn, call.caller.tenant, orjson.dumps(call.asked.answer)
        ):
            raise Refused(404, NOT_OPEN)
        return AcceptedAnswer(call.asked.turn)


def demand_tenant(call: Call[Any]) -> None:
    """Refuse a call that names no tenant, and does not come from this machine."""
    if not call.caller.tenant and not is_local(call.request.scope["headers"]):
        raise Refused(403, NO_KEY)
