"""Checks of the data folder: its permissions, the secret, the database, and free space."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from palimpsest.commands.doctor.finding import Finding, failed, ok, refusal, warning
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.settings.policy import Policy
from palimpsest.store.data_dir import FOLDER_MODE, refuse_network_file_system
from palimpsest.store.engine.engines import engine_of
from palimpsest.store.engine.room import store_size
from palimpsest.store.operation.secret import FILE_NAME, SECRET_ENV, is_missing, load_secret
from palimpsest.store.operation.switches import EVERYBODY, switched_off
from palimpsest.store.turns.stats import count
from palimpsest.store.version import VERSION

MEGABYTE = 1_000_000
LOW_BYTES = 500 * MEGABYTE  # some weeks of one person's work
LEAST_BYTES = 50 * MEGABYTE  # the log alone may reach 16 MB before it is moved into the file

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_folder(data: Path, mounts: str | None = None) -> Finding:
    """Whether the proxy can write there and nobody else can read it; `mounts`: see `store/data_dir.py`."""
    check = "data folder"
    try:
        refuse_network_file_system(data, mounts)
    except PolicyError as error:
        return refusal(check, error)
    place = _existing(data)
    if not place.is_dir():
        return failed(check, f"{place} is a file, so {data} cannot be a folder", "choose another --data")
    try:
        TemporaryFile(dir=place).close()
    except OSError as cause:
        reason = (cause.strerror or str(cause)).lower()
        return failed(check, f"cannot write to {place}: {reason}", "change its permissions, or choose another --data")
    if place != data:
        return ok(check, f"{data} does not exist yet; the first start creates it")
    if stat.S_IMODE(data.stat().st_mode) & _OTHERS:
        return warning(check, f"other users can read {data}", f"chmod {FOLDER_MODE:o} {data}")
    return ok(check, str(data))


def check_free_space(data: Path) -> Finding:
    """Whether there is enough free space."""
    place = _existing(data)
    free = shutil.disk_usage(place).free
    found = f"{free / MEGABYTE:,.0f} MB free at {place}"
    if free < LEAST_BYTES:
        return failed("free space", found, "free some space: what cannot be written is not remembered")
    if free < LOW_BYTES:
        return warning("free space", found, "make room soon")
    return ok("free space", found)


def check_secret(data: Path, environment: Mapping[str, str]) -> Finding:
    """Whether the secret is there that keys all stored hashes."""
    file, check = data / FILE_NAME, "secret"
    if not (environment.get(SECRET_ENV) or file.exists() or is_missing(data)):
        return ok(check, "does not exist yet; the first start creates it")
    try:
        load_secret(data, environment)
    except PolicyError as error:
        return refusal(check, error)
    return ok(check, SECRET_ENV if environment.get(SECRET_ENV) else str(file))


async def check_database(policy: Policy, environment: Mapping[str, str]) -> Finding:
    """Whether the database opens, has a known version and fits the secret; and whether memory is on."""
    has_secret = environment.get(SECRET_ENV) or (policy.data / FILE_NAME).exists()
    try:
        database = engine_of(
            *(policy.data, policy.archive.synchronous, policy.store.url, policy.store.password_file),
            secret=partial(load_secret, policy.data, environment) if has_secret else None,
        )
    except PolicyError as error:
        return refusal("store", error)
    if not database.is_there:
        return ok("store", f"{database.place} does not exist yet; the first start creates it")
    files = database.files
    was_open_to_others = files and stat.S_IMODE(files.path.stat().st_mode) & _OTHERS  # opening it changes that
    try:
        await database.open()
        conversations, turns = await database.ask(lambda ask: (count(ask, "conversations"), count(ask, "turns")))
        off = await database.ask(switched_off)
        size = (await database.ask(store_size)).bytes / MEGABYTE
    except (MemoryFault, PolicyError) as error:
        return refusal("store", error)
    finally:
        await database.close()
    if was_open_to_others:
        return warning("store", f"others could read {database.place}", "nothing; the permissions were changed just now")
    if off:
        whose = ", ".join(one.tenant or "everybody" for one in off)
        reasons = "; ".join(one.reason for one in off if one.reason)
        found = f"memory is switched off for {whose}" + (f": {reasons}" if reasons else "")
        return warning("store", found, f"palimpsest enable{'' if off[0].tenant == EVERYBODY else ' --tenant NAME'}")
    where = f"{database.place}, " if files is None else ""
    found = f"{where}version {VERSION}, {conversations:,} conversations, {turns:,} turns, {size:,.1f} MB"
    return ok("store", found)


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.parents, Path()) if os.path.lexists(place))
