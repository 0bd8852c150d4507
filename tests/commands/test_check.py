"""The check of a data folder as an operator types it: what is fine, what is wrong, and what is put right."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands.test_cli import palimpsest
from tests.databases import database_in
from tests.features.transfer.test_importing import SECRET, Destination, Importing, talk
from tests.running import rows

pytestmark = pytest.mark.slow


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with one conversation of two turns."""
    database = database_in(tmp_path)
    await Importing(database, SECRET).import_turns(talk("a quince tree", "a medlar tree"), Destination())
    await database.close()
    return tmp_path


def broken(data: Path, sql: str) -> None:
    with closing(sqlite3.connect(data / "palimpsest.db")) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(sql)
        database.commit()


def test_what_agrees_is_fine(data: Path) -> None:
    done = palimpsest("check", "--data", str(data))
    assert (done.returncode, done.stdout) == (0, "1 conversations, 2 turns, 4 messages: fine\n"), done.stderr


@pytest.mark.sqlite
def test_what_is_wrong_is_named_and_repaired_only_when_that_is_asked_for(data: Path) -> None:
    broken(data, "DELETE FROM memory_text WHERE rowid = 1")
    check = ("check", "--data", str(data))
    wrong = palimpsest(*check)
    assert wrong.returncode == 1, wrong.stderr
    assert wrong.stdout.startswith("1 passages are missing from the full-text index\n")
    assert "  --repair: " in wrong.stdout
    mended = palimpsest(*check, "--repair")
    assert mended.returncode == 0, mended.stderr
    before, after = mended.stdout.split("\nafter the repair:\n")
    assert before == wrong.stdout
    assert after.splitlines() == [
        "1 conversations, 2 turns, 4 messages: fine",
        "a running proxy, or palimpsest index, makes the vectors again",
    ]
    assert palimpsest(*check).returncode == 0


@pytest.mark.sqlite
def test_what_the_journal_has_lost_is_not_repaired_and_a_backup_is_named(data: Path) -> None:
    broken(data, "DELETE FROM occurrence WHERE id = 1")
    check = ("check", "--repair", "--data", str(data))
    unasked = palimpsest(*check)  # the text that is left of the message would go
    assert (unasked.returncode, "add --yes" in unasked.stderr) == (2, True)
    assert rows(data, "SELECT count(*) FROM content") == [(4,)]
    lost = palimpsest(*check, "--yes")
    assert lost.returncode == 1, lost.stderr
    assert "after the repair" in lost.stdout and "backup" in lost.stdout


def test_a_folder_without_a_database_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    done = palimpsest("check", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "palimpsest.db: it does not exist yet; --data names another folder" in done.stderr
    assert list(tmp_path.iterdir()) == []
