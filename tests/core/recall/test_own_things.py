"""What a request calls the user's own, and what was told of it."""

from __future__ import annotations

import numpy as np
from palimpsest.core.recall.own_things import own_things
from palimpsest.core.recall.ranking import QueryMatches
from palimpsest.core.recall.updates import MOST_NAMED

from tests.core.shelves import shelf

TOLD = (
    "My daughter is called Mila, she just started school.",
    "Your daughter will like it there.",
    "Is my daughter too young for that?",
    "My daughter has had two swimming lessons.",
)


def rows(text: str, holding: list[int], hidden: list[int] | None = None) -> list[int]:
    table = shelf(TOLD, users=(0, 2, 3), asks=[2])
    asked = QueryMatches(
        cosines=np.array([0.5, 0.9, 0.8, 0.3]), found={"daughter": np.array(holding), "thai": np.array([0])}, text=text
    )
    eligible = np.ones(len(TOLD), np.bool_)
    eligible[hidden or []] = False
    return own_things(table, asked, eligible).tolist()


def test_what_the_user_told_of_his_own_comes_the_nearest_to_the_request() -> None:
    assert rows("What Thai dish could I cook for my daughter?", [0, 1, 2, 3]) == [0]
    assert rows("What Thai dish could I cook for my daughter?", [0, 1, 2, 3], hidden=[0]) == [3]


def test_what_is_not_called_the_users_own_leads_nowhere() -> None:
    assert rows("What Thai dish is good for a daughter?", [0, 1, 2, 3]) == []
    assert rows("Is my Thai good enough to talk to a daughter?", [0, 1, 2, 3]) == [0]
    assert rows("Is my accent good enough to talk to a daughter?", [0, 1, 2, 3]) == []


def test_a_word_that_many_passages_hold_leads_nowhere() -> None:
    assert rows("And for my daughter?", [0] * (MOST_NAMED + 1)) == []
