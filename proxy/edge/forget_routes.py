"""
Forgetting over HTTP: `POST /memory/v1/forget`, and `DELETE` on a turn, a conversation, a user or a tenant.

A proxy key erases in its own tenant only. What is not stored is answered with 404, never with success.
"""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from proxy.edge.access import Caller
from proxy.edge.replies import error_reply, json_reply
from proxy.errors import PolicyError
from proxy.memory.forgetting import Forgetting, target_of
from proxy.ports import Clock

NOTHING = "nothing stored matches, so nothing was erased"
NOT_CLEAN = 500  # the receipt says what is left
TRUE = ("1", "true", "yes", "")


class ForgetRoutes:
    """The handlers of deletion. Access is checked before them."""

    def __init__(self, forgetting: Forgetting, clock: Clock) -> None:
        self._forgetting = forgetting
        self._clock = clock

    async def forget(self, request: Request, caller: Caller) -> Response:
        """`POST`: the body, a JSON object, says what to forget; `dry_run: true` only counts."""
        try:
            body = orjson.loads(await request.body())
        except orjson.JSONDecodeError:
            body = None
        if not isinstance(body, dict):
            return error_reply(400, "the body must be a JSON object that names what to forget")
        dry_run = body.pop("dry_run", False)
        if not isinstance(dry_run, bool):
            return error_reply(400, "dry_run: must be true or false")
        return await self._answer(body, caller, dry_run)

    async def delete(self, request: Request, caller: Caller) -> Response:
        """`DELETE`: the path says what to forget; `?dry_run=true` only counts, `?tenant=` names the tenant."""
        named = dict(request.path_params)
        if "number" in named:
            named = {"turn": f"{named['conversation']}/{named['number']}"}
        if tenant := request.query_params.get("tenant"):
            named.setdefault("tenant", tenant)
        dry_run = request.query_params.get("dry_run", "false").lower() in TRUE
        return await self._answer(named, caller, dry_run)

    async def _answer(self, given: dict[str, Any], caller: Caller, dry_run: bool) -> Response:
        if caller.tenant and given.get("tenant", caller.tenant) != caller.tenant:
            return error_reply(403, "a proxy key can only erase in its own tenant")
        if caller.tenant:
            given["tenant"] = caller.tenant
        try:
            target = target_of(given, self._clock())
            if dry_run:
                preview = await self._forgetting.preview(target)
                if preview is None:
                    return error_reply(404, NOTHING)
                return json_reply({"dry_run": True, "tenants": preview.tenants, "would_erase": preview.counts})
            receipt = await self._forgetting.erase(target)
        except PolicyError as wrong:
            return error_reply(400, str(wrong))
        if receipt is None:
            return error_reply(404, NOTHING)
        return json_reply(receipt, 200 if receipt["check"]["clean"] else NOT_CLEAN)
