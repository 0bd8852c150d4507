"""The database may be away, locked, full or broken: it is said, nothing is overwritten, and it comes back."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from palimpsest.domain.errors import DataFault, MemoryFault
from palimpsest.settings.policy import MemoryPolicy
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.engine.sqlite import database as module
from palimpsest.store.engine.sqlite.database import READERS, Database
from palimpsest.store.engine.sqlite.tables import APPLICATION_ID
from palimpsest.store.version import VERSION

FOREVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path / "data" / "journal.db")
    yield database
    await database.close()


async def names(database: Database) -> list[str]:
    return [row[0] for row in await database.read("SELECT name FROM tenant ORDER BY name")]


async def add(database: Database, *tenants: str) -> None:
    await database.write([("INSERT INTO tenant(name) VALUES (?)", [(name,) for name in tenants])])


async def test_first_write_opens_and_creates(database: Database) -> None:
    assert not database.is_healthy
    await add(database, "acme")
    assert await names(database) == ["acme"]
    assert database.is_healthy and repr(database) == f"<Database {database.path} [open]>"
    assert oct(database.path.stat().st_mode)[-3:] == "600"
    assert oct(database.path.parent.stat().st_mode)[-3:] == "700"


async def test_read_before_open_says_so(database: Database) -> None:
    with pytest.raises(MemoryFault, match="not open"):
        await names(database)


async def test_a_small_read_needs_no_thread_while_the_database_is_open(database: Database) -> None:
    def look(ask: Ask) -> list[tuple[str]]:
        return ask("SELECT name FROM tenant")

    assert database.ask_at_once(look) is None
    await add(database, "acme")
    assert database.ask_at_once(look) == [("acme",)]
    await database.close()
    assert database.ask_at_once(look) is None


async def test_failed_transaction_writes_nothing(database: Database) -> None:
    with pytest.raises(MemoryFault, match="UNIQUE"):
        await add(database, "acme", "acme")
    assert await names(database) == []
    assert database.is_healthy, "a wrong statement is no sick database"


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("INSERT INTO tenant(name) VALUES (?)", None),
        ("INSERT INTO tenant(id) VALUES (?)", "no number"),
        ("INSERT INTO tenant(name) VALUES (?)", object()),
        ("INSERT INTO tenant(name) VALUES (json_extract(?, '$'))", "no JSON"),
        ("INSERT INTO tenant(name) VALUES (zeroblob(?))", 1 << 40),
    ],
)
async def test_record_that_can_never_be_written_is_no_fault_of_the_machine(
    database: Database, sql: str, value: object
) -> None:
    with pytest.raises(DataFault):
        await database.write([(sql, [(value,)])])
    assert database.is_healthy


async def test_table_that_is_gone_is_no_fault_of_the_record(database: Database) -> None:
    with pytest.raises(MemoryFault) as raised:
        await database.write([("INSERT INTO nowhere VALUES (?)", [(1,)])])
    assert not isinstance(raised.value, DataFault)


async def test_cancelled_transaction_is_whole_and_the_next_one_works(database: Database) -> None:
    def stall(transaction: Transaction) -> None:
        transaction.write("INSERT INTO tenant(name) VALUES (?)", [("acme",)])
        entered.set()
        assert go_on.wait(10)
        transaction.write("INSERT INTO tenant(name) VALUES (?)", [("globex",)])

    entered, go_on = threading.Event(), threading.Event()
    stalled = asyncio.create_task(database.transact(stall))
    await asyncio.to_thread(entered.wait, 10)
    stalled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stalled
    go_on.set()
    await add(database, "umbrella")
    assert await names(database) == ["acme", "globex", "umbrella"]


async def test_late_read_is_interrupted_and_its_connection_reused(database: Database) -> None:
    await database.open()
    for _ in range(READERS + 1):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await database.read(FOREVER)
    assert await names(database) == []


async def test_read_that_is_cancelled_before_its_statement_runs_is_interrupted(database: Database) -> None:
    class Argument(Sequence[int]):
        """Bound behind the last look whether the read is wanted, and before the statement runs."""

        def __len__(self) -> int:
            return 1

        def __getitem__(self, place: object) -> int:  # type: ignore[override]
            entered.set()
            assert go_on.wait(10)
            return 1

    await database.open()
    for _ in range(READERS):
        entered, go_on = threading.Event(), threading.Event()
        reading = asyncio.create_task(database.read(f"{FOREVER} WHERE ?", Argument()))
        await asyncio.to_thread(entered.wait, 10)
        reading.cancel()
        await asyncio.wait([reading])
        go_on.set()
    async with asyncio.timeout(10):
        assert await names(database) == []


async def test_reads_do_not_wait_for_a_write(database: Database) -> None:
    def write(transaction: Transaction) -> None:
        transaction.write("INSERT INTO tenant(name) VALUES (?)", [("umbrella",)])
        entered.set()
        assert go_on.wait(10)

    await add(database, "acme")
    entered, go_on = threading.Event(), threading.Event()
    writing = asyncio.create_task(database.transact(write))
    await asyncio.to_thread(entered.wait, 10)
    assert await names(database) == ["acme"]
    go_on.set()
    await writing
    assert await names(database) == ["acme", "umbrella"]


async def test_readers_cannot_write(database: Database) -> None:
    await database.open()
    with pytest.raises(MemoryFault, match="readonly"):
        await database.read("INSERT INTO tenant(name) VALUES ('acme') RETURNING id")


async def test_closing_ends_reads_that_run_and_those_that_wait(database: Database) -> None:
    await database.open()
    reads = [asyncio.create_task(database.read(FOREVER)) for _ in range(2 * READERS)]
    await asyncio.sleep(0.05)
    await database.close()
    ended = await asyncio.gather(*reads, return_exceptions=True)
    assert all(isinstance(fault, MemoryFault) for fault in ended)


async def test_closing_that_was_cancelled_is_finished_by_the_next(tmp_path: Path) -> None:
    def connections() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name}

    def stall(ask: Ask) -> None:
        entered.set()
        assert go_on.wait(10)

    database, others = Database(tmp_path / "journal.db"), connections()
    await database.open()
    entered, go_on = threading.Event(), threading.Event()
    reading = asyncio.create_task(database.ask(stall))
    await asyncio.to_thread(entered.wait, 10)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await database.close()
    go_on.set()
    await asyncio.wait([reading])
    await database.close()
    for thread in connections() - others:
        await asyncio.to_thread(thread.join, 10)
    assert connections() <= others  # one of an earlier test may have ended meanwhile


@pytest.mark.parametrize("synchronous", [("NORMAL", 1), ("FULL", 2)])
async def test_synchronous_is_what_the_policy_says(tmp_path: Path, synchronous: tuple[str, int]) -> None:
    database = Database(tmp_path / "journal.db", synchronous[0])  # type: ignore[arg-type]
    names = ("foreign_keys", "synchronous", "journal_mode")
    said = await database.transact(lambda transaction: [transaction.read(f"PRAGMA {name}")[0][0] for name in names])
    assert said == [1, synchronous[1], "wal"]
    await database.close()


# --- trouble -----------------------------------------------------------------------------------------


async def test_corrupt_file_is_refused_left_alone_and_opened_once_it_is_sound(database: Database) -> None:
    await add(database, "acme")
    await database.close()
    sound = database.path.read_bytes()
    broken = b"this is no database " * 500
    database.path.write_bytes(broken)
    with pytest.raises(MemoryFault, match="left as it is"):
        await database.open()
    assert not database.is_healthy and "left as it is" in database.error
    with pytest.raises(MemoryFault, match="left as it is"):
        await names(database)
    assert database.path.read_bytes() == broken
    assert [file.name for file in database.path.parent.iterdir()] == ["journal.db"]
    database.path.write_bytes(sound)
    await database.open()
    assert database.is_healthy
    assert await names(database) == ["acme"]


async def test_file_that_breaks_while_open_is_said_and_reopened_when_sound(database: Database) -> None:
    await add(database, *(f"tenant {n} " + "x" * 500 for n in range(200)))
    await database.close()
    sound = database.path.read_bytes()
    await database.open()
    with database.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (len(sound) - 4096))
    with pytest.raises(MemoryFault, match="left as it is"):
        await names(database)
    assert not database.is_healthy
    await database.close()
    database.path.write_bytes(sound)
    await database.open()
    assert len(await names(database)) == 200


async def test_locked_by_another_process_is_a_fault_until_it_lets_go(database: Database) -> None:
    await add(database, "acme")
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MemoryFault, match="another process"):
            await add(database, "umbrella")
        assert not database.is_healthy
        assert await names(database) == ["acme"], "reading goes on"
        other.execute("ROLLBACK")
    await add(database, "umbrella")
    assert database.is_healthy


@pytest.mark.parametrize("by", ["removing", "replacing", "removing the folder"])
async def test_file_that_is_gone_while_open_is_noticed_and_made_anew(tmp_path: Path, by: str) -> None:
    noticed: list[int] = []
    database = Database(tmp_path / "data" / "journal.db", on_replaced=lambda: noticed.append(1))
    await add(database, "before")
    if by == "replacing":
        other = Database(tmp_path / "other.db")
        await add(other, "restored")
        await other.close()
        for suffix in ("-wal", "-shm"):  # of the old one: SQLite would put them into the new one
            database.path.with_name(f"journal.db{suffix}").unlink()
        other.path.replace(database.path)
    elif by == "removing":
        for file in database.path.parent.iterdir():
            file.unlink()
    else:
        shutil.rmtree(database.path.parent)
    await database.open()  # as the archivist does every few seconds
    assert (noticed, database.replaced) == ([1], 1)
    await add(database, "after")
    assert await names(database) == (["after", "restored"] if by == "replacing" else ["after"])
    assert (len(noticed), database.is_healthy) == (1, True)
    await database.close()
    with closing(sqlite3.connect(database.path)) as file:
        assert ("after",) in file.execute("SELECT name FROM tenant").fetchall()


async def test_file_that_others_could_read_is_its_owners_alone_once_it_is_open(database: Database) -> None:
    await add(database, "acme")
    await database.close()
    database.path.chmod(0o644)
    await add(database, "umbrella")
    assert {stat.S_IMODE(file.stat().st_mode) for file in database.path.parent.iterdir()} == {0o600}


@pytest.mark.slow
async def test_log_gives_back_its_room_when_nothing_is_written_any_more(database: Database) -> None:
    await add(database, *(f"{n} " + "x" * 10_000 for n in range(800)))
    log = database.path.with_name("journal.db-wal")
    assert log.stat().st_size > module.LOG_BYTES
    async with asyncio.timeout(60):
        while log.stat().st_size:  # noqa: ASYNC110 - what is waited for is on the disk
            await asyncio.sleep(0.1)
    assert len(await names(database)) == 800


async def test_log_of_a_busy_store_is_no_longer_than_what_is_written_in_a_while(database: Database) -> None:
    await add(database, *(f"{n} " + "x" * 10_000 for n in range(800)))
    log = database.path.with_name("journal.db-wal")
    async with asyncio.timeout(60):
        while log.stat().st_size > module.LOG_BYTES:
            await add(database, f"again {database.writes}")
            await asyncio.sleep(0.2)
    assert len(await names(database)) > 800, "and nothing of it is lost"


async def test_folder_that_cannot_be_made_is_a_fault_and_can_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way")
    database = Database(tmp_path / "data" / "journal.db")
    with pytest.raises(MemoryFault, match="opening"):
        await database.open()
    assert "opening" in database.error
    (tmp_path / "data").unlink()
    await database.open()
    assert database.is_healthy
    await database.close()


async def test_another_programs_database_is_refused(database: Database) -> None:
    database.path.parent.mkdir()
    with closing(sqlite3.connect(database.path)) as other:
        other.execute("CREATE TABLE theirs(x)")
    with pytest.raises(MemoryFault, match="another program"):
        await database.open()
    with closing(sqlite3.connect(database.path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


async def test_newer_version_is_refused_by_name(database: Database) -> None:
    await database.open()
    await database.close()
    with closing(sqlite3.connect(database.path)) as other:
        other.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(MemoryFault, match=rf"newer palimpsest wrote it \(version {VERSION + 1}, known {VERSION}\)"):
        await database.open()


@pytest.mark.parametrize("version", range(1, VERSION))
async def test_database_of_a_build_before_the_release_is_refused_untouched(database: Database, version: int) -> None:
    database.path.parent.mkdir()
    with closing(sqlite3.connect(database.path)) as other:
        other.execute("CREATE TABLE tenant(id INTEGER PRIMARY KEY, name TEXT)")
        other.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        other.execute(f"PRAGMA user_version = {version}")
    before = database.path.read_bytes()
    with pytest.raises(MemoryFault, match=rf"version {version}.*`palimpsest export` of .*`palimpsest import` of this"):
        await database.open()
    await database.close()
    assert database.path.read_bytes() == before


def test_processes_that_make_the_tables_at_once_agree(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib, sys\n"
        "from palimpsest.store.engine.sqlite.database import Database\n"
        "async def main():\n"
        "    database = Database(pathlib.Path(sys.argv[1]))\n"
        "    await database.write([('INSERT INTO tenant(name) VALUES (?)', [(sys.argv[2],)])])\n"
        "    await database.close()\n"
        "asyncio.run(main())\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "journal.db"), f"tenant {n}"]) for n in range(4)
    ]
    assert [process.wait() for process in running] == [0] * 4
    with closing(sqlite3.connect(tmp_path / "journal.db")) as db:
        assert db.execute("SELECT count(*) FROM tenant").fetchone() == (4,)
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs root, and the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_full_disk_is_said_and_writing_goes_on_once_there_is_room(small_disk: Path) -> None:
    database = Database(small_disk / "journal.db")
    await add(database, "before")
    (small_disk / "filler").write_bytes(b"\0" * (1 << 20))
    with pytest.raises(MemoryFault, match="free"):
        for n in range(100):
            await add(database, f"{n} " + "x" * 100_000)
    assert not database.is_healthy
    stored = len(await names(database))
    (small_disk / "filler").unlink()
    await add(database, "after")
    assert len(await names(database)) == stored + 1
    assert database.is_healthy
    await database.close()


async def test_a_reader_waits_for_a_lock_no_longer_than_half_of_what_a_request_may_take(database: Database) -> None:
    await database.open()
    waits = await asyncio.gather(*(database.read("PRAGMA busy_timeout") for _ in range(READERS)))
    assert len(waits) == READERS
    assert all(0 < busy_ms <= MemoryPolicy().deadline_ms / 2 for [(busy_ms,)] in waits)
    await database.close()
