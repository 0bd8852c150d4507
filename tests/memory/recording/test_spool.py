"""What finds no room in memory comes out of the spool as it went in, and its file tells nobody what it holds."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from palimpsest.domain import Ending
from palimpsest.memory.recording.spool import RECORD, Spool
from palimpsest.memory.recording.write_batch import AnswerItem, Item, RequestItem
from palimpsest.wire import chat

from tests.memory.recording.test_archivist import turn_of
from tests.talking import user

CREDENTIAL = "password: hunter2 of the harbour"


def items(count: int) -> list[Item]:
    """Requests, each followed by its answer."""
    wire: Any = chat
    both = list[Item]()
    for n in range(count):
        turn = replace(turn_of(user(f"{CREDENTIAL} {n}")), id=f"t-{n}")
        both.append(RequestItem(2 * n, turn, 10, 100))
        both.append(AnswerItem(2 * n + 1, turn, 2, 20, wire, (b"{}", b"[]"), True, Ending.COMPLETE, 5.0))
    return both


def test_items_come_out_as_they_went_in(tmp_path: Path) -> None:
    spool, put = Spool(tmp_path), items(3)
    assert all(spool.put(item) for item in put[:4])
    taken = [spool.take()]
    assert all(spool.put(item) for item in put[4:]) and (len(spool), spool.turns) == (5, 2)
    while len(spool):
        taken.append(spool.take())
    assert taken == put
    assert (spool.take(), len(spool), spool.turns) == (None, 0, 0)


def test_file_is_its_owners_alone_has_no_name_and_cannot_be_read_without_the_process(tmp_path: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system has no /proc")
    spool = Spool(tmp_path)
    assert all(spool.put(item) for item in items(2))
    assert list(tmp_path.iterdir()) == []
    (file,) = [fd for fd in Path("/proc/self/fd").iterdir() if str(tmp_path) in os.path.realpath(fd)]
    assert file.stat().st_mode & 0o777 == 0o600
    held = file.read_bytes()
    assert len(held) > 4 * RECORD.size and b"hunter2" not in held and b"harbour" not in held
    spool.close()
    assert not file.exists()


def test_two_items_that_are_equal_look_different(tmp_path: Path) -> None:
    spool, (item, *_) = Spool(tmp_path), items(1)
    assert spool.put(item) and spool.put(item)
    (file,) = [fd for fd in Path("/proc/self/fd").iterdir() if str(tmp_path) in os.path.realpath(fd)]
    held = file.read_bytes()
    first, second = held[: len(held) // 2], held[len(held) // 2 :]
    assert first[RECORD.size :] != second[RECORD.size :]
    assert (spool.take(), spool.take()) == (item, item)


def test_what_cannot_be_written_is_refused_and_takes_no_other_with_it(tmp_path: Path) -> None:
    first, second, *_ = items(1)
    full = Spool(tmp_path, most_bytes=10)
    assert not full.put(first) and len(full) == 0
    nowhere = Spool(tmp_path / "none")
    assert not nowhere.put(first)
    said: list[Any] = []
    for _ in range(100_000):
        said = [said]
    spool = Spool(tmp_path)
    assert spool.put(first) and spool.put(second)
    assert not spool.put(RequestItem(9, replace(first.turn, explain={"said": said}), 1, 1))
    assert [spool.take(), spool.take()] == [first, second]
