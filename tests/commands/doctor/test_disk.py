"""What is wrong with folder, secret or database is found before a request is."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from palimpsest.commands.doctor import disk
from palimpsest.commands.doctor.finding import State
from palimpsest.settings.policy import Policy
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.secret import load_secret


def policy(data: Path) -> Policy:
    return Policy(data=data)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


def test_a_folder_is_fine_and_one_that_is_not_there_will_be_made(data: Path) -> None:
    assert disk.check_folder(data) == disk.ok("data folder", str(data))
    found = disk.check_folder(data / "deep" / "er")
    assert (found.state, "does not exist yet" in found.found) == (State.OK, True)
    assert not (data / "deep").exists()


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = disk.check_folder(tmp_path / "file" / "data")
    assert (found.state, found.advice) == (State.FAILED, "choose another --data")


def test_a_folder_that_cannot_be_written_to_fails(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    found = disk.check_folder(small_disk)
    assert found.state is State.FAILED
    assert found.found == f"cannot write to {small_disk}: read-only file system"


def test_a_folder_that_others_may_read_is_told(data: Path) -> None:
    data.chmod(0o755)
    found = disk.check_folder(data)
    assert (found.state, found.advice) == (State.WARNING, f"chmod 700 {data}")


def test_a_folder_of_another_machine_fails(data: Path) -> None:
    found = disk.check_folder(data, f"server:/export {data} nfs4 rw 0 0\n")
    assert found.state is State.FAILED and found.found.startswith(f"data: {data} is on a network file system")


def test_a_small_disk_fails(small_disk: Path) -> None:
    found = disk.check_free_space(small_disk / "data")
    assert (found.state, bool(found.advice)) == (State.FAILED, True)


def test_space_is_told_in_megabytes(data: Path) -> None:
    found = disk.check_free_space(data / "not" / "there")
    assert found.found.endswith(f" MB free at {data}")


def test_a_secret_is_read_but_never_made(data: Path) -> None:
    assert disk.check_secret(data, {}).state is State.OK
    assert list(data.iterdir()) == []
    load_secret(data, {})
    assert disk.check_secret(data, {}).found == str(data / "secret")
    assert disk.check_secret(data, {"PALIMPSEST_SECRET": "x" * 16}).found == "PALIMPSEST_SECRET"


def test_a_secret_that_others_may_read_or_that_is_too_short_fails(data: Path) -> None:
    load_secret(data, {})
    (data / "secret").chmod(0o644)
    found = disk.check_secret(data, {})
    assert found.state is State.FAILED and "chmod 600" in found.found
    assert disk.check_secret(data, {"PALIMPSEST_SECRET": "short"}).state is State.FAILED


async def test_a_database_without_its_secret_fails(data: Path) -> None:
    database = Database(data / "palimpsest.db", mark=SecretMark(lambda: b"another secret"))
    await database.open()
    await database.close()
    found = disk.check_secret(data, {})
    assert found.state is State.FAILED and "backup" in found.advice


async def test_a_database_says_its_version_and_what_it_holds(data: Path) -> None:
    for _ in range(2):
        assert "does not exist yet" in (await disk.check_database(policy(data), {})).found
    database = Database(data / "palimpsest.db")
    await database.open()
    await database.close()
    found = await disk.check_database(policy(data), {})
    assert found.state is State.OK and ", 0 conversations, 0 turns, " in found.found


async def test_a_database_that_others_could_read_is_said(data: Path) -> None:
    database = Database(data / "palimpsest.db")
    await database.open()
    await database.close()
    database.path.chmod(0o644)
    found = await disk.check_database(policy(data), {})
    assert found.state is State.WARNING and "others could read" in found.found
    assert (await disk.check_database(policy(data), {})).state is State.OK


async def test_a_damaged_a_foreign_a_newer_and_an_older_database_fail(data: Path) -> None:
    file = data / "palimpsest.db"
    file.write_bytes(b"no database at all" * 1000)
    found = await disk.check_database(policy(data), {})
    assert found.state is State.FAILED and "damaged" in found.advice
    for sql, words in (
        ("CREATE TABLE theirs (x)", "belongs to another program"),
        ("PRAGMA application_id = 1346456649; PRAGMA user_version = 999", "a newer palimpsest wrote it"),
        ("PRAGMA application_id = 1346456649; PRAGMA user_version = 15", "`palimpsest export` of that build"),
    ):
        file.unlink()
        with closing(sqlite3.connect(file)) as db:
            db.executescript(sql)
        found = await disk.check_database(policy(data), {})
        assert found.state is State.FAILED and words in found.found, found
