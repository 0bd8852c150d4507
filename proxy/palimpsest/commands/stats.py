"""
`palimpsest stats`: what is stored, from the database; with `--cost`, what requests cost; with `--watch`, what a running
proxy does, from its metrics.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, Command, policy_flags, policy_of, positive, quiet_policy
from palimpsest.console.terminal import safe
from palimpsest.core.prefix_rebuild import CACHE_LIFE_SECONDS
from palimpsest.domain import Rebuild
from palimpsest.store.turns.costs import CostGrouping, costs

COST_ROWS = 14  # two weeks, or the newest conversations: half a screen
WATCH_SECONDS = 2.0  # between looks

UNKNOWN = "unknown"
LOUD = "bold red"
CAUSES = {
    Rebuild.FIRST: "first: a conversation began, or a side request",
    Rebuild.CLIENT: "after a change by the client: it compacted, edited, or changed model, instructions or tools",
    Rebuild.OURS: "after a change by the proxy: a block was inserted before text sent earlier, or removed",
    Rebuild.IDLE: f"after a pause of more than {CACHE_LIFE_SECONDS / 60:g} minutes",
    Rebuild.UNEXPECTED: "UNEXPECTED: nothing that memory looks at had changed, and no pause was that long",
}


def add_commands(command: Command) -> None:
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
    parser.add_argument(
        "--by",
        choices=[*CostGrouping],
        default=CostGrouping.DAY,
        type=CostGrouping,
        help="with --cost: group by this (day)",
    )
    parser.add_argument(
        "--limit", type=positive, default=COST_ROWS, metavar="N", help=f"with --cost: the newest N ({COST_ROWS})"
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
        rows = offline.run(
            quiet_policy(given),
            lambda archive: archive.database.ask(partial(costs, by=given.by, limit=given.limit)),
            keeps_to_secret=False,
        )
        if given.json:
            out.print(json.dumps({given.by.value: rows}), soft_wrap=True)
        else:
            out.print(report(rows, given.by))
        return DONE

    stored = offline.run(quiet_policy(given), lambda archive: archive.archive.journal.stats(), keeps_to_secret=False)
    if given.json:
        out.print(json.dumps(dict(stored)), soft_wrap=True)
    else:
        out.print(terminal.numbers(stored))
    return DONE


def report(rows: Sequence[Mapping[str, Any]], by: CostGrouping) -> RenderableType:
    """A table with a line for each row of `costs.costs`, and one of why caches were rebuilt."""
    if not rows:
        return Text("no request has been answered since costs have been recorded")
    return Group(_table(rows, by), Text(), *_rebuilds(rows))


def _table(rows: Sequence[Mapping[str, Any]], by: CostGrouping) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(by.value, no_wrap=True)
    names = ("requests", "clients sent", "we added", "of it repeated", "prompts", "from cache", "written to it")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("rebuilt")
    for row in rows:
        table.add_row(safe(row[by.value]), *_cells(row), _causes(row))
    return table


def _cells(row: Mapping[str, Any]) -> list[str]:
    own, added = row["own_tokens"] or 0, row["added_tokens"] or 0
    share = f" ({added / own:.1%})" if own and added else ""
    return [
        f"{row['requests']:,}",
        f"{own:,}",
        f"{added:,}{share}",
        f"{(row['repeated_tokens'] or 0) / added:.0%}" if added else "",
        *(_counted(row[name]) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens")),
    ]


def _counted(tokens: int | None) -> str:
    """A number of tokens that providers counted, in words; none told is not 0."""
    return UNKNOWN if tokens is None else f"{tokens:,}"


def _causes(row: Mapping[str, Any]) -> Text:
    """Why prompts were not read from the cache, each with its count."""
    text = Text()
    for cause, many in (*row["rebuilds"].items(), (UNKNOWN, row["unknown"])):
        if many:
            text.append(", " if text else "")
            is_loud = cause == Rebuild.UNEXPECTED
            text.append(f"{str(cause).upper() if is_loud else cause} {many:,}", style=LOUD if is_loud else "")
    return text


def _rebuilds(rows: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """Why prompts were not read from the cache, over all rows, as a table."""
    times, tokens = Counter[str](), Counter[str]()
    for row in rows:
        times.update(row["rebuilds"])
        tokens.update(row["rebuilt_tokens"])
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("why a provider did not read a prompt from its cache")
    for name in ("requests", "tokens"):
        table.add_column(name, justify="right")
    for cause, words in CAUSES.items():
        style = LOUD if cause is Rebuild.UNEXPECTED and times[cause] else ""
        table.add_row(words, f"{times[cause]:,}", f"{tokens[cause]:,}", style=style)
    requests, unknown = sum(row["requests"] for row in rows), sum(row["unknown"] for row in rows)
    counted = sum(row["cache_told"] for row in rows)
    lines: list[RenderableType] = [table]
    if unknown:
        text = (
            f"\n{unknown:,} of {requests:,} requests: unknown, as their answers, or those before, do not say what "
            "came from the cache (a stream of Chat Completions says so only where the client sets "
            "stream_options.include_usage)"
        )
        lines.append(Text(text))
    if 0 < counted < requests:
        text = f"\nprompts, from cache, written to it: of those that were counted, {counted:,} with a cache"
        lines.append(Text(text))
    return lines
