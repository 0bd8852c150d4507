"""How did a conversation stand after one of its turns?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.domain import Clues, Head, LinkKind, Record, Role
from proxy.store.connection import Database
from proxy.store.journal import SqliteJournal
from tests.talking import heard, print_of, record, user


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    database = Database(tmp_path / "journal.db")
    await database.open()
    yield SqliteJournal(database)
    await database.close()


async def say(journal: SqliteJournal, asked: Record, answer: str, id: int) -> None:
    """A request and its answer, which is known by an id."""
    said = heard(asked, answer)
    links = (*said.answer.links, (LinkKind.REPLY, id))
    await journal.write([asked], [replace(said, answer=replace(said.answer, links=links))])


async def named(journal: SqliteJournal, id: int, tenant: str = "acme") -> list[Head]:
    """The heads of the turns that gave this answer."""
    seen = await journal.seen(Clues(tenant, {LinkKind.REPLY: (id,)}))
    return [head for head in seen.heads if head.turn in {link.turn for link in seen.links}]


async def test_a_head_that_was_replaced_is_still_known_by_its_answer(journal: SqliteJournal) -> None:
    await say(journal, record([user("one")], tokens=5), "first", 101)
    (before,) = await named(journal, 101)
    assert before.tokens > 17, "as the upstream counted, and the answer"
    history = [user("one"), {"role": "assistant", "content": "first"}, user("two")]
    await say(journal, record(history, before, lost=(77,)), "second", 102)
    (after,) = await named(journal, 102)
    assert list(after.fulls)[:3] == [print_of("acme", raw).full for raw in history]
    (again,) = await named(journal, 101)
    assert again.turn == before.turn and again.shape == before.shape
    for name in ("fulls", "openings", "occurrences", "flags"):
        assert list(getattr(again, name)) == list(getattr(before, name)), name
    assert (again.request_length, again.event, again.tokens) == (1, before.event, 17)
    assert await named(journal, 101, "other") == []


async def test_the_answer_of_a_side_request_led_to_no_head(journal: SqliteJournal) -> None:
    await say(journal, record([user("one")]), "first", 101)
    await say(journal, record([user("sum up")], role=Role.SIDE), "a summary", 102)
    seen = await journal.seen(Clues("acme", {LinkKind.REPLY: (102,)}))
    assert [head.turn for head in seen.heads] != [link.turn for link in seen.links]
    assert await named(journal, 102) == []
