"""
The credentials of a request: which headers hold them, what of a value is the secret, which of them go upstream, and
whether it comes from this machine and needs none.

Whoever names a tenant, opens a door or forwards a request asks here, so that no two of them mean different credentials.
"""

from __future__ import annotations

from palimpsest.domain import RawHeaders

HEADERS = (b"authorization", b"x-api-key", b"api-key")
NAMES = frozenset(HEADERS)

LOCAL = "local"
"""The tenant of programs on this machine that show no credential; tenants of any other kind have a colon in them."""

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

# What reverse proxies, tunnels and content networks add, unless they are set up not to.
FORWARDED = frozenset(
    {
        *(b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-port"),
        *(b"x-forwarded-server", b"x-original-forwarded-for", b"x-real-ip", b"x-client-ip", b"x-cluster-client-ip"),
        *(b"cf-connecting-ip", b"cf-ray", b"true-client-ip", b"fastly-client-ip", b"fly-client-ip"),
        *(b"x-envoy-external-address", b"tailscale-user-login"),
    }
)


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


def is_local(headers: RawHeaders) -> bool:
    """Whether a request over loopback comes from this machine, and not through a reverse proxy or a web page."""
    hosts, origins = (
        [value.decode("latin-1").lower() for name, value in headers if name == wanted]
        for wanted in (b"host", b"origin")
    )
    return (
        len(hosts) == 1
        and without_port(hosts[0]) in LOCAL_NAMES
        and all(origin.partition("://")[2] == hosts[0] for origin in origins)
        and not any(name in FORWARDED for name, _ in headers)
    )


def is_nameless(headers: RawHeaders) -> bool:
    """Whether a request is local and has no credential at all, not even one that is not forwarded."""
    return not secrets_of(headers) and is_local(headers)


def without_port(host: str) -> str:
    """A host as a header or an origin names it, without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host
