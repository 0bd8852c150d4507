"""
Checks of clients that are set up for this proxy: whether their settings fit its upstreams.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palimpsest.commands.detect import leads_here
from palimpsest.commands.doctor.finding import Finding, ok, warning
from palimpsest.commands.wrap import logs_in
from palimpsest.domain import Api
from palimpsest.settings import load
from palimpsest.settings.policy import Policy
from palimpsest.upstream.routing import serving

CODEX = "codex"
COMPACTS_THERE = "OpenAI"  # the name by which Codex takes a provider for one that compacts


def codex(policy: Policy, environment: Mapping[str, str]) -> list[Finding]:
    """A finding on Codex; none where it is not set up for this proxy, or where its settings cannot be read."""
    home = Path(environment.get("CODEX_HOME") or Path(environment.get("HOME", ""), ".codex"))
    try:
        settings: Any = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    table = settings.get("model_providers")
    providers = table.values() if isinstance(table, dict) else ()
    here = [one for one in providers if isinstance(one, dict) and leads_here(str(one.get("base_url")), policy.listen)]
    if not here:
        return []
    others = [upstream.name for upstream in serving(policy.upstreams, Api.OPENAI) if not upstream.is_openai]
    if others and any(one.get("name") == COMPACTS_THERE for one in here):
        found = f"its provider is named OpenAI, so it has upstream {others[0]} compact, which may not know how"
        return [warning(CODEX, found, f'in {home / "config.toml"} give it another name, such as name = "Palimpsest"')]
    wrapping = load.read_yaml(load.shipped("wrap.yaml"))
    is_login = any(one.get("requires_openai_auth") for one in here) and logs_in(wrapping, CODEX, environment)
    if is_login and not policy.tenants.static:
        found = "it is logged in with an account, whose token changes within hours and names no tenant"
        return [warning(CODEX, found, "on a machine of your own start the proxy with --config personal")]
    return [ok(CODEX, "its settings fit this proxy")]
