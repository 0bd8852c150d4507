"""Is anything relevant at all?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from proxy.core.gate import admits
from proxy.core.ranking import Asked, Floats
from tests.core.shelves import shelf


def verdict(asked: Asked, hidden: tuple[int, ...] = ()) -> tuple[bool, str]:
    eligible = ~np.isin(np.arange(len(SHELF)), hidden)
    return admits(SHELF, asked, eligible, gate_cosine=0.44, gate_rare_terms=3)


def close(cosine: float) -> Floats:
    """Cosines of passages of which the third comes so close to the question."""
    return np.where(np.arange(len(SHELF)) == 2, cosine, 0.0)


SHELF = shelf(["text"] * 200)
KNOWN = {"garden": np.array([7, 9, 20, 30])}


def test_reaching_the_cosine_admits() -> None:
    assert verdict(Asked(close(0.45), KNOWN))[0]


def test_below_the_cosine_nothing_is_admitted_and_the_reason_says_how_far() -> None:
    admitted, reason = verdict(Asked(close(0.43), KNOWN))
    assert not admitted and "0.43" in reason


def test_a_question_of_unknown_words_must_be_closer() -> None:
    assert not verdict(Asked(close(0.45), KNOWN, absent=("okapi", "zeppelin", "quark")))[0]
    assert verdict(Asked(close(0.50), KNOWN, absent=("okapi", "zeppelin", "quark")))[0]


def test_a_question_without_words_of_its_own_is_not_admitted_however_close() -> None:
    assert not verdict(Asked(close(0.9), {}))[0]


def test_what_may_not_come_admits_nothing() -> None:
    assert not verdict(Asked(close(0.9), KNOWN), hidden=(2,))[0]
    everything = tuple(range(200))
    assert verdict(Asked(close(0.9), KNOWN), hidden=everything) == (False, "nothing that may come")


def test_an_exact_identifier_admits_without_a_model() -> None:
    asked = Asked(None, {"proj-123": np.array([5])}, identifiers=("proj-123",))
    assert verdict(asked) == (True, "names proj-123")


def test_an_identifier_that_stands_everywhere_names_nothing() -> None:
    asked = Asked(close(0.0), {"main.py": np.arange(100)}, identifiers=("main.py",))
    assert not verdict(asked)[0]


def test_an_identifier_that_one_long_message_repeats_names_that_message() -> None:
    at = np.arange(100)
    asked = Asked(close(0.0), {"proj-123": at}, identifiers=("proj-123",))
    whole = replace(SHELF, occurrences=np.where(np.arange(len(SHELF)) < 100, 1, SHELF.occurrences))
    assert admits(whole, asked, np.ones(len(SHELF), np.bool_), gate_cosine=0.44, gate_rare_terms=3)[0]


def test_an_identifier_only_in_what_may_not_come_does_not_admit() -> None:
    asked = Asked(close(0.0), {"proj-123": np.array([5])}, identifiers=("proj-123",))
    assert not verdict(asked, hidden=(5,))[0]


@pytest.mark.parametrize("places, admitted", [(([5], [5], [5]), True), (([5], [6], [7]), False)])
def test_rare_terms_admit_only_together(places: tuple[list[int], ...], admitted: bool) -> None:
    found = {term: np.array(rows) for term, rows in zip(("tango", "lisbon", "violin"), places, strict=True)}
    assert verdict(Asked(close(0.0), found))[0] is admitted


def test_one_rare_term_does_not_admit() -> None:
    assert not verdict(Asked(close(0.0), {"tango": np.array([5])}))[0]


def test_without_a_model_one_passage_must_cover_the_question() -> None:
    common = np.arange(0, 200, 10)
    both = {"garden": common, "roses": common}
    assert verdict(Asked(None, both))[0]
    assert not verdict(Asked(None, both, absent=("okapi", "zeppelin", "quark")))[0]
    assert not verdict(Asked(None, {"garden": common}))[0]


def test_without_a_model_and_known_words_nothing_is_admitted() -> None:
    assert not verdict(Asked(None, {}, absent=("okapi",)))[0]


def test_a_question_about_strangers_must_be_closer() -> None:
    assert not verdict(Asked(close(0.5), KNOWN, strangers=1.0))[0]
    assert verdict(Asked(close(0.5), KNOWN, strangers=0.5))[0]
    assert "100% of its names" in verdict(Asked(close(0.5), KNOWN, strangers=1.0))[1]
