"""
The check of base URLs on this machine: where nothing listens, every request fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from palimpsest.commands.base_urls import BaseUrl, Listener, listener, search
from palimpsest.commands.doctor.finding import Finding, ok, warning

CHECK = "base URLs"


def unreachable_urls(environment: Mapping[str, str], folder: Path) -> list[Finding]:
    """A finding for each base URL where nothing listens and each unreadable file, or one that all is well."""
    found = search(environment, folder)
    by_port = {one.port: listener(one) for one in found.base_urls}
    leading = [_dead(one) for one in found.base_urls if by_port[one.port] is Listener.NOBODY]
    unread = [warning(CHECK, f"{file} cannot be read, so it was not searched", f"see {file}") for file in found.unread]
    if leading or unread:
        return [*leading, *unread]
    if not found.base_urls:
        return [ok(CHECK, "no base URL of this machine in the environment, shell files or clients' settings")]
    return [ok(CHECK, f"{len(found.base_urls)} of this machine, and somebody answers at each")]


def _dead(one: BaseUrl) -> Finding:
    start = f"start the proxy (palimpsest serve --port {one.port}; palimpsest service install --port {one.port})"
    remove = f"palimpsest unwrap --port {one.port} --yes" if one.file else f"unset {one.name}"
    return warning(CHECK, f"{one.place}: {one.name} is {one.url}, and nothing listens there", f"{start}, or {remove}")
