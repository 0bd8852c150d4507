"""A request as it arrived: its bytes, who sent it, and how far memory may reach for it."""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.core.caller.admission import mode_of
from palimpsest.core.caller.credentials import forwarded_secrets, is_nameless
from palimpsest.core.caller.identity import tenant_of
from palimpsest.core.caller.proxy_keys import Key, ProxyKeys
from palimpsest.core.conversation import Rules
from palimpsest.domain import Mode, RawHeaders
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Wire


@frozen
class Arrival:
    """One request before its body is read."""

    headers: RawHeaders
    named: Mapping[str, str]  # the same, lower-case names to values
    body: bytes
    wire: Wire
    key: Key | None  # of the proxy, that the caller presented
    tenant: str  # "": nobody is named
    mode: Mode


class Arrivals:
    """Tells who sends requests; one per policy."""

    def __init__(self, rules: Rules, keyring: ProxyKeys) -> None:
        self._rules = rules
        self._keyring = keyring

    def of(self, headers: RawHeaders, body: bytes, wire: Wire, *, key: bytes = b"", tenant: str = "") -> Arrival:
        """
        A request, with its sender.

        Args:
            key: hash of the proxy key that its caller showed elsewhere; empty: what the headers show counts.
            tenant: whose it is, where it shows no credential here.
        """
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        found = self._keyring.of_digest(key) if key else self._keyring.find(headers)
        mode = mode_of(named, self._rules.policy.memory, is_read_only=found is not None and found.read_only)
        return Arrival(headers, named, body, wire, found, tenant or self._tenant(headers, found), mode)

    def tenant_of(self, headers: RawHeaders) -> str:
        """The tenant of a request with these headers; "": nobody is named."""
        return self._tenant(headers, self._keyring.find(headers))

    def _tenant(self, headers: RawHeaders, key: Key | None) -> str:
        rules, credentials = self._rules, forwarded_secrets(headers)
        nameless = rules.trusts_machine and not credentials and is_nameless(headers)
        return tenant_of(credentials, rules.policy.tenants, rules.secret, key, is_nameless=nameless)
