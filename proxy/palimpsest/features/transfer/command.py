"""`palimpsest export` and `palimpsest import`: conversations to a file, and from files of several programs."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, PROVIDER_KEYS, Command, policy_flags, quiet_policy
from palimpsest.core.caller.credentials import LOCAL
from palimpsest.domain import Reach
from palimpsest.domain.errors import MemoryFault, PolicyError, faults
from palimpsest.settings.policy import Policy

if TYPE_CHECKING:
    from palimpsest.console.offline import Commands
    from palimpsest.features.transfer.importing import AgeCounts, Destination, Totals
    from palimpsest.features.transfer.reading import ReadResult

TENANT = re.compile(rf"(static|key|hmac):.+|{LOCAL}", re.S)
LISTED = 20  # parts that could not be read, on the terminal: the first show what is wrong with the rest
FILE_MODE = 0o600  # other people's conversations


def add_commands(command: Command) -> None:
    export = command("export", _export, "Write conversations to a file of JSON lines: docs/portability.md.")
    _owner_flags(export, "only")
    export.add_argument("--conversation", default="", metavar="ID", help="only this one (x-palimpsest-conversation)")
    export.add_argument(
        "--output", type=Path, metavar="FILE", help="default, and -: standard output; .gz and .zst are compressed"
    )
    policy_flags(export)

    about = "Read conversations from files: our own exports, ChatGPT's and Claude's account exports, "
    imports = command("import", _import, about + "sessions of Claude Code and Codex.")
    imports.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files, zip archives or folders")
    _owner_flags(imports, "store everything under")
    policy_flags(imports)


def _owner_flags(parser: argparse.ArgumentParser, doing: str) -> None:
    parser.add_argument("--user", default="", metavar="NAME", help=f"{doing} this user")
    parser.add_argument("--scope", default="", metavar="NAME", help=f"{doing} this project")
    parser.add_argument("--tenant", default="", metavar="NAME", help=f"{doing} this tenant, such as static:me")


# --- export --------------------------------------------------------------------------------------


def _export(given: argparse.Namespace) -> int:
    from palimpsest.console import offline
    from palimpsest.core.caller.identity import tenant_key
    from palimpsest.features.transfer.lines import export
    from palimpsest.store.turns.transcript import Selection

    output = None if given.output == Path("-") else given.output
    selection = Selection(given.tenant, given.conversation, given.user, given.scope)

    async def write(archive: Commands) -> Counter[bytes]:
        """Write the export, and count its lines by kind."""
        kinds = Counter[bytes]()  # lines, by the name of their first field
        held = b""  # the header, which alone is no export
        with _written_file(output) as (stream, name), faults(OSError, f"writing {name}"):
            async for lines in export(archive.database, selection, lambda tenant: tenant_key(archive.secret(), tenant)):
                kinds.update(line.split(b'"', 2)[1] for line in lines.splitlines())
                held += lines
                if kinds.total() > 1:
                    stream.write(held)
                    held = b""
            stream.flush()
            if kinds.total() == 1:  # the header; raised here: a file of that name that an earlier export wrote stays
                raise MemoryFault(f"exporting from {archive.policy.data}: nothing stored matches")
        return kinds

    kinds = offline.run(quiet_policy(given), write, keeps_to_secret=False)
    aside = terminal.console(is_aside=True)
    facts_text = f" and {kinds[b'fact']:,} added facts" if kinds[b"fact"] else ""
    aside.print(f"{kinds[b'turn']:,} turns{facts_text} exported" + (f" to {output}" if output else ""))
    return DONE


@contextmanager
def _written_file(path: Path | None) -> Iterator[tuple[BinaryIO, str]]:
    """The file that is written, put in place when it is whole; standard output where there is none."""
    if path is None:
        yield sys.stdout.buffer, "standard output"
        return
    from palimpsest.features.transfer.files import compressed_stream

    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with faults(OSError, f"writing {path}"):
        bare = os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")
        try:
            with bare, compressed_stream(bare, path.name) as stream:
                yield stream, str(path)
            part.replace(path)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


# --- import --------------------------------------------------------------------------------------


def _import(given: argparse.Namespace) -> int:
    from palimpsest.console import offline
    from palimpsest.core.archive.retention import is_in_force
    from palimpsest.features.transfer.importing import Importing, count_too_old
    from palimpsest.features.transfer.reading import ReadResult, turns_in

    policy, found = quiet_policy(given), ReadResult()
    aside = terminal.console(is_aside=True)
    started = time.monotonic()

    async def take(archive: Commands) -> tuple[Totals, int, int]:
        """Import the files: totals of turns, counts of facts and of erasures."""
        into = await destination(given, policy, os.environ, archive)
        if is_in_force(policy.retention):
            with aside.status("reading how old it is"):
                turns = turns_in(given.files, ReadResult())
                counts = await asyncio.to_thread(count_too_old, turns, into, policy.retention, time.time())
            if counts.too_old:
                aside.print(_too_old(counts))
        with aside.status("reading") as status:

            def report(totals: Totals) -> None:
                turns = totals.written.turns
                per_second = turns / max(time.monotonic() - started, 1e-3)
                status.update(f"{turns:,} turns imported, {per_second:,.0f}/s; {totals.known:,} were here already")

            importing = Importing(archive.database, archive.secret(), policy.archive.redact)
            totals = await importing.import_turns(turns_in(given.files, found), into, report)
            forgotten = await importing.import_forgotten(found.forgotten, into, time.time())
            facts = await importing.import_facts(found.facts, into) if policy.facts.is_on else 0
            return totals, facts, forgotten

    totals, facts, forgotten = offline.run(policy, take, is_new=True)
    broken = [*found.broken, *totals.broken]
    for line in broken[:LISTED]:
        aside.print(terminal.safe(f"not imported: {line}"))
    if len(broken) > LISTED:
        aside.print(f"not imported: {len(broken) - LISTED:,} more")
    for name in found.unknown[:LISTED] if not found.kinds else ():
        aside.print(terminal.safe(f"{name}: contains no conversations in a known format"))
    summary = _summary(totals, found, (facts, forgotten), len(broken), time.monotonic() - started)
    terminal.console().print(terminal.fields(summary))
    if found.facts and not policy.facts.is_on:
        aside.print(f"{len(found.facts):,} facts were not imported: facts.policy is off")
    if totals.written.turns:
        for hint in _hints(policy, totals):
            aside.print(hint)
    return DONE if found.kinds else FAILED


def _too_old(counts: AgeCounts) -> str:
    return (
        f"{counts.too_old:,} of {counts.messages:,} messages are older than retention keeps them: a running proxy soon "
        "erases them, and importing them again does not bring them back. To keep them, stop this and give their tenant "
        "longer periods in retention.tenants"
    )


def _summary(
    totals: Totals, found: ReadResult, facts: tuple[int, int], broken: int, seconds: float
) -> list[tuple[str, str]]:
    """The rows of an import's summary; `facts` counts those added and those forgotten."""
    written, (added, forgotten) = totals.written, facts
    return [
        ("files", ", ".join(f"{files:,} of {kind}" for kind, files in sorted(found.kinds.items())) or "nothing"),
        ("imported", f"{written.turns:,} turns, {written.messages:,} messages in {seconds:,.1f} s"),
        ("facts", f"{added:,} added facts" if added else ""),
        ("forgotten", f"{forgotten:,} facts, which stay forgotten" if forgotten else ""),
        ("here before", f"{totals.known:,} turns" if totals.known else ""),
        ("erased before", f"{written.erased:,} messages, which were not restored" if written.erased else ""),
        ("withheld", f"{totals.withheld:,} texts with too many possible credentials" if totals.withheld else ""),
        ("not imported", f"{broken:,}" if broken else ""),
    ]


