"""The words before a statement say whether one begins there at all."""

from __future__ import annotations

import pytest
from palimpsest.core.facts.contexts import (
    ClauseStart,
    clause_start,
    is_presupposed,
    is_supposed,
    is_taken_back,
    opening,
)


@pytest.mark.parametrize(
    ("leading", "allowed"),
    [
        ("", ClauseStart.ANYTHING),
        ("Thanks, ", ClauseStart.ANYTHING),
        ("The tests pass, and ", ClauseStart.STATEMENT),
        ("What should I cook, considering ", ClauseStart.STATEMENT),
        ("After last week's outage ", ClauseStart.DECISION),
        ("Nobody pushes to main, ", ClauseStart.ORDER),
        ("Maybe it rains, and ", ClauseStart.NOTHING),
        ("Do you know what ", ClauseStart.NOTHING),
        ("The dog of ", ClauseStart.NOTHING),
        ("Why is it cold, ", ClauseStart.NOTHING),
    ],
)
def test_what_may_begin_depends_on_the_words_before_it(leading: str, allowed: ClauseStart) -> None:
    assert clause_start(leading) is allowed


@pytest.mark.parametrize("leading", ["If ", "Suppose that ", "He said, ", "For example, "])
def test_a_supposition_and_others_words_hold_for_the_rest_of_a_sentence(leading: str) -> None:
    assert is_supposed(leading)


@pytest.mark.parametrize("trailing", [" if it rains", " unless you object", ", right?", ": one, two"])
def test_a_condition_behind_a_statement_takes_it_back(trailing: str) -> None:
    assert is_taken_back(trailing)
    assert not is_taken_back(", can you help")


def test_what_a_decision_is_about_stands_in_front_of_it() -> None:
    assert opening("  For the wedding menu, ") == 2
    assert opening("Thanks, ") is None


def test_some_words_take_it_for_granted_that_a_statement_holds() -> None:
    assert is_presupposed("What fits, given that ")
    assert not is_presupposed("What fits, and ")
