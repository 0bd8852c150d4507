"""
`palimpsest stats`: what is stored, from the database; with `--watch`, what a running proxy does, from its metrics.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping
from typing import Any

from palimpsest import terminal
from palimpsest.commands.arguments import DONE, Command, policy_flags, policy_of, quiet_policy
from palimpsest.settings.policy import Policy

WATCH_SECONDS = 2.0  # between looks


def add_command(command: Command) -> None:
    """Add it to the command line."""
    parser = command("stats", _stats, "Show how much is stored and indexed; or watch a running proxy.")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs; with --watch a line each time")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=WATCH_SECONDS,
        metavar="SECONDS",
        help=f"watch the running proxy, and look so often ({WATCH_SECONDS:g})",
    )
    parser.add_argument("--host", help="address of the proxy to watch (127.0.0.1)")
    parser.add_argument("--port", type=int, help="its TCP port (8484)")
    policy_flags(parser)


def _stats(given: argparse.Namespace) -> int:
    if given.watch is not None:
        from palimpsest.commands import watching

        return watching.watch(policy_of(given), given.watch, as_json=given.json)
    from palimpsest.commands import offline

    async def run(policy: Policy) -> Mapping[str, Any]:
        async with offline.opened(policy) as archive:
            return await archive.stats()

    stored, out = asyncio.run(run(quiet_policy(given))), terminal.console()
    if given.json:
        out.print(json.dumps(dict(stored)), soft_wrap=True)
    else:
        out.print(terminal.numbers(stored))
    return DONE
