"""The limits of a key: the users and projects that its requests may name. Others are not forwarded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.identity import allows, user_and_project
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain import Json

INLINE_BYTES = 64 * 1024  # parsed in less than a millisecond


class RequestRefused(Exception):
    """A request that is not forwarded because of what it asks for; status and code are those of providers."""

    def __init__(self, http_status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.http_status, self.code = http_status, code


Limits = Callable[[ReceivedRequest], Awaitable[None]]
"""Refuses a request by raising `RequestRefused`."""


async def refuse_others(request: ReceivedRequest, signals: Signals) -> None:
    """Refuse a request for a user or project, read as memory does, that its key does not cover; see `Limits`."""
    key = request.key
    if key is None or not (key.users or key.scopes):
        return
    user, scope = user_and_project(request.named, await fields_of(request), signals, key)
    if not allows(key, user, ""):
        raise _refusal("user", user, key.users)
    if not allows(key, "", scope):
        raise _refusal("scope", scope, key.scopes)


def _refusal(what: str, name: str, allowed: Sequence[str]) -> RequestRefused:
    text = f"this key is not for {what} {name!r}; allowed: {', '.join(allowed)}, or naming none"
    return RequestRefused(403, "not_allowed_for_key", text)


async def fields_of(request: ReceivedRequest) -> Json:
    """`ReceivedRequest.fields`, read on a thread where that takes long."""
    if len(request.body or b"") <= INLINE_BYTES:
        return request.fields
    return await asyncio.to_thread(lambda: request.fields)
