"""`palimpsest key`: make, list and revoke keys for callers of the proxy. It takes effect within a second."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.table import Table

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, action_of, quiet_policy, yes_flag
from palimpsest.domain import ProxyKey

if TYPE_CHECKING:
    from palimpsest.store.engine import Engine


def add_commands(command: Command) -> None:
    parser = command("key", _list, "Create, list and revoke keys for callers of the proxy.")
    action = action_of(parser, is_required=True)
    create = action("create", _create, "Create a key and print it. It is shown only once.")
    create.add_argument("name", metavar="NAME", help="a description of what the key is for")
    create.add_argument("--tenant", default="", metavar="T", help="tenant whose memory it opens (NAME)")
    create.add_argument(
        "--user", action="append", default=[], metavar="U", help="user that its requests may name (any); repeatable"
    )
    create.add_argument(
        "--scope", action="append", default=[], metavar="S", help="project that its requests may name (any); repeatable"
    )
    create.add_argument("--expires", default="", metavar="PERIOD", help="period of validity: 90d, 12h, 4w (unlimited)")
    create.add_argument("--read-only", action="store_true", help="recall only; archive nothing")
    action("list", _list, "List all keys, the newest first.")
    revoke = action("revoke", _revoke, "Revoke a key for good.")
    yes_flag(revoke)
    revoke.add_argument("id", metavar="ID", help="as listed by palimpsest key list")


def _create(given: argparse.Namespace) -> int:
    from palimpsest.commands import data_folder
    from palimpsest.memory.operation.key_service import KeyService, key_json

    async def create(database: Engine) -> tuple[str, ProxyKey]:
        limits = (given.user, given.scope, given.expires, given.read_only)
        return await KeyService(database, time.time).create(given.name, given.tenant, *limits)

    policy = quiet_policy(given)
    secret, key = data_folder.run(policy, create)
    if given.json:
        return terminal.print_json({"key": secret, **key_json(key)})
    aside = terminal.console(is_aside=True)
    aside.print(terminal.fields(_rows(key)))
    if not (policy.tenants.keys or policy.tenants.require_key):
        aside.print("callers without a key are accepted too: set tenants.require_key to refuse them")
    aside.print("the key is shown now and never again:")
    sys.stdout.write(f"{secret}\n")
    return DONE


def _list(given: argparse.Namespace) -> int:
    from palimpsest.commands import data_folder
    from palimpsest.memory.operation.key_service import KeyService, key_json

    keys = data_folder.run(quiet_policy(given), lambda database: KeyService(database, time.time).list_keys())
    if given.json:
        return terminal.print_json({"keys": [key_json(key) for key in keys]})
    out = terminal.console()
    if not keys:
        out.print("no keys; palimpsest key create NAME makes one")
        return DONE
    table = Table("id", "key", "name", "tenant", "for", "made", "state", box=None, padding=(0, 2, 0, 0))
    for key in keys:
        table.add_row(
            *(key.id, f"{key.shown}...", terminal.safe(key.name), terminal.safe(key.tenant)),
            *(terminal.safe(_limits(key)), _day(key.created_at), _state(key, time.time())),
        )
    out.print(table)
    return DONE


def _revoke(given: argparse.Namespace) -> int:
    from palimpsest.commands import data_folder
    from palimpsest.memory.operation.key_service import KeyService, key_json

    aside = terminal.console(is_aside=True)

    async def revoke(database: Engine) -> ProxyKey | None:
        keys = KeyService(database, time.time)
        key = next((key for key in await keys.list_keys() if key.id == given.id), None)
        if key is None:
            aside.print(f"palimpsest: there is no key {given.id}; palimpsest key list shows them all")
            return None
        aside.print(terminal.fields(_rows(key)))
        if terminal.is_confirmed(given, "key revoke", "This cannot be undone. Type yes to revoke it: "):
            return await keys.revoke(given.id)
        aside.print("nothing was revoked")
        return None

    key = data_folder.run(quiet_policy(given), revoke)
    if key is None:
        return FAILED
    if given.json:
        return terminal.print_json(key_json(key))
    terminal.console().print(terminal.safe(f"{key.id} ({key.name}) no longer opens anything"))
    return DONE


def _rows(key: ProxyKey) -> list[tuple[str, str]]:
    until = _day(key.expires_at) if key.expires_at is not None else "for good"
    return [("id", key.id), ("name", key.name), ("tenant", key.tenant), ("for", _limits(key)), ("until", until)]


def _limits(key: ProxyKey) -> str:
    limits = [*(f"user {name}" for name in key.users), *(f"project {name}" for name in key.scopes)]
    return ", ".join([*(limits or ["everybody"]), *(["read-only"] if key.read_only else [])])


def _state(key: ProxyKey, now: float) -> str:
    if key.revoked_at is not None:
        return f"revoked {_day(key.revoked_at)}"
    if key.expires_at is None:
        return "good"
    return f"{'good until' if key.expires_at > now else 'expired'} {_day(key.expires_at)}"


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
