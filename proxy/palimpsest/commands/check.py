"""`palimpsest check`: whether all that is stored agrees, and the repair of what is derived."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.status import Status

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, policy_flags, quiet_policy, refuse_server, yes_flag
from palimpsest.domain.errors import MemoryFault

if TYPE_CHECKING:
    from palimpsest.settings.policy import Policy
    from palimpsest.store.erasure.consistency import Examination

QUESTION = "What it removes cannot be recovered. Type yes to repair it: "


def add_commands(command: Command) -> None:
    parser = command("check", _check, "Check that the journal and the data derived from it agree.")
    parser.add_argument(
        "--repair", action="store_true", help="rebuild from the journal what is wrong; asks before removing anything"
    )
    yes_flag(parser)
    policy_flags(parser)


def _check(given: argparse.Namespace) -> int:
    from palimpsest.store.data_dir import DATABASE_FILE

    policy = quiet_policy(given)
    if policy.store.url:
        return _check_server(given, policy)
    path = policy.data / DATABASE_FILE
    if not path.exists():
        raise MemoryFault(f"examining {path}: it does not exist yet; --data names another folder")
    with terminal.console(is_aside=True).status("opening") as status:
        return asyncio.run(_examine(given, path, status))


def _check_server(given: argparse.Namespace, policy: Policy) -> int:
    from palimpsest.store.erasure.consistency import examination_of_server

    if given.repair:
        refuse_server(policy, "check --repair")
    store = policy.store
    with terminal.console(is_aside=True).status("opening") as status:
        found = examination_of_server(store.url, store.password_file, lambda doing: status.update(f"examining {doing}"))
    _print_findings(found)
    return FAILED if found.findings else DONE


async def _examine(given: argparse.Namespace, path: Path, status: Status) -> int:
    """Examine a database, print the findings, and repair it where that was asked for and confirmed."""
    from palimpsest.memory.operation.checking import check, repair
    from palimpsest.store.erasure.consistency import ERASING

    found = await check(path, lambda doing: status.update(f"examining {doing}"))
    _print_findings(found)
    if not (given.repair and found.findings):
        return FAILED if found.findings else DONE
    if ERASING & {finding.repair for finding in found.findings}:
        status.stop()
        if not terminal.is_confirmed(given, "check --repair", QUESTION):
            terminal.console(is_aside=True).print("nothing was repaired")
            return FAILED
        status.start()
    await repair(path, found, time.time, lambda doing: status.update(f"repairing {doing}"))
    found = await check(path, lambda doing: status.update(f"examining {doing} again"))
    out = terminal.console()
    out.print("\nafter the repair:")
    _print_findings(found)
    if found.findings:
        return FAILED
    out.print("a running proxy, or palimpsest index, makes the vectors again")
    return DONE


def _print_findings(found: Examination) -> None:
    """Print the findings and their repairs, or what was examined if there are none."""
    out = terminal.console()
    for finding in found.findings:
        out.print(terminal.safe(f"{finding.count:,} {finding.words}"))
    for repair in dict.fromkeys(finding.repair for finding in found.findings):
        out.print(terminal.safe(f"  --repair: {repair.value}" if repair.name != "NONE" else f"  {repair.value}"))
    if not found.findings:
        out.print(f"{found.conversations:,} conversations, {found.turns:,} turns, {found.messages:,} messages: fine")
    if found.note:
        out.print(found.note)
