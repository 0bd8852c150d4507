"""The commands of retention: `retention` shows what is due and erases it on request, `vacuum` writes the file anew."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, policy_flags, quiet_policy, refuse_server, yes_flag

if TYPE_CHECKING:
    from palimpsest.console.offline import Commands

RUN_SECONDS = 1.0  # between two lines about how far it came
QUESTION = (
    "This cannot be undone. It erases what is due, what was retired 30 days ago, and, of a file that is too large, the "
    "oldest messages. Type yes to erase it: "
)


def add_commands(command: Command) -> None:
    retention = command("retention", _retention, "Show what is older than retention allows; with --run, erase it now.")
    retention.add_argument("--run", action="store_true", help="erase it now; a running proxy does this by itself")
    retention.add_argument("--dry-run", action="store_true", help="only show it (the default)")
    yes_flag(retention)
    policy_flags(retention)

    vacuum = command("vacuum", _vacuum, "Rewrite the database file to make it as small as possible.")
    policy_flags(vacuum)


def _retention(given: argparse.Namespace) -> int:
    from palimpsest.console import offline

    policy = quiet_policy(given)
    out, aside = terminal.console(), terminal.console(is_aside=True)

    async def sweep(commands: Commands) -> int:
        sweeper, periods = commands.archive.sweeper, policy.retention
        overview = await sweeper.overview()
        kinds = ("turns", "tool_results", "side_requests", "explain")
        rows = [(kind.replace("_", " "), getattr(periods, kind), f"{overview.due[kind]:,}") for kind in kinds]
        out.print(terminal.fields((name, f"{period:>9}  {due:>9} due") for name, period, due in rows))
        size = f"{overview.file.bytes / 1e6:,.1f} MB, {overview.file.used_bytes / 1e6:,.1f} MB in use"
        out.print(terminal.fields([("file", f"{size}, at most {periods.max_store_bytes}")]))
        if not given.run or given.dry_run:
            return DONE
        if not terminal.is_confirmed(given, "retention", QUESTION):
            aside.print("nothing was erased")
            return FAILED
        total = 0
        while True:
            swept = await sweeper.sweep(RUN_SECONDS)
            total += sum(swept.swept.values())
            if swept.is_complete:
                break
            if not swept.was_alone:
                aside.print("another process is erasing; waiting for it")
            elif swept.swept:
                aside.print(f"{total:,} rows erased so far")
        out.print(f"{total:,} rows erased; the file has {swept.bytes / 1e6:,.1f} MB")
        return DONE

    return offline.run(policy, sweep)


def _vacuum(given: argparse.Namespace) -> int:
    from palimpsest.console import offline

    policy = quiet_policy(given)
    refuse_server(policy, "vacuum")

    async def vacuum(commands: Commands) -> int:
        files = commands.database.files
        assert files is not None
        path = files.path
        before = path.stat().st_size
        await files.vacuum()
        is_moved = await files.truncate_log()
        terminal.console().print(f"{before / 1e6:,.1f} MB before, {path.stat().st_size / 1e6:,.1f} MB now")
        return DONE if is_moved else FAILED

    return offline.run(policy, vacuum)
