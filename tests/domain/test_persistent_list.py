"""What grows from a sequence shares its items, and leaves it and all others that grow from it as they are."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from palimpsest.domain import PersistentList

STEPS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.lists(st.integers(), max_size=3)), max_size=12)


@given(STEPS)
def test_each_is_what_copying_would_have_made_however_many_grow_from_one(
    steps: list[tuple[int, int, list[int]]],
) -> None:
    made: list[tuple[PersistentList[int], tuple[int, ...]]] = [(PersistentList([1, 2]), (1, 2))]
    for which, kept, further in steps:
        grown, items = made[which % len(made)]
        count = kept % (len(items) + 1) if kept % 3 else len(items)  # mostly all of it, as conversations do
        made.append((grown.then(count, further), (*items[:count], *further)))
    for grown, items in made:
        assert grown == items and items == grown and tuple(grown) == items and len(grown) == len(items)
        assert all(grown[at] == items[at] for at in range(-len(items), len(items)))
        assert repr(grown) == repr(items)


@given(st.lists(st.integers(), max_size=5), st.lists(st.integers(), max_size=3), *[st.none() | st.integers(-9, 9)] * 2)
def test_a_slice_is_that_of_a_tuple(items: list[int], behind: list[int], start: int | None, stop: int | None) -> None:
    grown = PersistentList(items)
    grown.then(len(items), behind)
    for step in (None, 1, 2, -1, -2):
        assert grown[start:stop:step] == tuple(items)[start:stop:step]


def test_nothing_is_copied_where_all_of_it_is_kept_and_nothing_else_grew_from_it() -> None:
    first = PersistentList([object()])
    second = first.then(1, [object()])
    beside = first.then(1, [object()])
    assert first.shared(second) == second.shared(first) == 1
    assert first.shared(beside) == beside.shared(second) == first.shared([*first]) == 0
    assert PersistentList.of(second) is second and first[0] is second[0] is beside[0]


def test_two_threads_that_grow_from_one_do_not_meet() -> None:
    first: PersistentList[int] = PersistentList(range(1000))
    grown: list[Sequence[int]] = []

    def grow(item: int) -> None:
        grown.append(first.then(1000, [item] * 3))

    threads = [threading.Thread(target=grow, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one[1000:] for one in grown) == [(number,) * 3 for number in range(8)]
