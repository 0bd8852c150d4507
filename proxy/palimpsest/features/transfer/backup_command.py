"""`palimpsest backup` and `palimpsest restore`: the data folder in one file, and back."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, Command, policy_flags, quiet_policy, refuse_server
from palimpsest.domain.days import time_of

if TYPE_CHECKING:
    from palimpsest.features.transfer.backup_file import Manifest


def add_commands(command: Command) -> None:
    backup = command("backup", _backup, "Copy the database and its secret to one file; the proxy may be running.")
    backup.add_argument("file", type=Path, metavar="FILE", help="a new file; .gz and .zst are compressed")
    backup.add_argument(
        "--without-secret", action="store_true", help="leave out the secret, which must then be kept elsewhere"
    )
    policy_flags(backup)

    restore = command("restore", _restore, "Restore a backup, without what was erased after it was made.")
    restore.add_argument("file", type=Path, metavar="FILE", help="a file written by palimpsest backup")
    restore.add_argument("--force", action="store_true", help="move the present contents of the data folder aside")
    restore.add_argument(
        "--erasures",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="also erase what this database or backup records as erased",
    )
    restore.add_argument(
        "--ignore-erasures", action="store_true", help="do not read from the present data folder what was erased"
    )
    policy_flags(restore)


def _backup(given: argparse.Namespace) -> int:
    from palimpsest.features.transfer.backups import back_up

    policy = quiet_policy(given)
    refuse_server(policy, "backup")
    with terminal.console(is_aside=True).status("copying") as status:
        manifest = back_up(
            *(policy.data, given.file, os.environ, time.time),
            lambda share: status.update(f"copying: {share:.0%}"),
            with_secret=not given.without_secret,
        )
    size = given.file.stat().st_size / 1e6
    out = terminal.console()
    out.print(terminal.safe(f"{given.file}: {size:,.1f} MB, opened and found intact"))
    out.print(terminal.fields(_counted(manifest)))
    if not manifest.has_secret:
        out.print("it does not contain the secret, without which nothing in it can be found again")
    return DONE


def _restore(given: argparse.Namespace) -> int:
    from palimpsest.features.transfer.backups import restore

    policy = quiet_policy(given)
    refuse_server(policy, "restore")
    done = asyncio.run(
        restore(
            *(given.file, policy.data, os.environ, time.time),
            is_forced=given.force,
            erasures_of=given.erasures,
            ignores_erasures=given.ignore_erasures,
        )
    )
    out = terminal.console()
    out.print(terminal.safe(f"{policy.data}: restored as it was at {time_of(done.manifest.made_at)}"))
    out.print(terminal.fields(_counted(done.manifest)))
    if done.erased.get("messages"):
        out.print(f"erased again: {done.erased['messages']:,} messages, which were erased after the backup was made")
    if done.aside is not None:
        out.print(terminal.safe(f"what was there before is in {done.aside}; delete it when you no longer need it"))
        out.print("later erasures do not reach that copy")
    return DONE


def _counted(manifest: Manifest) -> list[tuple[str, str]]:
    names: Mapping[str, str] = {"conversation": "conversations", "turn": "turns", "occurrence": "messages"}
    return [(said, f"{manifest.counts.get(name, 0):,}") for name, said in names.items()]
