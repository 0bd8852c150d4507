"""
The provider's own memory, where several keys share one account: who may ask for what the provider keeps.

With a key of the proxy's own the provider cannot tell the callers apart, and would list and hand out to each what it
keeps for all. So only what leaves nothing behind is forwarded, and of earlier answers only those that the journal knows
to be the caller's own: of the same tenant, user and project. A key that only reads has none. Here doubt is refused,
unlike everywhere else: it is about what others said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from palimpsest.core.caller.client_table import Signals
from palimpsest.core.caller.identity import tenant_key, whose
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.core.history.link_keys import reply_links
from palimpsest.domain.errors import MemoryFault, WireError
from palimpsest.edge.key_limits import RequestRefused, fields_of
from palimpsest.store.journal import Journal
from palimpsest.wire.kept import is_stateless, provider_references

CHECK_SECONDS = 5.0  # for the journal to answer; without it the request is refused, so it may take longer than recall
LATE_SECONDS = 1.0  # an answer's commit may still be under way when it is named; a busy disk takes that long
SETTING = "tenants.share_provider_state of the proxy"


@dataclass(slots=True)
class ProviderState:
    """The rules of a proxy whose keys share the provider's account."""

    journal: Journal  # knows which answers each caller received
    secret: bytes
    signals: Signals
    stored: Callable[[str], str]  # the form in which names of users and projects are stored

    def check_path(self, method: str, path: str, *, switches: bool) -> None:
        """Refuse a path, or a WebSocket, that could reach state which keys do not share, by `RequestRefused`."""
        if switches or not is_stateless(method, path):
            raise RequestRefused(
                403,
                "provider_state_refused",
                f"{method} {path}{' as a WebSocket' if switches else ''} may reach what the provider stores for other "
                f"keys of this proxy; if they may see each other's data, set {SETTING}",
            )

    async def check_body(self, request: ReceivedRequest) -> None:
        """Refuse a body that refers to what the provider stores for others, or cannot be read, by `RequestRefused`."""
        if request.body is None:
            raise RequestRefused(
                413, "request_too_large", "the compressed request is too large to be checked; send a smaller one"
            )
        try:
            named = await asyncio.to_thread(provider_references, request.body)
        except WireError as cause:
            raise RequestRefused(400, "invalid_request_error", str(cause)) from cause
        if named.fields:
            raise RequestRefused(
                403,
                "provider_state_refused",
                f"{', '.join(named.fields)} refers to what the provider stores for any key of this proxy; send the "
                f"content itself, or set {SETTING}",
            )
        if named.answers and not await self._are_own(request, named.answers):
            raise RequestRefused(
                400,
                "previous_response_not_found",
                "an id in this request does not belong to an answer that this key received through this proxy and "
                f"that was archived; send the history itself, or set {SETTING}",
            )

    async def _are_own(self, request: ReceivedRequest, ids: tuple[str, ...]) -> bool:
        key = request.key
        if key is None or key.read_only:
            return False
        tenant = key.tenant
        user, scope = map(self.stored, whose(request.named, await fields_of(request), self.signals, key))
        prints = {fingerprint for _, fingerprint in reply_links(ids, tenant_key(self.secret, tenant))}
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                if await self.journal.handed_out(tenant, prints, user, scope) == prints:
                    return True
                await asyncio.sleep(LATE_SECONDS)
                return await self.journal.handed_out(tenant, prints, user, scope) == prints
        except (MemoryFault, TimeoutError) as fault:
            text = "the ids in this request cannot be checked, because the archive does not answer; try again"
            raise RequestRefused(503, "archive_unavailable", text) from fault
