"""Keys of the proxy: what a caller who presents one may do."""

from __future__ import annotations

from palimpsest.domain.frozen import frozen


@frozen
class ProxyKey:
    """A key that was made while the proxy ran. The key itself is known to its caller alone."""

    id: str
    shown: str  # its first characters
    name: str  # for people
    tenant: str
    users: tuple[str, ...] = ()  # whom requests may name; () anybody
    scopes: tuple[str, ...] = ()  # the same of projects
    read_only: bool = False  # recalls, and archives nothing
    created_at: float = 0.0
    expires_at: float | None = None  # Unix seconds; None: never
    revoked_at: float | None = None
    may_name_user: bool = True
    may_name_conversation: bool = True
