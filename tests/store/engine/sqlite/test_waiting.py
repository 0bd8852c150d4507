"""What waits on the disk comes out in its order, survives a restart, and is readable for nobody else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine.sqlite.waiting import WaitingRoom

SECRET = b"a secret of thirty-two bytes ....."
SAID = b"my password is swordfish"


def room(folder: Path, secret: bytes = SECRET, most_bytes: int = 1000) -> WaitingRoom:
    return WaitingRoom(folder / "waiting.db", secret, most_bytes)


def test_records_come_out_in_the_order_in_which_they_came_also_after_a_restart(tmp_path: Path) -> None:
    before = room(tmp_path)
    numbers = [before.put(name, name.encode()) for name in ("one", "two", "three")]
    before.remove(numbers[0])
    before.close()
    after = room(tmp_path)
    assert (after.count(), after.first(b"")) == (2, (numbers[1], 3))
    assert [after.read(number) for number in numbers] == [None, ("two", b"two"), ("three", b"three")]
    after.close()


def test_each_lane_has_its_own_first_record_and_its_name_is_not_told(tmp_path: Path) -> None:
    waiting = room(tmp_path)
    ada, bob = waiting.lane("ada@example.com"), waiting.lane("bob@example.com")
    numbers = [waiting.put("t", said, lane) for said, lane in ((b"1", ada), (b"22", bob), (b"333", ada))]
    assert sorted(waiting.lanes()) == sorted([(ada, numbers[0], 2), (bob, numbers[1], 1)])
    waiting.remove(numbers[0])
    assert [waiting.first(lane) for lane in (ada, bob, b"")] == [(numbers[2], 3), (numbers[1], 2), None]
    assert all(b"example.com" not in file.read_bytes() for file in tmp_path.iterdir())
    waiting.close()


def test_what_waits_in_the_file_of_an_older_build_is_in_the_lane_without_a_name(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "waiting.db")) as older, older:
        older.execute(
            "CREATE TABLE waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, nonce BLOB, sealed BLOB)"
        )
        older.execute("INSERT INTO waiting (name, nonce, sealed) VALUES ('t-1', x'00', x'0102')")
    waiting = room(tmp_path)
    assert (waiting.lanes(), waiting.first(b"")) == ([(b"", 1, 1)], (1, 2))
    assert waiting.put("t-2", SAID, waiting.lane("ada")) == 2
    waiting.close()


def test_nothing_waits_where_nothing_was_ever_put_and_no_file_is_made(tmp_path: Path) -> None:
    assert (room(tmp_path).first(b""), room(tmp_path).read(1), room(tmp_path).count()) == (None, None, 0)
    assert not [*tmp_path.iterdir()]


def test_a_record_is_enciphered_and_gone_once_it_is_removed(tmp_path: Path) -> None:
    waiting = room(tmp_path)
    number = waiting.put("t-1", SAID)
    assert all(SAID not in file.read_bytes() for file in tmp_path.iterdir())
    assert (tmp_path / "waiting.db").stat().st_mode & 0o077 == 0
    assert room(tmp_path, b"another secret of some length ....").read(number) != ("t-1", SAID)
    waiting.remove(number)
    assert waiting.count() == 0
    waiting.close()


def test_a_record_for_which_there_is_no_room_is_refused(tmp_path: Path) -> None:
    waiting = room(tmp_path, most_bytes=len(SAID))
    waiting.put("t-1", SAID)
    with pytest.raises(MemoryFault, match="wait already"):
        waiting.put("t-2", SAID)
    assert waiting.count() == 1
    waiting.close()
