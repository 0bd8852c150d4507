"""`palimpsest enable` and `disable`: memory on and off in all proxies that run, also after a restart."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, Command, policy_flags, quiet_policy

if TYPE_CHECKING:
    from palimpsest.store.engine import Engine


def add_commands(command: Command) -> None:
    disable = command("disable", _disable, "Switch memory off at once: requests pass untouched and are not archived.")
    disable.add_argument("--reason", default="", metavar="TEXT", help="the reason, shown to whoever finds memory off")
    enable = command("enable", _enable, "Switch memory on again.")
    for parser in (disable, enable):
        parser.add_argument("--tenant", default="", metavar="NAME", help="only for this tenant")
        policy_flags(parser)


def _disable(given: argparse.Namespace) -> int:
    from palimpsest.commands import data_folder
    from palimpsest.memory.operation.switch_service import SwitchService
    from palimpsest.store.turns.listings import tenants

    async def disable(database: Engine) -> bool:
        off = await SwitchService(database, time.time).disable(given.tenant, given.reason)
        return not off.tenant or bool(
            (await database.ask(partial(tenants, tenant=off.tenant, after=0, limit=1))).listed
        )

    is_known = data_folder.run(quiet_policy(given), disable)
    again = f"palimpsest enable{f' --tenant {given.tenant}' if given.tenant else ''}"
    out = terminal.console()
    out.print(terminal.safe(f"memory is off for {given.tenant or 'everybody'}; on again: {again}"))
    if not is_known:
        later = "this has an effect only once one of this name sends a request"
        out.print(terminal.safe(f"no tenant {given.tenant} is stored: {later}"))
    return DONE


def _enable(given: argparse.Namespace) -> int:
    from palimpsest.commands import data_folder
    from palimpsest.memory.operation.switch_service import SwitchService

    async def enable(database: Engine) -> tuple[bool, list[str]]:
        switches = SwitchService(database, time.time)
        return await switches.enable(given.tenant), [off.tenant for off in await switches.off()]

    was_off, still = data_folder.run(quiet_policy(given), enable)
    out, whose = terminal.console(), given.tenant or "everybody"
    out.print(terminal.safe(f"memory is on for {whose}" if was_off else f"memory was not switched off for {whose}"))
    if still:
        out.print(terminal.safe(f"still off for: {', '.join(name or 'everybody' for name in still)}"))
    return DONE
