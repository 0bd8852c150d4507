"""Requests aligned with stored histories."""

from __future__ import annotations

import pytest
from palimpsest.core.history.alignment import align
from palimpsest.core.history.link_keys import flags_of
from palimpsest.domain import Fingerprint, Head, Json, Role
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message

from tests.core.driving import KEY, assistant, calling, prose, tool, user
from tests.growing import exponent

A, B, C, D = (user(prose(20, "a")), assistant(prose(20, "b")), user(prose(20, "c")), assistant(prose(20, "d")))
OK = assistant("Ok.")


def kept(before: list[Json], now: list[Json]) -> list[int]:
    old, new = ([read_message(m) for m in listed] for listed in (before, now))
    prints = [fingerprint_of(m, KEY) for m in old]
    head = Head(
        "c", 1, Role.MAIN, [p.full for p in prints], [p.opening for p in prints], range(len(old)), [*map(flags_of, old)]
    )
    return list(align(new, [fingerprint_of(m, KEY) for m in new], head))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([], [A], [-1]),
        ([A, B], [], []),
        ([A, B], [A, B, C], [0, 1, -1]),
        ([A, B, C, D], [C, D, A], [2, 3, 0]),
        ([A, B, C, D], [B, D], [1, 3]),
        ([A, OK, C, OK], [A, OK, C, OK], [0, 1, 2, 3]),
        ([A, OK, C, OK], [C, OK], [2, 3]),
        ([A, OK], [A, OK, OK], [0, 1, -1]),
    ],
    ids=[
        "nothing before",
        "nothing now",
        "more",
        "moved",
        "gaps",
        "repeated",
        "repeated, cut",
        "once more than before",
    ],
)
def test_messages_are_matched_once_in_order_where_possible(before: list[Json], now: list[Json], expected: list[int]):
    assert kept(before, now) == expected


def test_text_that_changed_behind_its_opening_is_the_same_message():
    assert kept([A, B], [user(A["content"] + " and more"), B]) == [0, 1]


def test_opening_that_two_messages_share_proves_nothing():
    one, two = (user("The same beginning of all these messages: " + prose(9, n)) for n in (1, 2))
    changed = user("The same beginning of all these messages: " + prose(9, 3))
    assert kept([one, two], [changed]) == [-1] and kept([one], [changed, two]) == [-1, -1]


def test_results_and_calls_count_whole_only():
    long = prose(30)
    assert kept([tool("c", long)], [tool("c", long[:60] + "...")]) == [-1]
    assert kept([calling(("c", "f", {"x": 1}), text=long)], [calling(("c", "f", {"x": 2}), text=long)]) == [-1]


def test_many_equal_messages_behind_one_that_moved_are_aligned_in_linear_time() -> None:
    def work(size: int) -> tuple[int, ...]:
        ok, moved = Fingerprint(1, 1), Fingerprint(2, 2)
        head = Head("c", 1, Role.MAIN, [1] * size + [2], [1] * size + [2], range(size + 1), [0] * (size + 1))
        messages = [read_message(user("ok"))] * (size + 1)
        return align(messages, [moved, *[ok] * size], head)

    assert work(3) == (3, 0, 1, 2)
    assert exponent(lambda text: work(len(text)), lambda size: "x" * size, 2_000, 20_000) < 1.5
