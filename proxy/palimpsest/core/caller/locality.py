"""
Requests of programs on this machine, told from those of reverse proxies and web pages that arrive over loopback too.

Where only this machine can connect and no admin token is set, its programs are trusted with everything: `/memory/`
shows and erases what is stored. So a request there that shows no credential may have a memory of its own, the tenant
`LOCAL`: whoever can reach that memory could read it anyway. Wherever that door is shut, no credential means no tenant.
"""

from __future__ import annotations

from palimpsest.core.caller.credentials import secrets_of
from palimpsest.domain import RawHeaders

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


def is_local(headers: RawHeaders) -> bool:
    """Whether a request over loopback comes from this machine, and not through a reverse proxy or a web page."""
    hosts, origins = (
        [value.decode("latin-1").lower() for name, value in headers if name == wanted]
        for wanted in (b"host", b"origin")
    )
    return (
        len(hosts) == 1
        and _without_port(hosts[0]) in LOCAL_NAMES
        and all(origin.partition("://")[2] == hosts[0] for origin in origins)
        and not any(name in FORWARDED for name, _ in headers)
    )


def is_nameless(headers: RawHeaders) -> bool:
    """Whether a request is local and has no credential at all, not even one that is not forwarded."""
    return not secrets_of(headers) and is_local(headers)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
