"""
Which provider did the user mean before there was a proxy? The one that the variables of his clients name, if any.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.policy import Policy
from proxy.presence import address

BASES = {"openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "anthropic": ("ANTHROPIC_BASE_URL",)}
"""By wire, the variables in which clients look for an address; the first that is set counts."""


def own_base(wire: str, policy: Policy, environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable and its URL; both "" where none is set, or it leads to this policy's proxy already."""
    variable = next((name for name in BASES.get(wire, ()) if environment.get(name)), "")
    url = environment.get(variable, "").rstrip("/")
    return ("", "") if url.removesuffix("/v1") in ("", address(policy.listen)) else (variable, url)
