"""
Erased texts on the disk: bytes of the database's files, searched for samples of what was erased.

A search in the database proves nothing: MATCH finds nothing while the words still stand in the index's segments. So
the files themselves are read, the database with its log and whatever else lies in its folder.

A process of its own reads them (`python -m palimpsest.store.engine.sqlite.remains`). POSIX takes all locks on a file
from a process that closes it, by whichever descriptor: one that has the database open would lose SQLite's, and the next
process to open the database would take it for unused and cut off the log's index under everybody else's feet.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask

SAMPLE_BYTES = 16  # of a text; shorter runs stand everywhere by chance: words, keys of JSON
WORD_BYTES = 8  # of a word's end in the full-text index, which leaves out what it begins with like the word before
LEAST_STEP_BYTES = 8  # between two samples of a text: what SQLite leaves in a page may be a few words of it
MAX_SAMPLES = 200_000  # of one erasure, some 1.6 MB of text; of more text they stand further apart
CHUNK_BYTES = 4 << 20
OVERLAP_BYTES = max(SAMPLE_BYTES, WORD_BYTES)  # of two chunks of a file, so that no sample is cut
ROWS_AT_A_TIME = 2_000
HASH_BITS = 24  # of the table that most places of a file are dismissed by
MIXER = np.uint64(0x9E3779B97F4A7C15)

Words = npt.NDArray[np.uint64]


@frozen
class Remains:
    """What a look at the disk found. `left` counts samples that nothing stored explains: 0 is the proof."""

    files: int
    bytes: int
    samples: int
    said_elsewhere: int  # samples that messages hold which were not erased
    left: int
    where: tuple[str, ...]  # the files that hold what is left, by their paths in the data folder

    @property
    def is_clean(self) -> bool:
        return self.left == 0


def samples(texts: Iterable[str], words: Iterable[str]) -> list[bytes]:
    """
    The bytes to search for, each once: runs of `SAMPLE_BYTES` of each text, and ends of longer words.

    Texts that are shorter than one run are not told from what stands everywhere.
    """
    found: dict[bytes, None] = {}
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    step = max(LEAST_STEP_BYTES, sum(map(len, encoded)) // MAX_SAMPLES)
    for data in encoded:
        last = len(data) - SAMPLE_BYTES
        if last >= 0:
            for start in {*range(0, last, step), last}:
                found[data[start : start + SAMPLE_BYTES]] = None
    for word in words:
        if len(data := word.encode(errors="surrogatepass")) >= WORD_BYTES:
            found[data[-WORD_BYTES:]] = None
    return list(found)


def known_words(ask: Ask, words: Iterable[str]) -> set[str]:
    """Those words that what is stored holds, too: on the disk they prove nothing."""
    sql = "SELECT DISTINCT term FROM term WHERE term IN (SELECT value FROM texts(?))"
    return {row[0] for row in ask(sql, (orjson.dumps(list(words)).decode(),))}


def files_of(database: Path) -> list[Path]:
    """Every file in the folder of the database: it, its log, and whatever else lies there."""

    def refuse(cause: OSError) -> None:
        if not isinstance(cause, FileNotFoundError):  # what went away meanwhile holds nothing
            raise cause

    listed = os.walk(database.parent, onerror=refuse)
    files = (Path(parent, name) for parent, _, names in listed for name in names)
    return sorted(file for file in files if file.is_file() and not file.is_symlink())


@frozen
class Searched:
    """Files that were searched, their bytes, the samples that stand in them, by number, and which each file holds."""

    files: int
    bytes: int
    found: tuple[int, ...]
    where: Mapping[str, Sequence[int]]


async def search(database: Path, wanted: Sequence[bytes]) -> Searched:
    """
    Search the files of a database, in a process of its own.

    Args:
        wanted: of `samples`.

    Raises:
        MemoryFault: it did not come to an end.
    """
    asked = orjson.dumps({"database": str(database), "wanted": [one.hex() for one in wanted]})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    with faults(OSError, f"searching the files of {database}"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment
        )
        try:
            answer, complaint = await process.communicate(asked)
        except asyncio.CancelledError:
            process.kill()
            raise
    if process.returncode:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise MemoryFault(f"searching the files of {database}: the process ended with {process.returncode}: {last}")
    told = orjson.loads(answer)
    return Searched(told["files"], told["bytes"], tuple(told["found"]), told["where"])


def search_files(database: Path, wanted: Sequence[bytes]) -> Searched:
    """Search the files in this process, which must not have the database open."""
    files = files_of(database)
    found: set[int] = set()
    where: dict[str, list[int]] = {}
    size = 0
    for file in files:
        finder, here = _Finder(wanted), set[int]()
        for chunk in _chunks(file):
            size += len(chunk)
            here |= finder.found(chunk)
        found |= here
        if here:
            where[str(file.relative_to(database.parent))] = sorted(here)
    return Searched(len(files), size, tuple(sorted(found)), where)


def unexplained(
    searched: Searched, wanted: Sequence[bytes], columns: Mapping[str, Sequence[str]], ask: Ask
) -> list[bytes]:
    """
    The samples that were found and that nothing stored explains.

    Args:
        columns: by table, those that hold words.
    """
    if not searched.found:
        return []
    explained: set[int] = set()
    forms = [(form, number) for number in searched.found for form in _stored_forms(wanted[number])]
    stored = _Finder([form for form, _ in forms])
    for chunk in _rows(ask, columns):
        explained |= {forms[at][1] for at in stored.found(b"\0" + chunk + b"\0")}
    return [wanted[number] for number in searched.found if number not in explained]


def _stored_forms(run: bytes) -> list[bytes]:
    """
    A run as it may stand among stored texts, which zeros part: inside of one, at the beginning, at the end.

    In the file another column lies beside a text: of 256 digests one ends in a space, and " Crates" is found there
    though only "Crates" is stored. A letter or a digit may be what was erased, and a short run is too little to go by.
    """
    if len(run) < SAMPLE_BYTES:
        return [run]
    edges = (run[:1], b"\0" + run[1:]), (run[-1:], run[:-1] + b"\0")
    return [run, *(form for edge, form in edges if edge.isascii() and not edge.isalnum())]


class _Finder:
    """
    Many runs of bytes at once; a run that was found is not looked for again.

    Args:
        wanted: of `WORD_BYTES` at least.
    """

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
        """
        Args:
            is_long: they have 16 bytes: the first 8 alone stand in any text with the same words.
        """
        self._wanted = wanted
        self._is_long = is_long
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


def _rows(ask: Ask, words: Mapping[str, Sequence[str]]) -> Iterator[bytes]:
    """All texts that are stored now, and the words of the schema."""
    yield "\0".join(row[0] or "" for row in ask("SELECT sql FROM sqlite_master")).encode()
    for table, columns in words.items():
        listed = " || char(0) || ".join(columns)
        if table in ("term", "model_note"):  # they have no rowid
            yield "\0".join(str(row[0]) for row in ask(f"SELECT {listed} FROM {table}")).encode(errors="surrogatepass")
            continue
        last = -1
        page = f"SELECT rowid, {listed} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT {ROWS_AT_A_TIME}"
        while rows := ask(page, (last,)):
            last = rows[-1][0]
            yield "\0".join(row[1] or "" for row in rows).encode(errors="surrogatepass")


def _main() -> None:
    asked = orjson.loads(sys.stdin.buffer.read())
    found = search_files(Path(asked["database"]), [bytes.fromhex(one) for one in asked["wanted"]])
    sys.stdout.buffer.write(orjson.dumps(asdict(found)))


if __name__ == "__main__":
    _main()
