"""
The secret of an installation, which keys its hashes: one for all workers and all restarts, and nobody else's to read.

Tenants and fingerprints are hashes under it: with another secret, what is stored is never found again.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from palimpsest.domain.errors import PolicyError
from palimpsest.store.data_dir import DATABASE_FILE, make_folder

SECRET_ENV = "PALIMPSEST_SECRET"
FILE_NAME = "secret"
SECRET_BYTES = 32  # as long as the blocks of the hashes that it keys
SHORTEST_CHARS = 16  # of one that somebody made up: below, hashes of short texts can be searched

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def load_secret(data: Path, environment: Mapping[str, str]) -> bytes:
    """
    The secret of the installation whose data folder is `data`; made at the first call.

    Args:
        data: an existing folder.
        environment: `PALIMPSEST_SECRET`, at least 16 characters, goes before the file.

    Raises:
        PolicyError: it is too short, or others could read the file, or the file cannot be used; or it is missing beside
            a database, which was written with it.
    """
    given = environment.get(SECRET_ENV)
    if given:
        if len(given) < SHORTEST_CHARS:
            raise PolicyError(f"{SECRET_ENV}: is too short; allowed: at least {SHORTEST_CHARS} characters")
        return given.encode()
    file = data / FILE_NAME
    try:
        had_another = is_missing(data)
        if not file.exists():
            if had_another:
                raise PolicyError(
                    f"{file}: is missing, and with a new one nothing in {DATABASE_FILE} could be found; restore it "
                    f"from a backup, or set {SECRET_ENV}; where it is lost for good: palimpsest export, move "
                    f"{DATABASE_FILE}* away, palimpsest import"
                )
            _make(file, secrets.token_hex(SECRET_BYTES).encode())
        return _read(file)
    except OSError as cause:
        raise PolicyError(f"{file}: cannot be used: {cause.strerror}; or set {SECRET_ENV}") from cause


def is_missing(data: Path) -> bool:
    """Whether the file is not there, and the database beside it was written with what it held."""
    if (data / FILE_NAME).exists() or not (data / DATABASE_FILE).exists():
        return False
    return mark_in(data / DATABASE_FILE) is not None


def mark_in(database: Path) -> bytes | None:
    """The mark of the secret (`SecretMark`) in a database that exists; None: it has none."""
    try:
        with closing(sqlite3.connect(database)) as opened:
            return next((row[0] for row in opened.execute("SELECT digest FROM secret_mark")), None)
    except sqlite3.Error:  # it is being made, or is none: who opens it says so
        return None


def keep_secret(data: Path, secret: bytes) -> None:
    """Put this secret into a folder, which is made if need be, unless one is there. Raises `PolicyError`: it cannot."""
    make_folder(data)
    file = data / FILE_NAME
    try:
        if not file.exists():
            _make(file, secret)
    except OSError as cause:
        raise PolicyError(f"{file}: cannot be written: {cause.strerror}") from cause


def _make(file: Path, secret: bytes) -> None:
    """Put a whole secret there, or leave what another worker put there first."""
    own = file.with_name(f"{FILE_NAME}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secret)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(own, file)  # fails where the file exists: all readers see one secret, and never half of it
    except FileExistsError:
        return
    finally:
        own.unlink()


def _read(file: Path) -> bytes:
    if stat.S_IMODE(file.stat().st_mode) & _OTHERS:
        raise PolicyError(f"{file}: other users can read it, and could forge tenants with it: chmod 600 {file}")
    secret = file.read_bytes().strip()
    if len(secret) < SHORTEST_CHARS:
        raise PolicyError(f"{file}: is empty: restore it from a backup; without it stored data cannot be found")
    return secret
