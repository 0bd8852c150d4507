"""Texts are read beside one another, in order within a conversation, and none waits for a slow one of somebody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from palimpsest.memory.recording.readers import (
    HEAVY_CHARS,
    HEAVY_THREADS_MAX,
    INLINE_CHARS,
    LIGHT_THREADS_MAX,
    SLOW_SECONDS,
    Readers,
)

PATIENCE_SECONDS = 30.0
LIGHT_CHARS = INLINE_CHARS + 1


@dataclass(frozen=True)
class Text:
    """What is read; a slow one is not done before the test lets it be."""

    name: str
    tenant: str = "acme"
    conversation: str = "c-1"
    chars: int = LIGHT_CHARS
    is_slow: bool = False


class Desk:
    """Readers, and what came of them."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.woken = threading.Event()
        self.readers = Readers[Text, str](self.read, self.woken.set)
        self.names: list[str] = []

    def read(self, text: Text) -> str:
        if text.is_slow:
            assert self.go_on.wait(PATIENCE_SECONDS)
        return text.name

    def put(self, *texts: Text) -> None:
        for text in texts:
            self.readers.put(text)

    def work_until(self, holds: Callable[[], bool]) -> None:
        for _ in range(round(PATIENCE_SECONDS / SLOW_SECONDS)):
            self.readers.work()
            self.names += [result for _, result in self.readers.collect(1 << 30)]
            if holds():
                return
            self.woken.wait(SLOW_SECONDS)
            self.woken.clear()
        raise AssertionError(f"gave up with {self.names} and {self.readers!r}")


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.go_on.set()
    desk.readers.close()


def test_tiny_text_is_read_at_once(desk: Desk) -> None:
    desk.put(Text("a", chars=10), Text("b", chars=10))
    desk.readers.work()
    assert [result for _, result in desk.readers.collect(1 << 30)] == ["a", "b"]
    assert (len(desk.readers), desk.readers.is_busy, desk.readers.has_results) == (0, False, False)


def test_texts_of_a_conversation_come_out_in_their_order_whatever_they_weigh(desk: Desk) -> None:
    weights = (10, HEAVY_CHARS + 1, LIGHT_CHARS, 10, HEAVY_CHARS + 1, 10)
    desk.put(*(Text(str(n), chars=chars) for n, chars in enumerate(weights)))
    desk.work_until(lambda: len(desk.names) == len(weights))
    assert desk.names == ["0", "1", "2", "3", "4", "5"]


def test_no_more_is_collected_than_is_asked_for_and_light_results_come_first(desk: Desk) -> None:
    desk.put(Text("heavy", chars=HEAVY_CHARS + 1), Text("behind it", chars=10), Text("light", conversation="c-2"))
    while desk.readers.is_busy:
        desk.readers.work()
        desk.woken.wait(SLOW_SECONDS)
        desk.woken.clear()
    assert [[result for _, result in desk.readers.collect(1)] for _ in range(4)] == [
        ["light"],
        ["heavy"],
        ["behind it"],
        [],
    ]


@pytest.mark.parametrize("chars", [LIGHT_CHARS, HEAVY_CHARS + 1])
def test_slow_texts_of_one_tenant_leave_room_for_others(desk: Desk, chars: int) -> None:
    desk.put(*(Text(f"slow {n}", "evil", f"c-{n}", chars, is_slow=True) for n in range(9)))
    desk.put(*(Text(f"quick {n}", f"tenant {n}", "c-1") for n in range(5)))
    desk.work_until(lambda: len(desk.names) == 5)
    assert sorted(desk.names) == [f"quick {n}" for n in range(5)], "no slow one"
    assert not desk.readers.are_light_threads_held_up
    desk.work_until(lambda: set(desk.readers.held_up(0.0)) == {"evil"})
    assert desk.readers.held_up(2 * PATIENCE_SECONDS) == {}
    desk.go_on.set()
    desk.work_until(lambda: len(desk.names) == 14)
    assert desk.readers.held_up(0.0) == {}


def test_heavy_texts_leave_room_for_light_ones_of_the_same_tenant(desk: Desk) -> None:
    heavy = [Text(f"heavy {n}", f"t-{n}", chars=HEAVY_CHARS + 1, is_slow=True) for n in range(HEAVY_THREADS_MAX + 1)]
    desk.put(*heavy, Text("light", "t-0", "c-2"))
    desk.work_until(lambda: desk.names == ["light"])


def test_it_is_said_when_all_threads_are_held_up(desk: Desk) -> None:
    desk.put(*(Text(f"slow {n}", f"tenant {n}", is_slow=True) for n in range(LIGHT_THREADS_MAX + 1)))
    desk.work_until(lambda: desk.readers.are_light_threads_held_up)
    desk.go_on.set()
    desk.work_until(lambda: len(desk.names) == LIGHT_THREADS_MAX + 1)
    assert not desk.readers.are_light_threads_held_up
