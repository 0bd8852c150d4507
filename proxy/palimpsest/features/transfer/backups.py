"""
Backup of a data folder while it is in use, and its restoration.

A restored database holds what was erased since it was copied. So the erasures that the present folder has recorded are
applied to it first, and only then does it take the place of what is there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain.errors import MemoryFault, PolicyError, faults
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Clock
from palimpsest.features.transfer.backup_file import DATABASE, MODE, Manifest, is_archive, print_of, unpack, write
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.store.data_dir import FOLDER_MODE, make_folder
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.sqlite.copying import copy, examined, is_in_use
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.recorded_erasures import Erasures, covered, record, recorded_in
from palimpsest.store.operation.secret import FILE_NAME as SECRET_FILE
from palimpsest.store.operation.secret import SECRET_ENV, load_secret, mark_in

WORKSHOP = ".restore-"
ASIDE = "replaced-"  # beginning of the folder's name that a restoration moves aside what was there


@frozen
class Restored:
    """What a restoration has put in place."""

    manifest: Manifest
    erased: Mapping[str, int]  # rows by store that were erased again
    aside: Path | None  # where what stood there is now


def back_up(
    data: Path,
    target: Path,
    environment: Mapping[str, str],
    clock: Clock,
    report: Callable[[float], None] = lambda share: None,
    with_secret: bool = True,
) -> Manifest:
    """
    Write a backup of a data folder that may be in use, and examine it.

    Args:
        target: a file that does not exist.
        environment: may hold the secret; then it is not in the backup.

    Raises:
        MemoryFault: something cannot be read or written, or the copy is damaged.
        PolicyError: the secret cannot be read.
    """
    database = data / DATABASE
    if not database.exists():
        raise MemoryFault(f"backing up {database}: it does not exist yet; --data names another folder")
    if target.exists():
        raise MemoryFault(f"writing {target}: it exists already; choose another name")
    if not target.parent.is_dir():
        raise MemoryFault(f"writing {target}: there is no folder {target.parent}; make it, or choose another name")
    secret = load_secret(data, environment)
    holds_secret = with_secret and not environment.get(SECRET_ENV)
    part, made_at = target.with_name(f"{target.name}.{os.getpid()}.part"), clock()
    own = part.with_suffix(".db")
    try:
        with faults(OSError, f"writing {target}"):
            own.touch(MODE)
            copy(database, own, report)
            schema, counts = examined(own)
            manifest = Manifest(schema, made_at, counts, holds_secret, print_of(secret))
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as stream:
                write(stream, target.name, manifest, own, secret if holds_secret else None)
                stream.flush()
                os.fsync(stream.fileno())
            part.rename(target)
    finally:
        for file in (part, own, own.with_name(f"{own.name}-journal")):
            file.unlink(missing_ok=True)
    return manifest


async def restore(
    source: Path,
    data: Path,
    environment: Mapping[str, str],
    clock: Clock,
    *,
    is_forced: bool = False,
    erasures_of: Sequence[Path] = (),
    ignores_erasures: bool = False,
) -> Restored:
    """
    Put a backup in place, without what was erased since it was made.

    Args:
        is_forced: what stands there is moved aside.
        erasures_of: databases or backups whose erasures are applied, beside those of the present folder.
        ignores_erasures: those of the present folder are not.

    Raises:
        MemoryFault: it is in use, not empty, or something cannot be read; nothing has changed then.
        PolicyError: the secret of the environment is not the backup's.
    """
    present = data / DATABASE
    is_there = present.exists()
    if is_there and not is_forced:
        raise MemoryFault(f"restoring to {data}: it contains a database; --force moves it aside")
    if is_there and _is_in_use(present):
        raise MemoryFault(f"restoring to {data}: a process is using the database; stop it first")
    with faults(OSError, f"restoring to {data}"), _staging_folder(data) as folder:
        manifest, stored = await asyncio.to_thread(unpack, source, folder)
        secret = _secret(source, manifest, stored, environment)
        await asyncio.to_thread(examined, folder / DATABASE)
        erasures = Erasures()
        for number, other in enumerate(erasures_of):
            erasures += await asyncio.to_thread(_recorded_erasures, other, folder / f"{number}", manifest)
        if is_there and not ignores_erasures:
            erasures += _present_erasures(data, secret, environment)
        erased = await _apply_erasures(folder / DATABASE, erasures, secret, clock)
        await asyncio.to_thread(examined, folder / DATABASE)
        if stored is not None:
            descriptor = os.open(folder / SECRET_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(stored)
        aside = _move_aside(data, clock) if is_there or (stored and (data / SECRET_FILE).exists()) else None
        for name in (SECRET_FILE, DATABASE):  # the database last: without its secret it is worth nothing
            if (folder / name).exists():
                (folder / name).rename(data / name)
    return Restored(manifest, erased, aside)


def _is_in_use(database: Path) -> bool:
    try:
        return is_in_use(database)
    except MemoryFault:  # it is damaged: who uses it fails as well
        return False


@contextmanager
def _staging_folder(data: Path) -> Iterator[Path]:
    """A temporary folder in which the database is put together, beside where it will stand."""
    make_folder(data)
    for left in data.glob(f"{WORKSHOP}*"):  # by a restoration that was killed: it holds what may have been erased
        shutil.rmtree(left, ignore_errors=True)
    folder = data / f"{WORKSHOP}{os.getpid()}"
    folder.mkdir(mode=FOLDER_MODE)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _secret(source: Path, manifest: Manifest, stored: bytes | None, environment: Mapping[str, str]) -> bytes:
    """The secret of a backup, of the environment or the file; raises PolicyError where it is not that one."""
    given = environment.get(SECRET_ENV, "").encode()
    secret = given or (stored or b"").strip()
    if not secret:
        raise PolicyError(f"{SECRET_ENV}: is not set, and {source} holds no secret: its data could not be found")
    if print_of(secret) != manifest.secret_print:
        raise PolicyError(f"{SECRET_ENV}: is not the secret of {source}: its data could not be found")
    return secret


def _recorded_erasures(other: Path, folder: Path, manifest: Manifest) -> Erasures:
    """The erasures that a file or another backup of the same secret records."""
    if not other.exists():
        raise MemoryFault(f"reading the erasures of {other}: there is no such file")
    if not is_archive(other):
        return recorded_in(other)
    folder.mkdir(mode=FOLDER_MODE)
    theirs, _ = unpack(other, folder)
    erasures = recorded_in(folder / DATABASE)
    if erasures and theirs.secret_print != manifest.secret_print:
        raise MemoryFault(
            f"reading the erasures of {other}: they were made with another secret, and match nothing here"
        )
    return erasures


def _present_erasures(data: Path, secret: bytes, environment: Mapping[str, str]) -> Erasures:
    """The erasures recorded in the folder that is to be replaced; `secret` is the backup's."""
    advice = "--ignore-erasures restores without them, and with it what was erased"
    try:
        erasures = recorded_in(data / DATABASE)
    except MemoryFault as fault:
        raise MemoryFault(f"{fault}; {advice}") from fault
    if not erasures:
        return erasures
    # the mark of the database goes before its file `secret`, which may be lost
    mark, own = mark_in(data / DATABASE), SecretMark(lambda: secret).digest
    if mark != own if mark else load_secret(data, environment) != secret:
        raise MemoryFault(
            f"reading the erasures of {data}: they were made with another secret than the backup's, and match nothing "
            f"in it; {advice}"
        )
    return erasures


async def _apply_erasures(path: Path, erasures: Erasures, secret: bytes, clock: Clock) -> Mapping[str, int]:
    """Erase from a database what was erased elsewhere; rows by store."""
    database = Database(path)
    try:
        await database.open()
        if not erasures:
            return {}
        await database.transact(partial(record, erasures=erasures, at=clock()))
        plans = await database.ask(partial(covered, erasures=erasures, key_of=partial(tenant_key, secret)))
        erased = await Forgetting(database, secret, clock).erase_again(plans)
        if not await database.truncate_log():
            raise MemoryFault(f"restoring {path}: its log cannot be emptied")
        return erased
    finally:
        await database.close()


def _move_aside(data: Path, clock: Clock) -> Path:
    """Move the database and the secret into a new folder, and return it."""
    aside = data / (ASIDE + datetime.fromtimestamp(clock(), UTC).strftime("%Y%m%dT%H%M%SZ"))
    aside.mkdir(mode=FOLDER_MODE)
    for name in (f"{DATABASE}-wal", f"{DATABASE}-shm", DATABASE, SECRET_FILE):
        if (data / name).exists():
            (data / name).rename(aside / name)
    return aside
