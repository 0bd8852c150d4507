"""
Runs of bytes, searched for in the files of a database by a process of its own (`python -m` and this module's name).

POSIX takes all locks on a file from a process that closes it, by whichever descriptor: one that has the database open
would lose SQLite's, and the next process to open the database would take it for unused and cut off the log's index
under everybody else's feet.

Imports nothing that a search does not need: a process starts for each, some for one erasure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

SAMPLE_BYTES = 16  # of a text; shorter runs stand everywhere by chance: words, keys of JSON
WORD_BYTES = 8  # of a word's end in the full-text index, which leaves out what it begins with like the word before
CHUNK_BYTES = 4 << 20
OVERLAP_BYTES = max(SAMPLE_BYTES, WORD_BYTES)  # of two chunks of a file, so that no sample is cut
HASH_BITS = 24  # of the table that most places of a file are dismissed by
MIXER = np.uint64(0x9E3779B97F4A7C15)

Words = npt.NDArray[np.uint64]


def files_of(database: Path) -> list[Path]:
    """Every file in the folder of the database: it, its log, and whatever else lies there."""

    def refuse(cause: OSError) -> None:
        if not isinstance(cause, FileNotFoundError):  # what went away meanwhile holds nothing
            raise cause

    listed = os.walk(database.parent, onerror=refuse)
    files = (Path(parent, name) for parent, _, names in listed for name in names)
    return sorted(file for file in files if file.is_file() and not file.is_symlink())


class Searched(NamedTuple):
    """Files that were searched, their bytes, the samples that stand in them, by number, and which each file holds."""

    files: int
    bytes: int
    found: tuple[int, ...]
    where: Mapping[str, Sequence[int]]


def search_files(database: Path, wanted: Sequence[bytes]) -> Searched:
    """Search the files in this process, which must not have the database open."""
    files = files_of(database)
    found: set[int] = set()
    where: dict[str, list[int]] = {}
    size = 0
    for file in files:
        finder, here = Finder(wanted), set[int]()
        for chunk in _chunks(file):
            size += len(chunk)
            here |= finder.found(chunk)
        found |= here
        if here:
            where[str(file.relative_to(database.parent))] = sorted(here)
    return Searched(len(files), size, tuple(sorted(found)), where)


class Finder:
    """Many runs of bytes at once; a run that was found is not looked for again. `wanted`: of `WORD_BYTES` at least."""

    def __init__(self, wanted: Sequence[bytes]) -> None:
        is_long = [len(run) >= SAMPLE_BYTES for run in wanted]
        numbers = range(len(wanted))
        self._parts = [_Runs(wanted, [n for n in numbers if is_long[n] is long], long) for long in (True, False)]

    def found(self, data: bytes) -> set[int]:
        """Indexes of the runs that stand in these bytes and in none that were searched before."""
        return {number for part in self._parts for number in part.found(data)}


class _Runs:
    """Runs by a table of hashes of their first 8 or 16 bytes, then by these, then whole."""

    def __init__(self, wanted: Sequence[bytes], numbers: Sequence[int], is_long: bool) -> None:
        self._wanted = wanted
        self._is_long = is_long  # they have 16 bytes: the first 8 alone stand in any text with the same words
        self._want(numbers)

    def _want(self, numbers: Iterable[int]) -> None:
        listed = list(numbers)
        size = SAMPLE_BYTES if self._is_long else WORD_BYTES
        starts = self._keys(np.frombuffer(b"".join(self._wanted[number][:size] for number in listed), "<u8"))
        starts = starts[:: size // 8]  # of two words that follow each other, every second pair is one run
        order = np.argsort(starts, kind="stable")
        self._numbers = [listed[at] for at in order.tolist()]
        self._starts: Words = starts[order]
        self._table = np.zeros(1 << HASH_BITS, np.bool_)
        self._table[_hashes(self._starts)] = True

    def found(self, data: bytes) -> set[int]:
        found: set[int] = set()
        if not self._numbers:
            return found
        for shift in range(8):
            if (count := (len(data) - shift) // 8) <= 0:
                break
            keys = self._keys(np.frombuffer(data, "<u8", count, shift))
            likely = np.flatnonzero(self._table[_hashes(keys)])
            first = np.searchsorted(self._starts, keys[likely])
            last = np.searchsorted(self._starts, keys[likely], side="right")
            held = last > first
            for place, low, high in zip(likely[held].tolist(), first[held].tolist(), last[held].tolist(), strict=True):
                for number in self._numbers[low:high]:
                    if number not in found and data.startswith(self._wanted[number], shift + 8 * place):
                        found.add(number)
        if found:
            self._want(set(self._numbers) - found)
        return found

    def _keys(self, words: Words) -> Words:
        """One number for each offset, of the 8 bytes there, or of two times 8."""
        if not self._is_long:
            return words
        keys: Words = words[:-1] * MIXER + words[1:]
        return keys


def _hashes(words: Words) -> npt.NDArray[np.int64]:
    mixed: npt.NDArray[np.int64] = ((words * MIXER) >> np.uint64(64 - HASH_BITS)).astype(np.int64)
    return mixed


def _chunks(file: Path) -> Iterator[bytes]:
    """The bytes of a file in overlapping chunks, so that no run is cut."""
    kept = b""
    try:
        with file.open("rb") as stream:
            while data := stream.read(CHUNK_BYTES):
                yield kept + data
                kept = (kept + data)[-OVERLAP_BYTES:]
    except FileNotFoundError:  # the log goes when the last connection is closed
        return


def _main() -> None:
    asked = orjson.loads(sys.stdin.buffer.read())
    found = search_files(Path(asked["database"]), [bytes.fromhex(one) for one in asked["wanted"]])
    sys.stdout.buffer.write(orjson.dumps(found._asdict()))


if __name__ == "__main__":
    _main()
