"""Costs are added up by day and conversation, and go with the turns that they are of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from palimpsest.domain import Added, AnswerRecord, Cost, Head, Json, Rebuild, Role, Usage
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.store.turns.costs import CostGrouping, costs

from tests.talking import NOW, assistant, heard, newest, record, user

NOTHING = Added(0, 100)
DAY_SECONDS = 86_400.0


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path / "palimpsest.db")
    await database.open()
    yield database
    await database.close()


class Talk:
    """A conversation whose requests are written with what they cost."""

    def __init__(self, database: Database, conversation: str = "c-1") -> None:
        self._journal = Journal(database)
        self._conversation = conversation
        self._messages: list[Json] = []

    async def say(self, usage: Usage, added: Added = NOTHING, at: float = NOW, **more: Any) -> Cost:
        """One request and its answer; what it cost."""
        head: Head | None = await newest(self._journal, self._messages) if self._messages else None
        text = f"question {len(self._messages)} in {self._conversation}, which is long enough to be told apart"
        self._messages.append(user(text))
        asked = record(self._messages, head, conversation=self._conversation, created_at=at, **more)
        said = heard(asked, f"answer {len(self._messages)} in {self._conversation}, long enough as well")
        assert said.entry is not None
        self._messages.append(assistant(said.entry.text))
        cost = Cost(added, None, usage)
        written = await self._journal.write([asked], [AnswerRecord(replace(said.answer, cost=cost), said.entry)])
        return written[asked.turn.id]


async def test_what_a_request_cost_follows_from_the_one_that_it_goes_on_from(database: Database) -> None:
    talk = Talk(database)
    told = [
        await talk.say(Usage(5_000, 10, 0, None)),
        await talk.say(Usage(5_500, 10, 4_992, None), at=NOW + 10),
        await talk.say(Usage(6_000, 10, 0, None), at=NOW + 20),
        await talk.say(Usage(6_500, 10, 0, None), at=NOW + 900),
        await talk.say(Usage(), at=NOW + 910),
        await talk.say(Usage(7_500, 10, 0, None), at=NOW + 920),
    ]
    causes = [Rebuild.FIRST, Rebuild.NONE, Rebuild.UNEXPECTED, Rebuild.IDLE, None, None]
    assert [cost.rebuild for cost in told] == causes
    assert [cost.rebuilt_tokens for cost in told] == [5_000, 0, 5_500, 6_000, None, None]


async def test_days_and_conversations_are_added_up_the_newest_first(database: Database) -> None:
    one, two = Talk(database), Talk(database, "c-2")
    await one.say(Usage(5_000, 10, 0, 4_000), Added(40, 100, 0))
    await one.say(Usage(5_500, 20, 4_000, 500), Added(60, 200, 40), NOW + DAY_SECONDS)
    await two.say(Usage(), Added(0, 50), NOW + DAY_SECONDS)
    day, before = await database.ask(partial(costs, by=CostGrouping.DAY, limit=9))
    assert (day["requests"], day["counted"], day["cache_told"], day["unknown"]) == (2, 1, 1, 1)
    assert (day["own_tokens"], day["added_tokens"], day["repeated_tokens"]) == (250, 60, 40)
    assert (day["input_tokens"], day["cache_read_tokens"], day["cache_write_tokens"]) == (5_500, 4_000, 500)
    assert before["rebuilds"][Rebuild.FIRST] == 1 and before["rebuilt_tokens"][Rebuild.FIRST] == 5_000
    assert day["day"] > before["day"] and sum(day["rebuilds"].values()) == 0
    second, first = await database.ask(partial(costs, by=CostGrouping.CONVERSATION, limit=9))
    assert (second["conversation"], second["tenant"], first["conversation"]) == ("c-2", "acme", "c-1")
    assert first["requests"] == 2 and second["input_tokens"] is second["cache_read_tokens"] is None
    assert await database.ask(partial(costs, by=CostGrouping.CONVERSATION, limit=1)) == [second]
    for asked in ({"tenant": "globex"}, {"conversation": "c-3"}, {"since": NOW + 9 * DAY_SECONDS}, {"until": NOW}):
        assert await database.ask(partial(costs, by=CostGrouping.DAY, limit=9, **asked)) == []
    (named,) = await database.ask(partial(costs, by=CostGrouping.DAY, limit=9, tenant="acme", conversation="c-2"))
    assert named["requests"] == 1


async def test_a_side_request_begins_nothing_that_a_cache_could_have(database: Database) -> None:
    assert (await Talk(database).say(Usage(5_000, 10, 0, None), role=Role.SIDE)).rebuild is Rebuild.FIRST
