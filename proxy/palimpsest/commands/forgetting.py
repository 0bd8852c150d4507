"""Commands that take things out of the archive: `forget`, `retire`, `unretire`; and `receipt`, which verifies one."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, policy_flags, policy_of, quiet_policy, yes_flag
from palimpsest.core.archive.receipt import is_done, is_genuine
from palimpsest.domain import Json
from palimpsest.domain.errors import PolicyError
from palimpsest.store.data_dir import DATABASE_FILE

if TYPE_CHECKING:
    from palimpsest.console.offline import Commands
    from palimpsest.memory.erasure.targets import Preview
    from palimpsest.store.erasure.selection import Target

SELECTORS = (
    ("conversation", "ID", "a conversation and its sub-agents (x-palimpsest-conversation)"),
    ("turn", "ID", "the new messages of a request and its answer: x-palimpsest-turn, or CONVERSATION/N"),
    ("user", "NAME", "all conversations of a user"),
    ("scope", "NAME", "all conversations of a project"),
    ("tenant", "NAME", "everything of a tenant; with other options, only within it"),
    ("older-than", "AGE", "messages older than this: 90d, 12h, 4w"),
    ("matching", "TEXT", "messages that contain these words, ignoring case"),
)
"""Options that say what is meant: name, placeholder and help. Several of them narrow each other down."""

OWN_FILES = (DATABASE_FILE, f"{DATABASE_FILE}-wal", f"{DATABASE_FILE}-shm")  # nobody may delete them


def add_commands(command: Command) -> None:
    forget = command("forget", _forget, "Delete from the archive, verify that it is gone, and print a receipt.")
    _selectors(forget)
    forget.add_argument("--dry-run", action="store_true", help="only count what would be deleted")
    about = "if anything is left, rewrite the whole file even if it is larger than 256 MB; other writes wait meanwhile"
    forget.add_argument("--vacuum", action="store_true", help=about)
    yes_flag(forget)
    policy_flags(forget)

    retire = command("retire", _retire, "Stop recalling something; unretire undoes it within 30 days.")
    _selectors(retire)
    retire.add_argument("--dry-run", action="store_true", help="only count what would be retired")
    yes_flag(retire)
    policy_flags(retire)

    unretire = command("unretire", _unretire, "Undo a retirement, or list those that can be undone.")
    unretire.add_argument("id", nargs="?", metavar="ID", help="id from the receipt; without one, list them")
    policy_flags(unretire)

    receipt = command("receipt", _receipt, "Verify that a receipt was signed by this installation, and not changed.")
    receipt.add_argument("file", metavar="FILE", help="the receipt as JSON; - is standard input")
    policy_flags(receipt)


def _selectors(parser: argparse.ArgumentParser) -> None:
    for name, metavar, about in SELECTORS:
        parser.add_argument(f"--{name}", metavar=metavar, help=about)
    about = "messages that hold a credential that archive.redact would replace now; --dry-run counts each kind"
    parser.add_argument("--credentials", action="store_true", help=about)


def _target(given: argparse.Namespace) -> Target:
    from palimpsest.memory.erasure.targets import target_of

    named = {name.replace("-", "_"): getattr(given, name.replace("-", "_")) for name, _, _ in SELECTORS}
    meant = {name: value for name, value in named.items() if value is not None}
    if not meant and not given.credentials:
        options = ", ".join(f"--{name}" for name, _, _ in SELECTORS)
        raise PolicyError(f"nothing is selected; name what is meant by {options} or --credentials")
    return target_of(meant | {"credentials": given.credentials}, time.time())


def _forget(given: argparse.Namespace) -> int:
    from palimpsest.console import offline

    target = _target(given)
    out, aside = terminal.console(), terminal.console(is_aside=True)

    async def forget(commands: Commands) -> int:
        preview = await commands.archive.forgetting.preview(target)
        missing = "nothing stored matches"
        if not _holds_something(given, preview, f"{missing}, so nothing was erased"):
            return FAILED
        if given.dry_run:
            return DONE
        if not terminal.is_confirmed(given, "forget", "This cannot be undone. Type yes to erase it: "):
            aside.print("nothing was erased")
            return FAILED
        receipt = await commands.erase(target, given.vacuum)
        if receipt is None:  # somebody else was faster
            aside.print(f"{missing} any more")
            return FAILED
        out.print_json(data=receipt)
        if is_done(receipt):
            return DONE
        aside.print(terminal.safe(f"erased, but {remainder(receipt['check'])}; docs/privacy.md explains the check"))
        return FAILED

    return offline.run(quiet_policy(given), forget)


def remainder(check: Json) -> str:
    """What an erasure left, and what removes it."""
    others = [file for file in check["where"] if file not in OWN_FILES]
    if others:
        return f"some of it is still in {', '.join(others)}: delete what you do not need of these"
    if not check["log_emptied"]:
        return "another program kept reading the database, which keeps old pages: end that, and run palimpsest vacuum"
    return "some of it is still on the disk"


def _retire(given: argparse.Namespace) -> int:
    from palimpsest.console import offline

    target = _target(given)
    out, aside = terminal.console(), terminal.console(is_aside=True)
    question = "It will not be recalled; this can be undone for 30 days. Type yes to retire it: "

    async def retire(commands: Commands) -> int:
        retiring, missing = commands.archive.retiring, "nothing in use matches"
        if not _holds_something(given, await retiring.preview(target), f"{missing}, so nothing was retired"):
            return FAILED
        if given.dry_run:
            return DONE
        if not terminal.is_confirmed(given, "retire", question):
            aside.print("nothing was retired")
            return FAILED
        receipt = await retiring.retire(target)
        if receipt is None:  # somebody else was faster
            aside.print(f"{missing} any more")
            return FAILED
        out.print_json(data=receipt)
        aside.print(f"to undo it: palimpsest unretire {receipt['id']}")
        return DONE

    return offline.run(quiet_policy(given), retire)


def _holds_something(given: argparse.Namespace, preview: Preview | None, missing: str) -> bool:
    """Show what would go; False: nothing would, and the user is told."""
    if preview is None:
        terminal.console(is_aside=True).print(missing)
    else:
        terminal.console(is_aside=not given.dry_run).print(terminal.fields(terminal.erasure_rows(preview.counts)))
    return preview is not None


def _unretire(given: argparse.Namespace) -> int:
    """Undo a retirement; without an id, list those that can be undone."""
    from palimpsest.console import offline

    out, aside = terminal.console(), terminal.console(is_aside=True)

    async def unretire(commands: Commands) -> int:
        retiring = commands.archive.retiring
        if given.id is None:
            listed = await retiring.list_retirements()
            if not listed:
                aside.print("nothing is retired")
            for one in listed:
                whose = f" of {one['tenant']}" if one["tenant"] else ""
                out.print(f"{one['id']}  {one['messages']:,} messages{whose}, until {one['until']}")
            return DONE
        undone = await retiring.undo(given.id)
        if undone is None:
            aside.print(f"no retirement {given.id} can be undone: palimpsest unretire lists those that can")
            return FAILED
        out.print_json(data=undone)
        return DONE

    return offline.run(quiet_policy(given), unretire)


def _receipt(given: argparse.Namespace) -> int:
    from palimpsest.store.operation.secret import FILE_NAME, SECRET_ENV, load_secret

    try:
        text = sys.stdin.buffer.read() if given.file == "-" else Path(given.file).read_bytes()
        receipt = orjson.loads(text)
    except (OSError, orjson.JSONDecodeError) as error:
        raise PolicyError(f"receipt: {given.file} cannot be read as JSON: {error}") from error
    data = policy_of(given).data
    if not os.environ.get(SECRET_ENV) and not (data / FILE_NAME).exists():
        raise PolicyError(f"receipt: {data} holds no secret to verify it with; --data names another folder")
    if isinstance(receipt, dict) and is_genuine(receipt, load_secret(data, os.environ)):
        terminal.console().print(terminal.safe(f"genuine: {receipt.get('what')} {receipt.get('id')}"))
        return DONE
    terminal.console(is_aside=True).print("not genuine: another installation signed it, or it was changed")
    return FAILED
