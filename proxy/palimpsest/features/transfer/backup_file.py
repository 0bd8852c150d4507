"""
The file of a backup: a tar archive with the database, the secret that it needs, and what both are.

Compressed where its name ends in `.gz` or `.zst`. Whoever can read it can read everything that was said.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen
from palimpsest.domain.portable_turn import MAX_SECONDS
from palimpsest.features.transfer.files import UNREADABLE, File, compressed_stream

VERSION = 1
MANIFEST, SECRET, DATABASE = "backup.json", "secret", "palimpsest.db"
MODE = 0o600
COPY_BYTES = 1 << 20


@frozen
class Manifest:
    """What a backup holds. `secret_print` tells whether a secret is the right one, and nothing else of it."""

    schema: int  # version of the database
    made_at: float  # Unix seconds
    counts: Mapping[str, int]
    has_secret: bool
    secret_print: str
    version: int = VERSION
    palimpsest: str = "backup"


def print_of(secret: bytes) -> str:
    return hashlib.blake2b(b"backup", key=secret[:64], digest_size=8).hexdigest()


def write(stream: BinaryIO, name: str, manifest: Manifest, database: Path, secret: bytes | None) -> None:
    """Write a backup, compressed as the name of the file says."""
    with ExitStack() as opened:
        inner = compressed_stream(stream, name)
        if inner is not stream:
            opened.enter_context(inner)
        archive = opened.enter_context(tarfile.open(fileobj=inner, mode="w|", format=tarfile.PAX_FORMAT))
        _add(archive, MANIFEST, orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2), manifest.made_at)
        if secret is not None:
            _add(archive, SECRET, secret, manifest.made_at)
        with database.open("rb") as content:
            archive.addfile(_member(DATABASE, database.stat().st_size, manifest.made_at), content)


def unpack(path: Path, folder: Path) -> tuple[Manifest, bytes | None]:
    """Take a backup apart: its database becomes a file of `folder`. Returns its manifest, and the secret in it."""
    manifest: Manifest | None = None
    secret: bytes | None = None
    has_database = False
    if not path.exists():
        raise MemoryFault(f"reading {path}: there is no such file")
    try:
        with File(path).open() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is None:
                    continue
                if member.name == MANIFEST:
                    manifest = _manifest(path, orjson.loads(content.read()))
                elif member.name == SECRET:
                    secret = content.read()
                elif member.name == DATABASE:
                    with (folder / DATABASE).open("wb") as target:
                        (folder / DATABASE).chmod(MODE)
                        shutil.copyfileobj(content, target, COPY_BYTES)
                    has_database = True
    except (*UNREADABLE, tarfile.TarError, orjson.JSONDecodeError, TypeError) as cause:
        raise MemoryFault(f"reading {path}: it is not a backup, or damaged: {cause}") from cause
    if manifest is None or not has_database:
        raise MemoryFault(f"reading {path}: it is not a backup: it has no {MANIFEST if manifest is None else DATABASE}")
    return manifest, secret


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive, rather than a database."""
    with File(path).open() as stream:
        return stream.read(16) != b"SQLite format 3\0"


def _manifest(path: Path, value: Any) -> Manifest:
    """A manifest as it was read; raises MemoryFault where it is none, or of a newer version."""
    if not isinstance(value, dict) or value.get("palimpsest") != "backup":
        raise MemoryFault(f"reading {path}: it is not a backup")
    if type(value.get("version")) is not int or value["version"] > VERSION:
        raise MemoryFault(f"reading {path}: a newer palimpsest made this backup: install that one")
    manifest = Manifest(**value)
    is_dated = type(manifest.made_at) in (int, float) and 0 <= manifest.made_at < MAX_SECONDS
    counts = manifest.counts.values() if isinstance(manifest.counts, dict) else [None]
    if not is_dated or any(type(count) is not int for count in counts):
        raise MemoryFault(f"reading {path}: it is not a backup, or damaged: {MANIFEST} lacks a date or counts")
    return manifest


def _add(archive: tarfile.TarFile, name: str, content: bytes, at: float) -> None:
    archive.addfile(_member(name, len(content), at), io.BytesIO(content))


def _member(name: str, size: int, at: float) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, int(at), MODE
    return member
