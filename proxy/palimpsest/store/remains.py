"""
Erased texts on the disk: bytes of the database's files, searched for samples of what was erased.

A search in the database proves nothing: MATCH finds nothing while the words still stand in the index's segments. So
the files themselves are read, the database with its log and whatever else lies beside it.

A process of its own reads them (`python -m palimpsest.store.remains`). POSIX takes all locks on a file from a process
that closes it, by whichever descriptor: one that has the database open would lose SQLite's, and the next process to
open the database would take it for unused and cut off the log's index under everybody else's feet.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from palimpsest.domain.frozen import frozen
from palimpsest.errors import MemoryFault, faults
from palimpsest.store.connection import Ask
from palimpsest.store.holdings import WORDS

SAMPLE_BYTES = 16  # of a text; shorter runs stand everywhere by chance: words, keys of JSON
WORD_BYTES = 8  # of a word in the full-text index, which keeps them one by one; shorter ones are parts of others
SAMPLE_STEP_BYTES = 256  # a page of 4 KB holds some of them wherever a text is cut into pages
MAX_SAMPLES = 200_000  # of one erasure, some 50 MB of text; of more every second, or third, and so on is looked for
CHUNK_BYTES = 4 << 20
LONGEST_BYTES = 1024  # of a sample: identifiers may be longer than a run
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

    @property
    def is_clean(self) -> bool:
        return self.left == 0


def samples(texts: Iterable[str], words: Iterable[str]) -> list[bytes]:
    """
    What to look for, each once: runs of `SAMPLE_BYTES` of each text, and words of at least `WORD_BYTES`.

    Texts that are shorter than one run are not told from what stands everywhere.
    """
    found: dict[bytes, None] = {}
    for text in texts:
        data = text.encode(errors="surrogatepass")
        last = len(data) - SAMPLE_BYTES
        if last >= 0:
            for start in {*range(0, last, SAMPLE_STEP_BYTES), last}:
                found[data[start : start + SAMPLE_BYTES]] = None
    for word in words:
        if WORD_BYTES <= len(data := word.encode(errors="surrogatepass")) <= LONGEST_BYTES:
            found[data] = None
    step = len(found) // MAX_SAMPLES + 1
    return list(found)[::step]


def known_words(ask: Ask, words: Iterable[str]) -> set[str]:
    """Those that what is stored holds too: on the disk they prove nothing."""
    sql = "SELECT DISTINCT term FROM term WHERE term IN (SELECT value FROM json_each(?))"
    return {row[0] for row in ask(sql, (orjson.dumps(list(words)).decode(),))}


def files_of(database: Path) -> list[Path]:
    """The database and what lies beside it under its name or as a log."""
    beside = database.parent.iterdir()
    return sorted(f for f in beside if f.is_file() and (f.name.startswith(database.name) or f.suffix == ".log"))


@frozen
class Searched:
    """Files that were searched, their bytes, and the samples that stand in them, by number."""

    files: int
    bytes: int
    found: tuple[int, ...]


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
            *(sys.executable, "-m", __name__), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        try:
            answer, _ = await process.communicate(asked)
        except asyncio.CancelledError:
            process.kill()
            raise
    if process.returncode:
        raise MemoryFault(f"searching the files of {database}: the process ended with status {process.returncode}")
    told = orjson.loads(answer)
    return Searched(told["files"], told["bytes"], tuple(told["found"]))


def search_files(database: Path, wanted: Sequence[bytes]) -> Searched:
    """The search itself; never in a process that has the database open."""
    files = files_of(database)
    found: set[int] = set()
    finder = _Finder(wanted)
    size = 0
    for file in files:
        for chunk in _chunks(file):
            size += len(chunk)
            found |= finder.found(chunk)
    return Searched(len(files), size, tuple(sorted(found)))


def remains(searched: Searched, wanted: Sequence[bytes], ask: Ask) -> Remains:
    """What a search means: samples that something stored explains prove nothing."""
    explained: set[int] = set()
    if searched.found:
        stored = _Finder([wanted[number] for number in searched.found])
        for chunk in _rows(ask):
            explained |= {searched.found[at] for at in stored.found(chunk)}
    left = len(searched.found) - len(explained)
    return Remains(searched.files, searched.bytes, len(wanted), len(explained), left)


class _Finder:
    """
    Many runs of bytes at once: by a table of hashes of their first 8, then by these, then whole.

    A run that was found is not looked for again.
    """

    def __init__(self, wanted: Sequence[bytes]) -> None:
        self._wanted = wanted
        self._want(range(len(wanted)))

    def _want(self, numbers: Iterable[int]) -> None:
        order = sorted(numbers, key=lambda number: self._wanted[number][:8][::-1])  # as little-endian numbers
        self._numbers = order
        starts = [int.from_bytes(self._wanted[number][:8], "little") for number in order]
        self._starts: Words = np.array(starts, np.uint64)
        self._table = np.zeros(1 << HASH_BITS, np.bool_)
        self._table[_hashes(self._starts)] = True

    def found(self, data: bytes) -> set[int]:
        """Indexes of the runs that stand in these bytes and in none that were searched before."""
        found: set[int] = set()
        if not self._numbers:
            return found
        for shift in range(8):
            if (count := (len(data) - shift) // 8) <= 0:
                break
            words: Words = np.frombuffer(data, "<u8", count, shift)
            likely = np.flatnonzero(self._table[_hashes(words)])
            first = np.searchsorted(self._starts, words[likely])
            last = np.searchsorted(self._starts, words[likely], side="right")
            held = last > first
            for place, low, high in zip(likely[held].tolist(), first[held].tolist(), last[held].tolist(), strict=True):
                for number in self._numbers[low:high]:
                    if number not in found and data.startswith(self._wanted[number], shift + 8 * place):
                        found.add(number)
        if found:
            self._want(set(self._numbers) - found)
        return found


def _hashes(words: Words) -> npt.NDArray[np.int64]:
    mixed: npt.NDArray[np.int64] = ((words * MIXER) >> np.uint64(64 - HASH_BITS)).astype(np.int64)
    return mixed


def _chunks(file: Path) -> Iterator[bytes]:
    """Overlapping, so that no run is cut."""
    kept = b""
    try:
        with file.open("rb") as stream:
            while data := stream.read(CHUNK_BYTES):
                yield kept + data
                kept = data[-LONGEST_BYTES:]
    except FileNotFoundError:  # the log goes when the last connection is closed
        return


def _rows(ask: Ask) -> Iterator[bytes]:
    """Everything that is stored in words now, and the words of the schema."""
    yield "\0".join(row[0] or "" for row in ask("SELECT sql FROM sqlite_master")).encode()
    for table, columns in WORDS.items():
        listed = " || char(0) || ".join(columns)
        key = "rowid" if table not in ("term", "round", "reinforced") else None
        if key is None:
            yield "\0".join(str(row[0]) for row in ask(f"SELECT {listed} FROM {table}")).encode(errors="surrogatepass")
            continue
        last = -1
        while rows := ask(
            f"SELECT {key}, {listed} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {ROWS_AT_A_TIME}", (last,)
        ):
            last = rows[-1][0]
            yield "\0".join(row[1] or "" for row in rows).encode(errors="surrogatepass")


def _main() -> None:
    asked = orjson.loads(sys.stdin.buffer.read())
    found = search_files(Path(asked["database"]), [bytes.fromhex(one) for one in asked["wanted"]])
    sys.stdout.buffer.write(orjson.dumps(asdict(found)))


if __name__ == "__main__":
    _main()
