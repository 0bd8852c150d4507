"""
Speakers of tool calls: who asks, read from the headers as of proxied requests.

Nothing that a tool is told names a tenant, a user or a project: an agent may be told what to say.
"""

from __future__ import annotations

from dataclasses import replace

from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.credentials import is_nameless, secrets_of
from palimpsest.core.caller.identity import identify, tenant_of
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.caller.received import named_headers
from palimpsest.core.redaction.redaction import stored_name
from palimpsest.domain import RawHeaders, Speaker
from palimpsest.settings.policy import Policy


class Speakers:
    """Reads speakers by one policy."""

    def __init__(
        self, policy: Policy, signals: Signals, keyring: ProxyKeys, secret: bytes, trusts_machine: bool = False
    ) -> None:
        self._policy = policy
        self._signals = signals
        self._keyring = keyring
        self._secret = secret
        self._trusts_machine = trusts_machine

    def of(self, headers: RawHeaders) -> Speaker | None:
        """The speaker of a request with these headers (lower-case names); None: the key is not valid for it."""
        key = self._keyring.find(headers)
        if self._keyring.refuses(headers, key):
            return None
        if key is not None and (key.users or key.scopes):
            return None  # a tool may name any conversation of the tenant
        nameless = self._trusts_machine and is_nameless(headers)
        tenant = tenant_of(secrets_of(headers), self._policy.tenants, self._secret, key, is_nameless=nameless)
        if not tenant:
            return None
        speaker = identify(tenant, named_headers(headers), {}, self._signals, key)
        return replace(speaker, user=self._named(speaker.user), scope=self._named(speaker.scope))

    def _named(self, name: str) -> str:
        """A name as it is stored."""
        return stored_name(name, self._secret, self._policy.archive.redact)
