"""Files that are imported: plain, compressed (gzip, Zstandard), in zip archives and in folders."""

from __future__ import annotations

import gzip
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.frozen import frozen

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
NAMES = (".json", ".jsonl", ".gz", ".zst", ".zip")  # of files in folders that are looked into
IN_ARCHIVES = (".json", ".jsonl")
BUFFER_BYTES = 1 << 20
LEAST_UNPACKED_BYTES = 256 << 20  # of one packed file that are always read: some seconds, and the longest line
MOST_TIMES = 100  # what is packed, beyond: JSON of conversations shrinks to a fifth, blanks to a thousandth
UNREADABLE = (OSError, EOFError, zlib.error, zstd.ZstdError, zipfile.BadZipFile, RuntimeError)
"""What reading a damaged or locked file raises; `RuntimeError`: an archive's member needs a password."""


@frozen
class File:
    """One file, or one member of an archive."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The content, decompressed as it is read."""
        if self.member:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as inner:
                yield _bounded(cast(BufferedIOBase, inner), archive.getinfo(self.member).compress_size)
            return
        packed_bytes = self.path.stat().st_size
        with self.path.open("rb", BUFFER_BYTES) as stream:
            magic = cast(BufferedReader, stream).peek(4)
            if magic.startswith(GZIP):
                with gzip.open(stream) as inner:
                    yield _bounded(inner, packed_bytes)
            elif magic.startswith(ZSTD):
                with zstd.open(stream) as inner:
                    yield _bounded(inner, packed_bytes)
            else:
                yield stream


class _Bounded(RawIOBase):
    """The content of a compressed stream up to a limit; reading on raises `OSError`."""

    def __init__(self, inner: BufferedIOBase, most_bytes: int) -> None:
        self._inner = inner
        self._most_bytes = self._left_bytes = most_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read1(min(len(buffer), self._left_bytes + 1))
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            megabytes = self._most_bytes >> 20
            raise OSError(f"it unpacks to more than {megabytes:,} MB; if that is right, unpack it first")
        buffer[: len(data)] = data
        return len(data)


def _bounded(inner: BufferedIOBase, packed_bytes: int) -> BinaryIO:
    return BufferedReader(_Bounded(inner, max(LEAST_UNPACKED_BYTES, MOST_TIMES * packed_bytes)), BUFFER_BYTES)


def compressed_stream(stream: BinaryIO, name: str) -> BinaryIO:
    """A stream to write to that compresses as the name of the file says; closing it leaves `stream` open."""
    if name.endswith(".gz"):
        return cast(
            BinaryIO, gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0)
        )  # the same bytes each time
    if name.endswith(".zst"):
        return cast(BinaryIO, zstd.open(stream, "wb"))
    return stream


def files_in(paths: Iterable[Path]) -> Iterator[File]:
    """All files below these, folders and archives opened, in the order of their names."""
    for path in paths:
        if not path.exists():
            raise MemoryFault(f"importing {path}: there is no such file")
        listed = (
            sorted(one for one in path.rglob("*") if one.suffix in NAMES and one.is_file()) if path.is_dir() else [path]
        )
        for file in listed:
            yield from _members(file) if _is_zip(file) else [File(file)]


def _is_zip(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(ZIP)) == ZIP
    except OSError as cause:
        raise MemoryFault(f"importing {file}: cannot be read: {cause.strerror}") from cause


def _members(file: Path) -> list[File]:
    """The members of an archive that can be imported."""
    try:
        with zipfile.ZipFile(file) as archive:
            return [File(file, name) for name in sorted(archive.namelist()) if name.endswith(IN_ARCHIVES)]
    except UNREADABLE as cause:
        raise MemoryFault(f"importing {file}: cannot be read: {cause}") from cause
