"""Files that are imported, however they are packed."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.features.transfer.files import LEAST_UNPACKED_BYTES, UNREADABLE, File, compressed_stream, files_in


def read(path: Path) -> dict[str, bytes]:
    found = {}
    for file in files_in([path]):
        with file.open() as stream:
            found[file.name.removeprefix(str(path))] = stream.read()
    return found


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.jsonl.zst"])
def test_what_is_packed_by_its_name_is_read_by_its_content(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as bare, compressed_stream(bare, name) as stream:
        stream.write(b"bees " * 1000)
    assert name.endswith("jsonl") == ((tmp_path / name).stat().st_size == 5000)
    (tmp_path / name).rename(tmp_path / "y.gz")
    assert read(tmp_path / "y.gz") == {"": b"bees " * 1000}


def test_the_same_content_is_packed_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz", "a.zst", "b.zst"):
        with (tmp_path / name).open("wb") as bare, compressed_stream(bare, name) as stream:
            stream.write(b"bees")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.zst").read_bytes() == (tmp_path / "b.zst").read_bytes()


@pytest.mark.parametrize("name", ["x.zip", "x.gz", "x.zst"])
def test_a_small_file_that_would_unpack_to_gigabytes_is_not_read_to_its_end(tmp_path: Path, name: str) -> None:
    blanks = b" " * LEAST_UNPACKED_BYTES
    if name == "x.zip":
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("x.json", blanks)
            archive.writestr("y.json", blanks + b" ")
    else:
        with (tmp_path / name).open("wb") as bare, compressed_stream(bare, name) as stream:
            stream.write(blanks + b" ")
    *small, large = files_in([tmp_path / name])
    assert [count_bytes(file) for file in small] == [LEAST_UNPACKED_BYTES] * len(small)
    with pytest.raises(OSError, match=r"it unpacks to more than 256 MB; if that is right, unpack it"):
        count_bytes(large)


def count_bytes(file: File) -> int:
    with file.open() as stream:
        return sum(map(len, iter(lambda: stream.read(1 << 20), b"")))


def test_folders_and_archives_are_looked_into(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "s.jsonl").write_bytes(b"1")
    (tmp_path / "deep" / "note.txt").write_bytes(b"2")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("in/conversations.json", b"[]")
        archive.writestr("chat.html", b"<html>")
    assert read(tmp_path) == {"/deep/s.jsonl": b"1", "/export.zip:in/conversations.json": b"[]"}


def test_what_is_no_file_in_a_folder_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    (tmp_path / "a.json" / "s.jsonl").write_bytes(b"1")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.json")  # nobody writes to it, so who opened it would wait for good
    assert [file.path.name for file in files_in([tmp_path])] == ["s.jsonl"]


def test_what_is_not_there_or_damaged_is_said(tmp_path: Path) -> None:
    with pytest.raises(MemoryFault, match="there is no such file"):
        list(files_in([tmp_path / "gone"]))
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(MemoryFault, match="cannot be read"):
        list(files_in([tmp_path / "bad.zip"]))
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(UNREADABLE):
        read(tmp_path / "cut.gz")
