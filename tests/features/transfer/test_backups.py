"""Backup and restoration of a data folder: nothing is lost, and nothing that was erased comes back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from palimpsest.domain import Json
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.features.transfer.backup_file import DATABASE
from palimpsest.features.transfer.backups import Restored, back_up, restore
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.store.operation.secret import SECRET_ENV, load_secret

from tests.features.transfer.test_importing import Destination, Importing, exported, talk
from tests.talking import NOW

TURNS = [*talk("a quince tree", "a medlar tree"), *talk("pears", conversation="c-2", user="ann")]


def clock() -> float:
    return NOW + 100


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with two conversations."""
    folder = tmp_path / "data"
    folder.mkdir()
    await told(folder, *TURNS)
    return folder


async def told(folder: Path, *turns: object) -> None:
    database = Database(folder / DATABASE)
    await Importing(database, load_secret(folder, {})).import_turns(turns, Destination())  # type: ignore[arg-type]
    await database.close()


async def marked(folder: Path) -> None:
    """Open it as the program does, which sets the mark of the secret."""
    database = Database(folder / DATABASE, mark=SecretMark(lambda: load_secret(folder, {})))
    await database.open()
    await database.close()


async def forgotten(folder: Path, **target: str) -> None:
    database = Database(folder / DATABASE)
    assert (
        await Forgetting(database, load_secret(folder, {}), clock, settle_seconds=0.0).erase(Target(**target))
        is not None
    )
    await database.close()


async def said(folder: Path) -> bytes:
    database = Database(folder / DATABASE)
    await database.open()
    lines = await exported(database)
    await database.close()
    return lines


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@contextmanager
def held_open(database: Path) -> Iterator[None]:
    """The database is open in another process."""
    open_it = f"d = sqlite3.connect({str(database)!r}); d.execute('SELECT 1 FROM turn').fetchall()"
    program = f"import sqlite3, sys; {open_it}; print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        holder.stdout.readline()
        yield
        holder.stdin.close()


def backup(data: Path, name: str = "b.tar", environment: Json | None = None) -> Path:
    file = data.parent / name
    back_up(data, file, environment or {}, clock)
    return file


async def restored(file: Path, folder: Path, **more: object) -> Restored:
    return await restore(file, folder, {}, clock, **more)  # type: ignore[arg-type]


async def test_a_backup_is_restored_to_an_empty_folder(data: Path, tmp_path: Path) -> None:
    file = backup(data, "b.tar.zst")
    assert file.stat().st_mode & 0o777 == 0o600
    done = await restored(file, tmp_path / "new")
    assert await said(tmp_path / "new") == await said(data)
    assert load_secret(tmp_path / "new", {}) == load_secret(data, {})
    assert (done.manifest.counts["turn"], done.aside, done.erased) == (3, None, {})
    assert names(tmp_path / "new") == [DATABASE, "secret"]
    assert [name for name in names(tmp_path) if "part" in name] == []


@pytest.mark.parametrize("target", [{"conversation": "c-1"}, {"matching": "medlar"}, {"tenant": "static:me"}], ids=str)
async def test_what_was_erased_since_does_not_come_back(data: Path, target: Json) -> None:
    file = backup(data)
    await forgotten(data, **target)
    await told(data, *talk("said since", conversation="c-7"))
    done = await restored(file, data, is_forced=True)
    now = await said(data)
    assert b"medlar" not in now and done.erased["messages"] > 0
    assert (b"pears" in now) == ("tenant" not in target) and b"said since" not in now
    assert b"medlar" not in (data / DATABASE).read_bytes()
    await told(data, *TURNS)
    assert b"medlar" not in await said(data), "nor does it come with an import later"


async def test_erasures_of_another_folder_or_backup_are_applied(data: Path, tmp_path: Path) -> None:
    early = backup(data)
    await forgotten(data, matching="medlar")
    late = backup(data, "late.tar.gz")
    for number, erasures in enumerate((data / DATABASE, late)):
        await restored(early, tmp_path / f"{number}", erasures_of=[erasures])
        assert b"medlar" not in await said(tmp_path / f"{number}")
    await restored(early, tmp_path / "without")
    assert b"medlar" in await said(tmp_path / "without")