def _hints(policy: Policy, totals: Totals) -> list[str]:
    """What is still to be done, so that what was imported is recalled."""
    hints = ["found by words at once; by meaning once a running proxy, or palimpsest index, has embedded it"]
    reach = policy.memory.reach
    if reach is Reach.CONVERSATION or (reach is Reach.USER and totals.of_nobody):
        hints.append(
            f"with memory.reach {reach.value}, other conversations do not recall it: set it to tenant, as --config "
            "personal does" + (", or import with --user" if reach is Reach.USER else "")
        )
    return hints


async def destination(
    given: argparse.Namespace, policy: Policy, environment: Mapping[str, str], archive: Commands
) -> Destination:
    """
    Whom the imported turns will belong to.

    Without --tenant: with `tenants.static` that tenant, as nobody else is ever asked about there. Else turns of our own
    exports keep theirs, and those of other programs become the tenant of the API key in the environment, as requests
    with that key do, or the only one that is stored.

    Raises:
        PolicyError: --tenant is none.
    """
    from palimpsest.features.transfer.importing import Destination

    static = f"static:{policy.tenants.static}" if policy.tenants.static else ""
    if given.tenant and not TENANT.fullmatch(given.tenant):
        raise PolicyError(
            f"--tenant: {given.tenant} is not a tenant; allowed: static:NAME, key:NAME, hmac:HASH or {LOCAL}"
        )
    tenant = given.tenant or static
    if tenant:
        return Destination(tenant, given.user, given.scope)
    shown = [environment[name].encode() for name in PROVIDER_KEYS if environment.get(name)]
    likely = () if policy.tenants.keys else tuple(filter(None, (archive.tenant_of(key) for key in shown)))
    names: Sequence[str] = [*dict.fromkeys(likely)] or await archive.archive.journal.tenants()
    return Destination("", given.user, given.scope, names[0] if len(names) == 1 else "")
