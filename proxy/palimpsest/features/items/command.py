"""The command `consolidate`: tidy the items of mid-term memory, list the runs that did, and take one back."""

from __future__ import annotations

import argparse
import asyncio
import signal
from datetime import datetime

from rich.console import Console

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, policy_flags, quiet_policy, yes_flag
from palimpsest.domain import Json
from palimpsest.domain.errors import PolicyError

RUNS = 20  # that are listed
QUESTION = "They are not made again. Type yes to undo them: "
ACTIONS = 20  # of a dry run that are shown on a terminal; all of them are in its JSON
DOES = {
    "merged": "repeated, and merged into the newer one",
    "superseded": "replaced by a newer value",
    "evicted": "dropped because their user has too many",
    "related": "read for relations",
}


def add_commands(command: Command) -> None:
    about = "Merge repeated items, let newer values replace older ones, and record relations."
    parser = command("consolidate", _consolidate, about)
    parser.add_argument("--tenant", metavar="NAME", default="", help="only items of this tenant")
    parser.add_argument("--user", metavar="NAME", help="only items of this user")
    parser.add_argument("--scope", metavar="NAME", help="only items of this project")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--list", action="store_true", help="list the newest runs that changed something")
    parser.add_argument("--undo", metavar="RUN", help="undo a run for good; asks first")
    parser.add_argument("--json", action="store_true", help="print JSON")
    yes_flag(parser)
    policy_flags(parser)


def _consolidate(given: argparse.Namespace) -> int:
    from palimpsest.console import offline
    from palimpsest.features.items.consolidation import Consolidator, ItemSelection
    from palimpsest.features.items.consolidation_batches import Outcome
    from palimpsest.features.items.writing import ItemKeeper, writer_of

    if given.undo is not None and (given.dry_run or given.list):
        raise PolicyError("--undo: cannot be combined with --dry-run or --list")
    policy = quiet_policy(given)
    out, aside = terminal.console(), terminal.console(is_aside=True)

    def tell(outcome: Outcome, kept: int) -> None:
        """Print what a run did."""
        if given.json:
            out.print_json(data={**outcome.to_json(), "kept": kept})
            return
        if kept:
            aside.print(f"{kept:,} items were kept of what has been said since")
        if not outcome.items:
            off = policy.consolidation.writer == "off"
            out.print("there are no items" + ("; consolidation.writer says who keeps them: it is off" if off else ""))
            return
        does = [(what, f"{outcome.done[what]:>7,}  {about}") for what, about in DOES.items()]
        out.print(terminal.fields([("items", f"{outcome.items:>7,}"), *does]))
        for action in outcome.actions[:ACTIONS]:
            heir = f" for {action.heir}" if action.heir else ""
            out.print(f"item {action.item} would be {action.what}{heir}: {action.why}")
        if len(outcome.actions) > ACTIONS:
            out.print(f"... and {len(outcome.actions) - ACTIONS:,} more; --json has all of them")
        for key in outcome.keys.values():
            out.print(f"palimpsest consolidate --undo {key} undoes this")

    async def run() -> int:
        async with offline.opened(policy) as archive:
            await archive.embedder.warm()  # then by meaning, too
            consolidator = Consolidator.of(archive.archive)
            if given.list:
                runs = await consolidator.runs(given.tenant, RUNS)
                _list(out, runs, given.json)
                return DONE
            if given.undo is not None:
                count = await consolidator.size(given.undo, given.tenant)
                if count:
                    aside.print(f"{count:,} changes to items and relations would be undone")
                if count and not terminal.is_confirmed(given, "consolidate --undo", QUESTION):
                    aside.print("nothing was undone")
                    return FAILED
                undone = await consolidator.undo(given.undo, given.tenant)
                if undone is None:
                    aside.print(f"there is no run {given.undo}, or it was undone before")
                    return FAILED
                out.print_json(data=undone)
                return DONE
            keeper = ItemKeeper.of(archive.archive, lambda: writer_of(policy.consolidation))
            kept = 0 if given.dry_run else await keeper.catch_up(may_be_open=True)
            outcome = await consolidator.run(ItemSelection(given.tenant, given.user, given.scope), given.dry_run)
            tell(outcome, kept)
            if not outcome.was_alone:
                aside.print("another process is consolidating now; nothing was done")
            return DONE if outcome.was_alone else FAILED

    async def stoppable() -> int:
        """Run until done, or until a signal: what is done by then stays."""
        work = asyncio.ensure_future(run())
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        try:
            return await work
        except asyncio.CancelledError:
            aside.print("interrupted: what was done stays, and the next run continues")
            return FAILED

    return asyncio.run(stoppable())


def _list(out: Console, runs: list[Json], as_json: bool) -> None:
    if as_json:
        out.print_json(data={"runs": runs})
        return
    if not runs:
        out.print("no run has changed anything")
    for run in runs:
        at = datetime.fromtimestamp(run["at"]).isoformat(" ", "seconds")
        counts = ", ".join(f"{run[what]:,} {what}" for what in DOES if run[what])
        undone = "; undone" if run["undone_at"] else ""
        out.print(f"{run['run']}  {at}  {counts}{undone}")
