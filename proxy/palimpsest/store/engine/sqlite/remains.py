"""
Erased texts on the disk: bytes of the database's files, searched for samples of what was erased.

A search in the database proves nothing: MATCH finds nothing while the words still stand in the index's segments. So
the files themselves are read, the database with its log and whatever else lies in its folder.

A process of its own reads them (`searching.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask
from palimpsest.store.engine.sqlite import searching
from palimpsest.store.engine.sqlite.searching import SAMPLE_BYTES, WORD_BYTES, Finder, Searched

LEAST_STEP_BYTES = 8  # between two samples of a text: what SQLite leaves in a page may be a few words of it
MAX_SAMPLES = 200_000  # of one erasure, some 1.6 MB of text; of more text they stand further apart
ROWS_AT_A_TIME = 2_000


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


async def search(database: Path, wanted: Sequence[bytes]) -> Searched:
    """
    Search the files of a database, in a process of its own. `wanted`: of `samples`. Raises `MemoryFault`: it did not
    come to an end.
    """
    asked = orjson.dumps({"database": str(database), "wanted": [one.hex() for one in wanted]})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    with faults(OSError, f"searching the files of {database}"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", searching.__name__), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment
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


def unexplained(
    searched: Searched, wanted: Sequence[bytes], columns: Mapping[str, Sequence[str]], ask: Ask
) -> list[bytes]:
    """The samples that were found and that nothing stored explains. `columns`: by table, those that hold words."""
    if not searched.found:
        return []
    explained: set[int] = set()
    forms = [(form, number) for number in searched.found for form in _stored_forms(wanted[number])]
    stored = Finder([form for form, _ in forms])
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
