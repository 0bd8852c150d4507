"""
`palimpsest stats`: what is stored, from the database; with `--cost`, what requests cost; with `--watch`, what a running
proxy does, from its metrics.
"""

from __future__ import annotations

import argparse
import json
from functools import partial

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, Command, policy_flags, policy_of, quiet_policy
from palimpsest.store.turns.costs import By

COST_ROWS = 14  # two weeks, or the newest conversations: half a screen
WATCH_SECONDS = 2.0  # between looks


def add_commands(command: Command) -> None:
    """Add it to the command line."""
    parser = command("stats", _stats, "Show how much is stored and indexed; or watch a running proxy.")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs; with --watch a line each time")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=WATCH_SECONDS,
        metavar="SECONDS",
        help=f"watch the running proxy, refreshing at this interval ({WATCH_SECONDS:g})",
    )
    parser.add_argument(
        "--cost", action="store_true", help="show what requests cost, and why provider caches were rebuilt"
    )
    parser.add_argument("--by", choices=[*By], default=By.DAY, type=By, help="with --cost: group by this (day)")
    parser.add_argument(
        "--limit", type=int, default=COST_ROWS, metavar="N", help=f"with --cost: the newest N ({COST_ROWS})"
    )
    parser.add_argument("--host", help="address of the proxy to watch (127.0.0.1)")
    parser.add_argument("--port", type=int, help="its TCP port (8484)")
    policy_flags(parser)


def _stats(given: argparse.Namespace) -> int:
    if given.watch is not None:
        from palimpsest.commands import watching

        return watching.watch(policy_of(given), given.watch, as_json=given.json)
    from palimpsest.console import offline

    out = terminal.console()
    if given.cost:
        from palimpsest.commands import cost_report
        from palimpsest.store.turns.costs import costs

        rows = offline.run(
            quiet_policy(given),
            lambda archive: archive.database.ask(partial(costs, by=given.by, limit=given.limit)),
        )
        if given.json:
            out.print(json.dumps({given.by.value: rows}), soft_wrap=True)
        else:
            out.print(cost_report.report(rows, given.by))
        return DONE

    stored = offline.run(quiet_policy(given), lambda archive: archive.archive.journal.stats())
    if given.json:
        out.print(json.dumps(dict(stored)), soft_wrap=True)
    else:
        out.print(terminal.numbers(stored))
    return DONE
