"""`palimpsest open`: the page of the running proxy, in a browser. No token stands in an address."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from urllib.parse import quote

from palimpsest.commands.own_address import address
from palimpsest.commands.probe import RUNNING, Occupant, as_running, look
from palimpsest.console.arguments import DONE, FAILED, Command, listen_flags, policy_flags, quiet_policy
from palimpsest.domain import TURN_PREFIX
from palimpsest.domain.errors import PolicyError

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")  # without either, what Linux would start is a browser of the terminal


def add_commands(command: Command) -> None:
    parser = command("open", _open, "Open the page of the running proxy, or print its address.")
    parser.add_argument("named", nargs="?", default="", metavar="NAME", help="id of a conversation or a turn to show")
    parser.add_argument("--print", action="store_true", help="print the address only")
    policy_flags(parser)
    listen_flags(parser)


def _open(given: argparse.Namespace) -> int:
    policy = quiet_policy(given)
    if not policy.page.enabled:
        raise PolicyError("page.enabled is false: this proxy has no page")
    where = address(policy.listen)
    found = look(as_running(policy, os.environ))
    if found not in RUNNING:
        is_free = found is Occupant.NOBODY
        start = "start the proxy: palimpsest serve" if is_free else "name what it was started with, such as --data"
        sys.stderr.write(f"palimpsest: {where}: {found} listens there; {start}\n")
        return FAILED
    url = where + path_of(given.named)
    sys.stdout.write(f"{url}\n")
    if not given.print and sys.stdout.isatty() and (sys.platform != "linux" or any(map(os.environ.get, SCREENS))):
        webbrowser.open(url)
    return DONE


def path_of(named: str) -> str:
    """The path of a turn's page, a conversation's, or the first one."""
    kind = "turns" if named.startswith(TURN_PREFIX) else "conversations"
    return f"/memory/{kind}/{quote(named, safe='')}" if named else "/memory/"
