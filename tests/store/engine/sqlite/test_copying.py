"""Copies of a database that is in use."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine.sqlite.copying import copy, examined, is_in_use
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.engine.sqlite.tables import APPLICATION_ID

from tests.remembered import Past


@pytest.mark.sqlite
async def test_a_copy_made_while_others_write_is_one_snapshot(past: Past, database: Database, tmp_path: Path) -> None:
    for number in range(60):
        await past.say(*(f"word {number} {part} " * 40 for part in range(8)), conversation=f"c-{number}")
    shares: list[float] = []
    writing = asyncio.create_task(_write(past))
    try:
        await asyncio.to_thread(copy, database.path, tmp_path / "copy.db", shares.append)
    finally:
        writing.cancel()
    version, counts = examined(tmp_path / "copy.db")
    assert version == (await database.read("PRAGMA user_version"))[0][0]
    assert counts["turn"] >= 60 and counts["occurrence"] == counts["turn"] * 8 and shares[-1] == 1.0
    assert not (tmp_path / "copy.db-wal").exists()


async def _write(past: Past) -> None:
    number = 0
    while True:
        number += 1
        await past.say(*(f"later {number} {part} " * 40 for part in range(8)), conversation=f"d-{number}")


@pytest.mark.sqlite
async def test_a_copy_is_examined(past: Past, database: Database, tmp_path: Path) -> None:
    await past.say("a quince")
    copy(database.path, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        db.execute("DELETE FROM content")
        db.commit()
    with pytest.raises(MemoryFault, match="rows of occurrence belong to nothing"):
        examined(tmp_path / "copy.db")
    data = bytearray((tmp_path / "copy.db").read_bytes())
    data[8192:12288] = b"\xff" * 4096
    (tmp_path / "copy.db").write_bytes(data)
    with pytest.raises(MemoryFault, match=r"damaged|malformed"):
        examined(tmp_path / "copy.db")


def test_what_is_no_database_of_ours_or_of_another_version_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE t(x)")
    with pytest.raises(MemoryFault, match="not a Palimpsest database"):
        examined(tmp_path / "other.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for version, words in ((999, "a newer palimpsest wrote it"), (15, "`palimpsest export` of that build")):
        with closing(sqlite3.connect(tmp_path / "new.db")) as db:
            db.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(MemoryFault, match=words):
            examined(tmp_path / "new.db")
    with pytest.raises(MemoryFault, match="unable to open"):
        copy(tmp_path / "gone.db", tmp_path / "copy.db")


async def test_a_process_that_has_it_open_is_noticed(tmp_path: Path) -> None:
    database = Database(tmp_path / "x.db")
    await database.open()
    look = "from pathlib import Path; from palimpsest.store.engine.sqlite.copying import *\n"
    look += f"print(is_in_use(Path({str(database.path)!r})))"

    def seen() -> str:
        return subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.strip()

    assert seen() == "True"
    await database.close()
    assert seen() == "False" and not is_in_use(database.path)
