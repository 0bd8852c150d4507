"""A conversation that grows costs the same at every turn."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.store.journal import Journal
from palimpsest.store.turns.diffs import decode_kept, encode_kept

from tests.databases import database_in
from tests.talking import Talk


@given(
    st.lists(st.integers(0, 30), unique=True),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), unique_by=lambda pair: pair[0]),
)
def test_what_was_kept_is_read_back(listing: list[int], kept: list[tuple[int, int]]) -> None:
    kept.sort()
    assert sorted(decode_kept(encode_kept(kept, listing), listing)) == kept


@pytest.mark.parametrize(
    ("kept", "encoded"),
    [
        ([(1, 10), (2, 11), (3, 12)], {"runs": [[1, 0, 3]]}),
        ([(0, 11), (1, 12)], {"runs": [[0, 1, 2]]}),
        ([(0, 10), (1, 12)], {"runs": [[0, 0, 1], [1, 2, 1]]}),
        ([(0, 99), (1, 10)], {"runs": [[1, 0, 1]], "others": [[0, 99]]}),
        ([], {}),
    ],
)
def test_runs_of_the_parent_take_three_numbers(kept: list[tuple[int, int]], encoded: object) -> None:
    assert orjson.loads(encode_kept(kept, [10, 11, 12])) == encoded


async def test_every_turn_of_a_growing_conversation_is_written_alike_and_rebuilt(tmp_path: Path) -> None:
    database = database_in(tmp_path, "journal.db")
    journal = Journal(database)
    await database.open()
    talk = Talk(journal)
    for n in range(60):
        await talk.say(f"message {n}")
    sizes = await database.read("SELECT DISTINCT length(kept) FROM turn WHERE id > 10")
    assert max(size for (size,) in sizes) < 25
    assert await journal.request("acme", "c-1") == talk.history[:-1]
    assert await journal.request("acme", "c-1", 30) == talk.history[:59]
    await database.close()
