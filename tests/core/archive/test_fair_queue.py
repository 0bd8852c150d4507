"""Tenants in turn, conversations in order, and nobody in the way of others."""

from __future__ import annotations

from palimpsest.core.archive.fair_queue import FairQueue

Item = tuple[str, str, int]


def queue_of(*items: str, most_of_tenant: int = 2) -> FairQueue[str]:
    """Items named like `a1x`: tenant a, its conversation 1, and what tells it from others."""
    queue = FairQueue[str](most_of_tenant)
    for item in items:
        queue.put(item[0], item[1], item)
    return queue


def drain(queue: FairQueue[str]) -> list[str]:
    drained = []
    while (item := queue.take()) is not None:
        drained.append(item)
        queue.done(item[0], item[1])
    return drained


def test_nothing_waits_in_an_empty_queue() -> None:
    assert queue_of().take() is None


def test_conversation_keeps_its_order() -> None:
    assert drain(queue_of("a1x", "a1y", "a1z")) == ["a1x", "a1y", "a1z"]


def test_tenant_with_little_does_not_wait_for_one_with_much() -> None:
    queue = queue_of("a1x", "a1y", "a2x", "a2y", "b1x")
    assert drain(queue) == ["a1x", "b1x", "a2x", "a1y", "a2y"]
    assert len(queue) == 0


def test_conversation_whose_item_is_taken_waits_and_others_go_on() -> None:
    queue = queue_of("a1x", "a1y", "a2x", "b1x")
    assert [queue.take(), queue.take(), queue.take(), queue.take()] == ["a1x", "b1x", "a2x", None]
    queue.done("a", "1")
    assert queue.take() == "a1y"


def test_tenant_has_no_more_than_its_share_taken_at_once() -> None:
    queue = queue_of("a1x", "a2x", "a3x", "b1x", most_of_tenant=2)
    assert [queue.take(), queue.take(), queue.take(), queue.take()] == ["a1x", "b1x", "a2x", None]
    queue.done("a", "1")
    assert queue.take() == "a3x"


def test_what_is_not_wanted_stays_and_holds_up_only_its_own_conversation() -> None:
    queue = queue_of("a1X", "a1y", "a2x")
    assert queue.take(str.islower) == "a2x"
    assert queue.take(str.islower) is None
    assert len(queue) == 2
    assert queue.take() == "a1X"
