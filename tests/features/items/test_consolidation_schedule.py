"""Consolidation comes at its time of day, or when nothing is said; and not at all unless the policy says so."""

from __future__ import annotations

from datetime import datetime

import pytest
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.features.items.consolidation_schedule import IDLE_SECONDS, Schedule
from palimpsest.settings.policy import ConsolidationPolicy
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.telemetry.metrics import Metrics

from tests.kept_items import tell, texts
from tests.remembered import Past, Watched, WordEmbedder
from tests.talking import NOW

RED, BLUE = (f"My favourite colour is {colour}." for colour in ("red", "blue"))


class Parts:
    """A schedule over a clock and a policy that a test sets."""

    def __init__(self, database: Database) -> None:
        self.now = NOW + 1
        self.policy = ConsolidationPolicy()
        self.metrics = Metrics()
        consolidator = Consolidator(database, WordEmbedder(), Metrics(), self.clock)
        self.schedule = Schedule(consolidator, database, lambda: self.policy, self.metrics, self.clock)

    def clock(self) -> float:
        return self.now

    async def at(self, time: str) -> bool:
        self.now = datetime.strptime(f"2026-11-22 {time}", "%Y-%m-%d %H:%M").timestamp()
        return await self.schedule.look()


@pytest.fixture
def parts(database: Database) -> Parts:
    return Parts(database)


async def test_it_comes_when_nothing_was_said_for_a_while_and_there_is_something_to_do(
    database: Database, past: Past, parts: Parts
) -> None:
    parts.policy = ConsolidationPolicy(when="idle")
    await tell(past, RED, BLUE, user="ann")
    assert not await parts.schedule.look()
    parts.now = NOW + IDLE_SECONDS + 1
    assert await parts.schedule.look()
    assert await texts(database) == [BLUE]
    assert not await parts.schedule.look()
    shown = parts.metrics.render().decode()
    assert "palimpsest_items 1.0" in shown
    assert "palimpsest_graph_edges 0.0" in shown


async def test_it_comes_once_at_its_time_of_day_and_not_because_of_a_restart(parts: Parts) -> None:
    parts.policy = ConsolidationPolicy(when="03:30")
    assert [await parts.at(time) for time in ("03:30", "03:31", "23:59", "03:29", "03:30", "03:31", "23:59")] == [
        *(False, False, False, False, True, False, False)
    ]
    parts.policy = ConsolidationPolicy(when="00:00")
    assert [await parts.at(time) for time in ("23:59", "00:01", "00:02")] == [False, True, False]


async def test_it_comes_each_time_that_so_many_turns_were_said(database: Database, past: Past, parts: Parts) -> None:
    parts.policy = ConsolidationPolicy(when="3 turns")
    await tell(past, RED, BLUE, user="ann")
    assert not await parts.schedule.look()  # the count begins now
    await past.say("The boats sail on Sundays.")
    assert not await parts.schedule.look()
    await past.say("They do.", "Yes.")
    await past.say("Always.")
    assert await parts.schedule.look()
    assert await texts(database) == [BLUE]
    assert not await parts.schedule.look()


async def test_while_it_is_off_nothing_is_read(database: Database) -> None:
    watched = Watched(database)
    consolidator = Consolidator(watched, WordEmbedder(), Metrics(), lambda: NOW)  # type: ignore[arg-type]
    schedule = Schedule(consolidator, watched, ConsolidationPolicy, Metrics(), lambda: NOW)  # type: ignore[arg-type]
    assert not await schedule.look()
    assert watched.asked == []


def test_times_and_off_are_read_as_yaml_gives_them() -> None:
    assert ConsolidationPolicy(when=False, writer=False) == ConsolidationPolicy()  # type: ignore[arg-type]
    assert ConsolidationPolicy(when=12 * 60 + 5).when == "12:05"  # type: ignore[arg-type]
