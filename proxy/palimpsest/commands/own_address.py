"""The address of the proxy itself: what clients connect to, whether it is free, and which URLs lead to it."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from palimpsest.settings.policy import ListenPolicy

EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # cannot be connected to: what can, instead


def address(listen: ListenPolicy) -> str:
    """The URL of a proxy that listens there, without a path."""
    host = EVERYWHERE.get(listen.host, listen.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{listen.port}"


def try_listening(listen: ListenPolicy) -> int:
    """Check that the address is free, by listening for a moment (else `OSError`); returns the port."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    with socket.create_server((listen.host, listen.port), family=family) as listening:
        port: int = listening.getsockname()[1]
        return port


def leads_here(url: str, listen: ListenPolicy) -> bool:
    """Whether the URL leads to the proxy itself, by any name of this machine: that would be an endless loop."""
    named, own = urlsplit(url), urlsplit(address(listen))
    hosts = {named.hostname, own.hostname}
    return named.port == own.port and (len(hosts) == 1 or all(map(is_this_machine, hosts)))


def is_this_machine(host: str | None) -> bool:
    """Whether a host name is one of this machine, for programs on it."""
    return host in ("localhost", "0.0.0.0", "::", "::1") or (host or "").startswith("127.")
