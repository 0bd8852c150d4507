"""The file of a backup."""

from __future__ import annotations

import io
import tarfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.features.transfer.backup_file import DATABASE, MANIFEST, Manifest, is_archive, print_of, unpack, write

MADE = Manifest(4, 1_700_000_000.0, {"turn": 3}, True, print_of(b"secret"))


def written(folder: Path, name: str = "b.tar", secret: bytes | None = b"secret") -> Path:
    (folder / "source.db").write_bytes(b"SQLite format 3\0 and pages")
    with (folder / name).open("wb") as stream:
        write(stream, name, MADE, folder / "source.db", secret)
    return folder / name


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tar.zst"])
@pytest.mark.parametrize("secret", [b"secret", None])
def test_what_is_written_is_unpacked(tmp_path: Path, name: str, secret: bytes | None) -> None:
    file = written(tmp_path, name, secret)
    assert unpack(file, tmp_path) == (MADE, secret)
    assert (tmp_path / DATABASE).read_bytes() == (tmp_path / "source.db").read_bytes()
    assert (tmp_path / DATABASE).stat().st_mode & 0o777 == 0o600
    assert is_archive(file) and not is_archive(tmp_path / "source.db")


def test_a_secret_is_known_by_a_print_that_does_not_tell_it() -> None:
    assert print_of(b"one") != print_of(b"other") and "one" not in print_of(b"one")


def manifest(**other: Any) -> bytes:
    return orjson.dumps(asdict(MADE) | other)


def archive(folder: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(folder / "x.tar", "w") as made:
        made.addfile(tarfile.TarInfo("folder/"))
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return folder / "x.tar"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "has no backup.json"),
        ({MANIFEST: b"{"}, "not a backup, or damaged"),
        ({MANIFEST: b"[]"}, "it is not a backup"),
        ({MANIFEST: b'{"palimpsest":"backup","version":1}'}, "not a backup, or damaged"),
        ({MANIFEST: b'{"palimpsest":"backup","version":2}'}, "a newer palimpsest made this backup"),
        ({MANIFEST: manifest(made_at="today")}, "lacks a date or counts"),
        ({MANIFEST: manifest(made_at=1e300)}, "lacks a date or counts"),
        ({MANIFEST: manifest(counts=[1])}, "lacks a date or counts"),
        ({MANIFEST: manifest(counts={"turn": "3"})}, "lacks a date or counts"),
        ({"../../etc/passwd": b"x"}, "has no backup.json"),
    ],
)
def test_what_is_no_backup_is_refused(tmp_path: Path, members: dict[str, bytes], words: str) -> None:
    with pytest.raises(MemoryFault, match=words):
        unpack(archive(tmp_path, members), tmp_path)


def test_a_backup_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(MemoryFault, match="there is no such file"):
        unpack(tmp_path / "none.tar", tmp_path)


def test_a_backup_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "b.tar.gz")
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(MemoryFault, match="damaged"):
        unpack(file, tmp_path)
    file.write_bytes(b"no archive at all, but some words that are long enough for one" * 20)
    with pytest.raises(MemoryFault, match="damaged"):
        unpack(file, tmp_path)
