"""
Who may read what is stored? The operator with the token; a proxy key its own tenant; with no token set, this machine.

There is no CORS: no page of another origin may read an answer. A page that points its own name at 127.0.0.1 (DNS
rebinding) is recognised by its `Host`; a reverse proxy that would let the world in as "this machine", by its headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")

CREDENTIALS = ("authorization", "x-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may read: one tenant, or "" for the operator, who may read all."""

    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nobody we know; the text says what to try."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Access:
    """
    The rules of one running proxy.

    `token` is the operator's, None where none is set; `tenants` says what each proxy key opens, by the key itself.
    """

    token: str | None
    tenants: Mapping[str, str]
    is_loopback: bool

    def caller(self, headers: Mapping[str, str]) -> Caller | Refusal:
        """Who sends these headers (lower-case names)? Takes as long for a wrong secret as for a right one."""
        shown = _credential(headers).encode()
        opened = [name for key, name in self.tenants.items() if compare_digest(key.encode(), shown)]
        if self.token is not None:
            if compare_digest(self.token.encode(), shown):
                return Caller()
            return Caller(opened[0]) if opened else Refusal(401, "send the admin token as authorization: Bearer")
        if opened:
            return Caller(opened[0])
        if not self.is_loopback:
            return Refusal(403, "no admin token is set, so only 127.0.0.1 is answered: set PALIMPSEST_ADMIN_TOKEN")
        if not is_local(headers):
            return Refusal(403, "ask from this machine, as http://127.0.0.1 or http://localhost, or set an admin token")
        return Caller()


def is_local(headers: Mapping[str, str]) -> bool:
    """Whether a request that came in over loopback was also meant for it."""
    host = headers.get("host", "").lower()
    origin = headers.get("origin")
    return (
        _without_port(host) in LOCAL_NAMES
        and (origin is None or origin.lower().partition("://")[2] == host)
        and not any(name in headers for name in FORWARDED)
    )


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _credential(headers: Mapping[str, str]) -> str:
    for name in CREDENTIALS:
        if value := headers.get(name):
            scheme, _, rest = value.partition(" ")
            return rest.strip() if scheme.lower() == "bearer" else value
    return ""
