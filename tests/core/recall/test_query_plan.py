"""Plans of look-ups."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from palimpsest.core.recall.query_plan import (
    MOST_QUESTIONS,
    QUESTION_CHARS,
    READ_CHARS,
    apply_preferences,
    interleave,
    plan_by_rules,
    plan_of,
)
from palimpsest.core.recall.ranking import PROBABILITY, RankedRows
from palimpsest.domain import Json, Plan, Teller

from tests.core.passage_tables import passage_table

DAY_SECONDS = 86_400.0


def answer(**said: object) -> Json:
    return {"questions": [], "first_day": "", "last_day": "", "said_by": "anyone"} | said


def ranked(rows: list[int], probabilities: list[float]) -> RankedRows:
    scores = np.arange(len(rows), 0, -1.0)
    return RankedRows(np.array(rows, np.int64), scores, {PROBABILITY: np.array(probabilities), "words": scores})


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Which port does Postgres use?", None),
        ("When did Ana move, and who helped her?", Plan(("When did Ana move", "who helped her"))),
        ("When did I move to Porto?", Plan((), (), Teller.USER)),
        ("Where do I live and who is my landlord?", Plan(("Where do I live", "who is my landlord"), (), Teller.USER)),
        ("What did you recommend to me?", None),
        ("What do Tim and John both like?", None),
        ("Bread and how?", None),
        ("Why was the build red and " + "x" * READ_CHARS, None),
    ],
)
def test_compound_questions_are_taken_apart_and_who_asks_about_themselves_is_preferred(
    text: str, plan: Plan | None
) -> None:
    assert plan_by_rules(text) == plan


def test_many_parts_are_asked_in_a_few_questions() -> None:
    plan = plan_by_rules(" and ".join(["what is this one"] * 9))
    assert plan is not None and len(plan.questions) == MOST_QUESTIONS


def test_a_model_that_plans_nothing_leaves_the_question_as_it_is() -> None:
    assert plan_of(answer(), "Which port?") is None
    assert plan_of(answer(questions=[" ", "which  PORT?"]), "Which port?") is None


def test_a_models_plan_is_what_it_says_within_bounds() -> None:
    many = [f"question {number}" for number in range(9)]
    said = answer(questions=["x" * 999, *many], first_day="2026-03-01", last_day="2026-03-02", said_by="tools")
    plan = plan_of(said, "Which port?")
    first = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    assert plan is not None
    assert len(plan.questions) == MOST_QUESTIONS and max(map(len, plan.questions)) == QUESTION_CHARS
    assert plan.periods == ((first, first + 2 * DAY_SECONDS),) and plan.teller is Teller.TOOLS


@pytest.mark.parametrize(
    ("first", "last"),
    [("2026-03-02", "2026-03-01"), ("soon", "2026-03-01"), ("2026-03-01", ""), ("2026-02-31", "2026-03-01"), ("", "")],
)
def test_days_that_are_none_or_the_wrong_way_round_are_no_period(first: str, last: str) -> None:
    plan = plan_of(answer(first_day=first, last_day=last, said_by="user"), "Which port?")
    assert plan is not None and plan.periods == ()


@pytest.mark.parametrize(
    ("teller", "higher"),
    [(Teller.ANYONE, []), (Teller.USER, [0]), (Teller.OTHERS, [1, 2]), (Teller.TOOLS, [2])],
)
def test_passages_of_whom_the_plan_means_are_more_probable_and_no_other_changes(
    teller: Teller, higher: list[int]
) -> None:
    table = passage_table(["mine", "yours", "tool"], users=[0])
    table.consequence[2] = 1.5
    before = np.array([0.5, 0.5, 0.5])
    after = apply_preferences(table, ranked([0, 1, 2], [0.5] * 3), before, Plan((), (), teller))
    assert np.flatnonzero(after > before).tolist() == higher
    assert (after <= 1).all() and (after >= before).all()


def test_passages_of_the_days_that_the_plan_means_are_more_probable_too() -> None:
    table = passage_table(["then", "now", "mine then"], users=[2], created_at=[100.0, 900.0, 100.0])
    before = np.array([0.5, 0.5, 0.5])
    then, now, both = apply_preferences(
        table, ranked([0, 1, 2], [0.5] * 3), before, Plan((), ((50.0, 150.0),), Teller.USER)
    )
    assert both > then > now == 0.5
    then, now, both = apply_preferences(table, ranked([0, 1, 2], [0.5] * 3), before, Plan((), ((50.0, 150.0),)))
    assert both == then > now == 0.5


def test_lists_take_turns_and_a_row_comes_once_at_its_best() -> None:
    one, two = ranked([7, 8, 9], [0.9, 0.5, 0.1]), ranked([8, 3], [0.7, 0.6])
    both = interleave([one, two], 10)
    assert both.rows.tolist() == [7, 8, 3, 9]
    assert both.signals[PROBABILITY].tolist() == [0.9, 0.7, 0.6, 0.1]
    assert interleave([one, two], 2).rows.tolist() == [7, 8]
    assert interleave([one], 10).rows.tolist() == one.rows.tolist()


def test_signals_that_a_list_lacks_are_nothing_there() -> None:
    wished = RankedRows(np.array([4]), np.array([1.0]), {PROBABILITY: np.array([1.0]), "wish": np.array([0.3])})
    both = interleave([wished, ranked([5], [0.5])], 10)
    assert both.signals["wish"].tolist() == [0.3, 0.0]
