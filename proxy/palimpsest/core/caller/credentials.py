"""
The credentials of a request: which headers hold them, what of a value is the secret, and which of them go upstream.

Whoever names a tenant, opens a door or forwards a request asks here, so that no two of them mean different credentials.
"""

from __future__ import annotations

from palimpsest.domain import RawHeaders

HEADERS = (b"authorization", b"x-api-key", b"api-key")
NAMES = frozenset(HEADERS)


def secret_in(value: bytes) -> bytes:
    """The value of such a header without `Bearer`; empty where it is a scheme without a secret."""
    scheme, _, rest = value.strip().partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    return b"" if scheme.lower() == b"basic" and not rest else value.strip()


def secrets_of(headers: RawHeaders) -> list[bytes]:
    """The distinct secrets in the credential headers of a request (lower-case names), in the order of `HEADERS`."""
    secrets = [secret_in(value) for wanted in HEADERS for name, value in headers if name == wanted]
    return [secret for secret in dict.fromkeys(secrets) if secret]


def forwarded_secrets(headers: RawHeaders) -> list[bytes]:
    """The secrets that an upstream with the client's credential receives: those in no hop-by-hop header."""
    dropped = hop_by_hop(headers)
    return secrets_of([header for header in headers if header[0] not in dropped] if dropped & NAMES else headers)


def hop_by_hop(headers: RawHeaders) -> frozenset[bytes]:
    """Headers that `connection` declares hop-by-hop (RFC 9110 section 7.6.1); they are not forwarded."""
    named = [value for name, value in headers if len(name) == 10 and name.lower() == b"connection"]
    return frozenset(token.strip() for value in named for token in value.lower().split(b","))
