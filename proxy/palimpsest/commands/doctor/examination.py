"""The examination: all checks in order, from what a start needs to what memory needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from palimpsest.commands.doctor import clients, disk, machine, providers, server
from palimpsest.commands.doctor.finding import Finding, ok
from palimpsest.commands.probe import as_running
from palimpsest.domain.ports import Clock
from palimpsest.settings.describe import changes
from palimpsest.settings.policy import Policy


async def examine(policy: Policy, environment: Mapping[str, str], clock: Clock) -> list[Finding]:
    """Run all checks, and return their findings in order; `environment` holds the credentials to be tried."""
    changed = len(changes(policy))
    policy = as_running(policy, environment)
    said = f"{changed} differ from the defaults: palimpsest check-config lists them" if changed else "the defaults"
    return [
        ok("settings", said),
        disk.check_folder(policy.data),
        disk.check_free_space(policy.data),
        disk.check_secret(policy.data, environment),
        *([await server.link(policy, environment)] if policy.server.url else await _memory_here(policy, environment)),
        machine.port(policy),
        machine.admin_token(policy, environment),
        machine.page(policy),
        *clients.codex(policy, environment),
        clients.claude_code(policy, environment),
        *clients.unreachable_urls(environment, Path.cwd()),
        *await providers.check_upstreams(policy, environment, clock),
    ]


async def _memory_here(policy: Policy, environment: Mapping[str, str]) -> list[Finding]:
    return [await disk.check_database(policy, environment), machine.model(policy.model), machine.tokenizers()]
