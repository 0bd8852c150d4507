"""
Detection of the provider that a command was set up for, from the variables that its client reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from palimpsest.commands.probe import address
from palimpsest.settings.policy import ListenPolicy, Policy

BASES = {"openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "anthropic": ("ANTHROPIC_BASE_URL",)}
"""By wire, the variables in which clients look for an address; the first that is set counts."""


def own_base(wire: str, policy: Policy, environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable and its URL; both "" if none is set, or if it already leads to this policy's proxy."""
    variable = next((name for name in BASES.get(wire, ()) if environment.get(name)), "")
    url = environment.get(variable, "").rstrip("/")
    return ("", "") if not url or leads_here(url, policy.listen) else (variable, url)


def leads_here(url: str, listen: ListenPolicy) -> bool:
    """Whether the URL leads to the proxy itself, by any name of this machine: that would be an endless loop."""
    named, own = urlsplit(url), urlsplit(address(listen))
    hosts = {named.hostname, own.hostname}
    return named.port == own.port and (len(hosts) == 1 or all(map(is_this_machine, hosts)))


def is_this_machine(host: str | None) -> bool:
    """Whether a host name is one of this machine, for programs on it."""
    return host in ("localhost", "0.0.0.0", "::", "::1") or (host or "").startswith("127.")
