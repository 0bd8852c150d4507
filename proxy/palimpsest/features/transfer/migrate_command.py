"""`palimpsest migrate`: the whole archive from a data folder to a PostgreSQL database, or back."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, Command, policy_flags, quiet_policy
from palimpsest.domain.errors import MemoryFault, PolicyError

if TYPE_CHECKING:
    from palimpsest.settings.policy import Policy
    from palimpsest.store.engine import Engine
    from palimpsest.store.operation.migration import Copied

SERVER = ("postgresql://", "postgres://")
PAUSE = (
    "nobody may use either database meanwhile: stop all proxies on them first, and start them on the new one afterwards"
)


def add_commands(command: Command) -> None:
    migrate = command("migrate", _migrate, f"Copy the archive to another database, and compare all of it; {PAUSE}.")
    place = "a data folder, or the URL of a PostgreSQL database (its password: store.password_file)"
    migrate.add_argument(
        "--from", dest="source", required=True, metavar="PLACE", help=f"{place}; nothing changes there"
    )
    migrate.add_argument("--to", dest="target", required=True, metavar="PLACE", help="the same; empty, or half copied")
    policy_flags(migrate)


def _migrate(given: argparse.Namespace) -> int:
    policy = quiet_policy(given)
    out = terminal.console()
    with terminal.console(is_aside=True).status("copying") as status:
        copied = asyncio.run(
            _run(policy, given.source, given.target, lambda table, rows: status.update(f"{table}: {rows:,} rows"))
        )
    out.print(terminal.fields([(one.table, f"{one.rows:,} rows, {one.digest}") for one in copied if one.rows]))
    out.print(
        terminal.safe(f"{sum(one.rows for one in copied):,} rows are the same in {given.source} and {given.target}")
    )
    if given.target.startswith(SERVER):
        out.print("its secret stays in the data folder, or in PALIMPSEST_SECRET: every proxy on it needs this secret")
    return DONE


async def _run(policy: Policy, source: str, target: str, report: Callable[[str, int], None]) -> list[Copied]:
    from palimpsest.store.operation.migration import migrate

    secret = _secret_of(policy, source)
    for place in (source, target):
        _demand_rest(policy, place)
    old, new = _engine(policy, source, lambda: secret), _engine(policy, target)
    try:
        await old.open()
        _hand_on(secret, source, target)
        await new.open()
        return await migrate(old, new, report)
    finally:
        await old.close()
        await new.close()


def _secret_of(policy: Policy, source: str) -> bytes:
    """The secret that the source must have been written with; raises `PolicyError`: there is no such source."""
    from palimpsest.store.data_dir import DATABASE_FILE
    from palimpsest.store.operation.secret import load_secret

    if not source.startswith(SERVER) and not (Path(source) / DATABASE_FILE).exists():
        raise PolicyError(f"--from: {source}: there is no database of palimpsest in this folder")
    return load_secret(policy.data if source.startswith(SERVER) else Path(source), os.environ)


def _hand_on(secret: bytes, source: str, target: str) -> None:
    """Put the secret into a folder that is the target; raises `PolicyError`: another one is there."""
    from palimpsest.store.data_dir import make_folder
    from palimpsest.store.operation.secret import FILE_NAME, SECRET_ENV, keep_secret, load_secret

    if target.startswith(SERVER) or os.environ.get(SECRET_ENV):
        return
    make_folder(Path(target))
    keep_secret(Path(target), secret)
    if load_secret(Path(target), os.environ) != secret:
        raise PolicyError(f"--to: {Path(target) / FILE_NAME} is another secret than that of {source}: move it away")


def _engine(policy: Policy, place: str, secret: Callable[[], bytes] | None = None) -> Engine:
    from palimpsest.store.engine.engines import engine_of

    url = place if place.startswith(SERVER) else ""
    return engine_of(Path(place), policy.archive.synchronous, url, policy.store.password_file, secret=secret)


def _demand_rest(policy: Policy, place: str) -> None:
    from palimpsest.store.engine.engines import is_in_use

    url = place if place.startswith(SERVER) else ""
    if is_in_use(Path(place), url, policy.store.password_file):
        raise MemoryFault(f"migrating: a process is using {place}; stop it first")
