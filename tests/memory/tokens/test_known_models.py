"""What one process has learnt of models others know, and itself after a restart; it is written where it changed."""

from __future__ import annotations

import pytest
from palimpsest.memory.tokens.counter import TokenCounter
from palimpsest.memory.tokens.known_models import RENEWAL_SECONDS, KnownModels
from palimpsest.memory.tokens.windows import LEARNT_SECONDS, Windows
from palimpsest.settings.policy import PressurePolicy
from palimpsest.store.engine.sqlite.database import Database

from tests.clock import Clock

MODEL = "nobody-knows"
TEXT = "a text whose tokens are counted " * 20


class Process:
    """What one process knows of models."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.windows, self.tokens = Windows(PressurePolicy(), clock), TokenCounter()
        self.known = KnownModels(database, clock, self.windows, self.tokens)

    @property
    def shown(self) -> tuple[int, int]:
        return self.windows.of("up", MODEL), self.tokens.text(TEXT, MODEL)


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


async def test_window_and_ratio_are_known_elsewhere_and_later(database: Database, clock: Clock) -> None:
    one, fresh = Process(database, clock), Process(database, clock).shown
    one.windows.note_refused("up", MODEL, 2048)
    one.tokens.learn(MODEL, 100, 200)
    assert one.shown[0] == 2048 and one.shown != fresh
    await one.known.write()
    other = Process(database, clock)
    await other.known.learn()
    assert other.shown == one.shown
    other.windows.note_answered("up", MODEL, 4096)
    await other.known.write()
    await one.known.learn()
    assert one.shown[0] == 4096
    clock.now += LEARNT_SECONDS
    assert one.shown[0] == other.shown[0] == fresh[0]


async def test_what_was_learnt_since_is_not_overruled(database: Database, clock: Clock) -> None:
    one, other = Process(database, clock), Process(database, clock)
    one.windows.note_refused("up", MODEL, 2048)
    await one.known.write()
    clock.now += 1
    other.windows.note_refused("up", MODEL, 1024)
    await other.known.learn()
    assert other.shown[0] == 1024
    await other.known.write()
    await one.known.learn()
    assert one.shown[0] == 1024


async def test_nothing_is_written_unless_it_changed(database: Database, clock: Clock) -> None:
    one = Process(database, clock)
    await one.known.write()
    assert database.writes == 0
    one.windows.note_listed("up", MODEL, 2048)
    one.tokens.learn(MODEL, 100, 200)
    await one.known.write()
    await one.known.learn()
    assert database.writes == 1
    clock.now += 1
    one.windows.note_listed("up", MODEL, 2048)
    one.tokens.learn(MODEL, 1000, 1001)
    await one.known.write()
    assert database.writes == 1, "the same window, and a ratio within what counts are off anyway"
    clock.now += RENEWAL_SECONDS
    one.windows.note_listed("up", MODEL, 2048)
    await one.known.write()
    assert database.writes == 2, "else others would take it for old"
