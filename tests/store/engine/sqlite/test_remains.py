"""The bytes of a database's files are searched without touching the locks that SQLite holds on them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.engine.sqlite.remains import (
    LEAST_STEP_BYTES,
    samples,
    search,
    unexplained,
)
from palimpsest.store.engine.sqlite.searching import SAMPLE_BYTES, Searched, files_of, search_files
from palimpsest.store.erasure.holdings import WORDS

from tests.vanishing import vanishing_folders

OPEN_AND_CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM tenant").fetchone()
connection.close()
"""


@pytest.mark.sqlite
async def test_words_are_found_where_they_stand_and_what_is_stored_explains_them(database: Database) -> None:
    await database.write([("INSERT INTO tenant(name) VALUES (?)", [("a name of sixteen bytes and more",)])])
    wanted = samples(["a name of sixteen bytes and more", "nobody ever said anything like this"], ())
    searched = await search(database.path, wanted)
    assert {wanted[number] for number in searched.found} == set(samples(["a name of sixteen bytes and more"], ()))
    assert await database.ask(lambda ask: unexplained(searched, wanted, WORDS, ask)) == []
    await database.write([("UPDATE tenant SET name = 'another name'", [()])])
    assert len(await database.ask(lambda ask: unexplained(searched, wanted, WORDS, ask))) == len(searched.found)


@pytest.mark.sqlite
async def test_a_text_explains_what_stands_in_the_file_with_one_more_byte_of_the_column_beside_it(
    database: Database,
) -> None:
    await database.write([("INSERT INTO tenant(name) VALUES (?)", [("crates at the pier",)])])
    explained = [b" crates at the p", b"tes at the pier."]
    left = [b"  crates at the ", b" crates at the q", b"tes at the pier9", b"0crates at the p", b" crates "]
    left.append("é".encode()[-1:] + b"crates at the p")  # half a letter
    wanted = [*explained, *left]
    searched = Searched(files=1, bytes=1, found=tuple(range(len(wanted))), where={})
    assert await database.ask(lambda ask: unexplained(searched, wanted, WORDS, ask)) == left


def test_a_few_words_of_a_text_are_found_wherever_they_come_from_it(tmp_path: Path) -> None:
    text = " ".join(f"{number * 7919 % 100_003:05d}" for number in range(300))
    wanted = samples([text], ())
    place = tmp_path / "a folder" / "left.bin"
    place.parent.mkdir()
    for start in range(100, 1700, 97):
        place.write_bytes(b"\0" * 99 + text[start : start + SAMPLE_BYTES + LEAST_STEP_BYTES].encode() + b"\0" * 99)
        assert search_files(tmp_path / "palimpsest.db", wanted).found, start


def test_a_word_is_found_behind_another_one_that_begins_alike(tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(b"\x08\x063a91c2d4\x04")
    searched = search_files(tmp_path / "palimpsest.db", [b"some sixteen ...", *samples([], ["canary7f3a91c2d4"])])
    assert (searched.found, searched.where) == ((1,), {"segment": [1]})


async def test_a_folder_that_may_not_be_read_is_an_error_and_not_a_folder_without_files(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    if os.access(tmp_path / "locked", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(MemoryFault, match=r"Permission denied: '.*/locked'"):
        await search(tmp_path / "palimpsest.db", [b"sixteen bytes .."])


def test_a_folder_that_goes_away_while_files_are_listed_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"1234")
    with vanishing_folders(tmp_path):
        assert {len(files_of(tmp_path / "palimpsest.db")) for _ in range(3000)} == {1}


@pytest.mark.sqlite
async def test_another_process_still_sees_that_the_database_is_in_use(database: Database) -> None:
    """Without our locks, who comes next cuts off the log's index, and who goes last deletes the log."""
    await database.write([("INSERT INTO tenant(name) VALUES ('acme')", [()])])
    await search(database.path, [b"sixteen bytes ..", b"and sixteen more"])
    log = database.path.with_name(f"{database.path.name}-wal")
    index = database.path.with_name(f"{database.path.name}-shm")
    before = index.stat().st_ino, log.stat().st_ino
    beside = await asyncio.create_subprocess_exec(sys.executable, "-c", OPEN_AND_CLOSE, str(database.path))
    assert await beside.wait() == 0
    assert (index.stat().st_ino, log.stat().st_ino) == before
    await database.write([("INSERT INTO tenant(name) VALUES ('globex')", [()])])
    assert await database.read("SELECT count(*) FROM tenant") == [(2,)]


def test_a_process_that_searches_loads_neither_an_event_loop_nor_the_program() -> None:
    """One starts for each look at the disk, and would take twice as long."""
    listed = "import sys, palimpsest.store.engine.sqlite.searching\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("palimpsest")}
    assert "asyncio" not in loaded
    assert ours == {"palimpsest", "palimpsest.store", "palimpsest.store.engine"} | {
        f"palimpsest.store.engine.sqlite{name}" for name in ("", ".searching")
    }
