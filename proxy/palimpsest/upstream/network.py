"""
The way to an upstream: the proxy of the network and the certificate authorities that the environment names.

Clients go by these variables when they ask their provider themselves; so they must not need others behind this proxy.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from palimpsest.domain.errors import PolicyError

EXTRA_AUTHORITIES = "NODE_EXTRA_CA_CERTS"
"""The variable in which clients that are made with Node name authorities; OpenSSL itself reads SSL_CERT_FILE."""


def proxy_of_the_network(url: str, environment: Mapping[str, str]) -> str | None:
    """
    The HTTP proxy through which an upstream is reached, or None.

    Only `HTTPS_PROXY` counts, hence only upstreams with https: those without it are on this machine or beside it.
    """
    target, variables = urlsplit(url), {name.lower(): value for name, value in environment.items() if value}
    if target.scheme != "https" or _is_exempt(target.hostname or "", variables.get("no_proxy", "")):
        return None
    found = variables.get("https_proxy") or variables.get("all_proxy") or ""
    return found if urlsplit(found).scheme in ("http", "https") else None


def _is_exempt(host: str, no_proxy: str) -> bool:
    """Whether a list of domains, divided by commas, names a host or one above it; `*` names all."""
    domains = [domain.strip().lstrip(".").lower() for domain in no_proxy.split(",")]
    return "*" in domains or any(f".{host}".endswith(f".{domain}") for domain in domains if domain)


def authorities(environment: Mapping[str, str]) -> ssl.SSLContext | bool:
    """
    The authorities whose certificates are accepted: those of the machine, True, or these and what the environment adds.

    Raises:
        PolicyError: what it names cannot be read.
    """
    file = environment.get(EXTRA_AUTHORITIES)
    if not file:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(Path(file))
    except OSError as cause:  # a file that holds no certificate is one, too
        reason = (cause.strerror or str(cause)).lower()
        raise PolicyError(f"environment: {EXTRA_AUTHORITIES}: {file}: {reason}; correct it, or unset it") from cause
    return context