async def test_a_folder_that_holds_something_is_left_alone(data: Path) -> None:
    file, before = backup(data), await said(data)
    await told(data, *talk("said since", conversation="c-7"))
    with pytest.raises(MemoryFault, match="it contains a database; --force moves it aside"):
        await restored(file, data)
    done = await restored(file, data, is_forced=True)
    assert await said(data) == before and done.aside is not None and b"said since" in await said(done.aside)


async def test_a_folder_in_use_is_left_alone(data: Path) -> None:
    file = backup(data)
    with held_open(data / DATABASE), pytest.raises(MemoryFault, match="a process is using the database; stop it"):
        await restored(file, data, is_forced=True)
    assert names(data) == [DATABASE, "secret"]


async def test_a_secret_of_the_environment_stays_there(data: Path, tmp_path: Path) -> None:
    (data / "secret").unlink()
    environment = {SECRET_ENV: "a secret of the environment"}
    file = backup(data, environment=environment)
    with pytest.raises(PolicyError, match="is not set, and"):
        await restored(file, tmp_path / "new")
    with pytest.raises(PolicyError, match="is not the secret of"):
        await restore(file, tmp_path / "new", {SECRET_ENV: "some other secret of it"}, clock)
    await restore(file, tmp_path / "new", environment, clock)
    assert not (tmp_path / "new" / "secret").exists()


async def test_erasures_that_cannot_be_read_stop_a_restoration_unless_they_are_ignored(data: Path) -> None:
    file = backup(data)
    (data / DATABASE).write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(MemoryFault, match="--ignore-erasures restores without them"):
        await restored(file, data, is_forced=True)
    await restored(file, data, is_forced=True, ignores_erasures=True)
    assert b"medlar" in await said(data)


async def test_erasures_under_another_secret_fit_nothing(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    await told(other, *TURNS)
    await forgotten(other, matching="pears")
    with pytest.raises(MemoryFault, match="with another secret"):
        await restored(backup(data), other, is_forced=True)
    with pytest.raises(MemoryFault, match="with another secret"):
        await restored(backup(data, "c.tar"), tmp_path / "new", erasures_of=[backup(other, "o.tar")])
    assert not (tmp_path / "new" / DATABASE).exists()


async def test_erasures_are_applied_without_the_file_of_the_secret_where_the_backup_has_the_same(data: Path) -> None:
    await marked(data)
    file = backup(data)
    await forgotten(data, matching="medlar")
    (data / "secret").unlink()
    await restored(file, data, is_forced=True)
    assert b"medlar" not in await said(data) and load_secret(data, {})


async def test_where_the_secret_of_erasures_is_lost_the_way_to_restore_without_them_is_told(
    data: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    await told(other, *TURNS)
    await marked(other)
    await forgotten(other, matching="pears")
    (other / "secret").unlink()
    with pytest.raises(MemoryFault, match=r"with another secret.*--ignore-erasures restores without them"):
        await restored(backup(data), other, is_forced=True)
    assert names(other) == [DATABASE]


async def test_a_backup_writes_over_nothing(data: Path, tmp_path: Path) -> None:
    file = backup(data)
    with pytest.raises(MemoryFault, match="it exists already"):
        backup(data)
    with pytest.raises(MemoryFault, match="it does not exist yet"):
        back_up(tmp_path / "gone", tmp_path / "x.tar", {}, clock)
    assert file.exists() and not (tmp_path / "x.tar").exists()


async def test_what_a_killed_restoration_left_is_removed(data: Path) -> None:
    (data / ".restore-1").mkdir()
    (data / ".restore-1" / DATABASE).write_bytes(b"words")
    await restored(backup(data), data, is_forced=True)
    assert not (data / ".restore-1").exists()
