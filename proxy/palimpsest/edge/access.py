"""
Access to the proxy's own endpoints: the admin token, a proxy key for its own tenant, or this machine alone.

There is no CORS: no page of another origin may read an answer. A page that points its own name at 127.0.0.1 (DNS
rebinding) is recognised by its `Host`; a reverse proxy that would let the world in as "this machine", by its headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hmac import compare_digest

from palimpsest.core.caller.credentials import is_local, secrets_of
from palimpsest.core.caller.proxy_keys import Key, ProxyKeys, digest_of
from palimpsest.domain import RawHeaders, frozen


@frozen
class Caller:
    """A caller with access: to one tenant, or with "" (the operator) to all."""

    tenant: str = ""
    is_read_only: bool = False


@frozen
class Refusal:
    """A refused caller; the text says what to try."""

    status: int
    text: str


@frozen
class Access:
    """The access rules of a proxy; `token` is the operator's, None where none is set."""

    token: str | None
    keys: ProxyKeys
    is_loopback: bool

    @property
    def trusts_machine(self) -> bool:
        """Whether programs on this machine need nothing to show."""
        return self.token is None and self.is_loopback

    def caller(self, headers: RawHeaders) -> Caller | Refusal:
        """The caller with these headers (lower-case names). Wrong secrets take as long as right ones."""
        shown = secrets_of(headers)
        if self.token is not None and _is_among(self.token, shown):
            return Caller()
        if (key := self.keys.find(headers)) is not None:
            if key.users or key.scopes:
                return Refusal(403, "this key is limited to some users or projects, and this path opens a whole tenant")
            return _holder(key)
        if self.token is not None:
            return Refusal(401, "send the admin token as authorization: Bearer")
        if any(map(self.keys.is_ours, shown)):
            return Refusal(401, "this key was revoked, has expired, or was not made by this proxy")
        if not self.is_loopback:
            return Refusal(403, "no admin token is set, so only 127.0.0.1 gets an answer: set PALIMPSEST_ADMIN_TOKEN")
        if not is_local(headers):
            return Refusal(403, "ask from this machine, as http://127.0.0.1 or http://localhost, or set an admin token")
        return Caller()

    def holders(self) -> Iterator[tuple[bytes, Caller]]:
        """Whom the token and each key let in, by its hash (`proxy_keys.digest_of`)."""
        if self.token is not None:
            yield digest_of(self.token.encode()), Caller()
        yield from ((digest, _holder(key)) for digest, key in self.keys.by_digest() if not (key.users or key.scopes))


def _holder(key: Key) -> Caller:
    return Caller(key.tenant, key.read_only)


def _is_among(secret: str, shown: Iterable[bytes]) -> bool:
    return any([compare_digest(secret.encode(), one) for one in shown])
