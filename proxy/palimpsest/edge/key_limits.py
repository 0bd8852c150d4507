"""
The limits of a key: the users and projects that its requests may name. Others are refused before anything is forwarded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.identity import allows, user_and_project
from palimpsest.core.caller.proxy_keys import Key
from palimpsest.domain import Json, RawHeaders
from palimpsest.domain.errors import WireError
from palimpsest.wire.json_body import read_object

INLINE_BYTES = 64 * 1024  # parsed in less than a millisecond


class NotAllowed(Exception):
    """A request for a user or project that its key does not cover; the text names both."""


class KeyLimits:
    """Reads from requests whom they name, as memory does."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    async def check(self, key: Key | None, headers: RawHeaders, body: bytes | None = None) -> None:
        """
        Refuse a request for a user or project that its key does not cover.

        Args:
            key: of the caller.
            headers: names in lower case.
            body: decoded; None where memory does not read it.

        Raises:
            NotAllowed: it names somebody, or a project, that the key is not for.
        """
        if key is None or not (key.users or key.scopes):
            return
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        user, scope = user_and_project(named, await parsed(body or b""), self._signals, key)
        if not allows(key, user, ""):
            raise NotAllowed(_words("user", user, key.users))
        if not allows(key, "", scope):
            raise NotAllowed(_words("scope", scope, key.scopes))


def _words(what: str, name: str, allowed: Sequence[str]) -> str:
    return f"this key is not for {what} {name!r}; allowed: {', '.join(allowed)}, or naming none"


async def parsed(body: bytes) -> Json:
    """A body that cannot be read names nobody: memory cannot read it either."""
    try:
        if len(body) <= INLINE_BYTES:
            return read_object(body) if body else {}
        return await asyncio.to_thread(read_object, body)
    except WireError:
        return {}
