"""A request as it arrived: its bytes, who sent it, and how far memory may reach for it."""

from __future__ import annotations

from palimpsest.core.caller.admission import mode_of
from palimpsest.core.caller.credentials import forwarded_secrets, is_nameless
from palimpsest.core.caller.identity import tenant_of
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.core.conversation import Rules
from palimpsest.domain import Mode, frozen
from palimpsest.domain.ports import Wire


@frozen
class Arrival:
    """One request, with its sender, before memory reads its body."""

    request: ReceivedRequest
    wire: Wire
    tenant: str  # "": nobody is named
    mode: Mode

    @property
    def body(self) -> bytes:
        return self.request.body or b""


def arrival_of(request: ReceivedRequest, wire: Wire, rules: Rules, tenant: str = "") -> Arrival:
    """A request, with its sender. `tenant`: whose it is, where it shows no credential here."""
    is_read_only = request.key is not None and request.key.read_only
    mode = mode_of(request.named, rules.policy.memory, is_read_only=is_read_only)
    return Arrival(request, wire, tenant or sender_of(request, rules), mode)


def sender_of(request: ReceivedRequest, rules: Rules) -> str:
    """The tenant of a request; "": nobody is named."""
    credentials = forwarded_secrets(request.headers)
    nameless = rules.trusts_machine and not credentials and is_nameless(request.headers)
    return tenant_of(credentials, rules.policy.tenants, rules.secret, request.key, is_nameless=nameless)
