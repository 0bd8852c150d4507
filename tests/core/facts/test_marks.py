"""Ids and marks are the same whenever they are made, and mean nothing in another tenant."""

from __future__ import annotations

from dataclasses import replace

from palimpsest.core.facts.marks import Statement, added_mark, fact_id, marks, marks_left

KEY, OTHER = b"k" * 32, b"o" * 32
CITY = Statement(7, "user", "city", "Rome", True)
TEA = Statement(7, "user", "likes", "tea", False)


def forbids(
    left: Statement, again: Statement, user: str = "ann", conversation: str = "c-2", shared: bool = False
) -> bool:
    """Whether a statement that `user` left in c-1 forbids one that `user` makes in this conversation."""
    stones = set(marks_left(KEY, "c-1", user, "shop", left, shared))
    return not stones.isdisjoint(marks(KEY, conversation, user, "shop", again))


def test_an_id_is_that_of_what_a_message_states_in_a_tenant() -> None:
    id = fact_id(KEY, 1, "user", "city", "Rome")
    assert id == fact_id(KEY, 1, "user", "city", " rome") and id.startswith("f-") and len(id) == 18
    others = [fact_id(OTHER, 1, "user", "city", "Rome"), fact_id(KEY, 2, "user", "city", "Rome")]
    assert id not in [*others, fact_id(KEY, 1, "user", "town", "Rome"), added_mark(KEY, id)]


def test_a_slot_of_one_value_is_forbidden_as_a_whole_and_a_value_of_many_alone() -> None:
    assert forbids(CITY, replace(CITY, value="the city of Rome"))
    assert forbids(CITY, replace(CITY, slot="home"))
    assert forbids(TEA, TEA) and not forbids(TEA, replace(TEA, value="figs"))


def test_a_mark_is_of_one_message() -> None:
    assert not forbids(CITY, replace(CITY, full=8))


def test_a_mark_holds_for_its_user_or_where_nobody_is_named_for_its_conversation() -> None:
    assert not forbids(CITY, CITY, user="") and forbids(CITY, CITY, user="", conversation="c-1")
    assert forbids(CITY, CITY, user="", shared=True)
    stones = set(marks_left(KEY, "c-1", "ann", "shop", CITY, False))
    assert stones.isdisjoint(marks(KEY, "c-2", "bob", "shop", CITY))
    assert stones.isdisjoint(marks(OTHER, "c-1", "ann", "shop", CITY))
