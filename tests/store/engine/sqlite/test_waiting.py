"""What waits on the disk comes out in its order, survives a restart, and is readable for nobody else."""

from __future__ import annotations

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
    assert after.count() == 2
    assert after.first(9, 1000) == [(numbers[1], "two", b"two"), (numbers[2], "three", b"three")]
    after.close()


def test_no_more_records_come_out_than_are_asked_for_or_fit_and_one_always_does(tmp_path: Path) -> None:
    waiting = room(tmp_path)
    for name in ("one", "two", "three"):
        waiting.put(name, name.encode())
    asked = [(2, 1000), (9, 6), (9, 7), (9, 1)]
    assert [[name for _, name, _ in waiting.first(*most)] for most in asked] == [
        ["one", "two"],
        ["one", "two"],
        ["one", "two", "three"],
        ["one"],
    ]
    waiting.close()


def test_nothing_waits_where_nothing_was_ever_put_and_no_file_is_made(tmp_path: Path) -> None:
    assert (room(tmp_path).first(9, 1000), room(tmp_path).count()) == ([], 0)
    assert not [*tmp_path.iterdir()]


def test_a_record_is_enciphered_and_gone_once_it_is_removed(tmp_path: Path) -> None:
    waiting = room(tmp_path)
    number = waiting.put("t-1", SAID)
    assert all(SAID not in file.read_bytes() for file in tmp_path.iterdir())
    assert (tmp_path / "waiting.db").stat().st_mode & 0o077 == 0
    assert room(tmp_path, b"another secret of some length ....").first(9, 1000) != [(number, "t-1", SAID)]
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
