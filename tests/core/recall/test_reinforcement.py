"""What is quoted gains, what is not fades, and whoever is long unquoted is no longer recalled."""

import numpy as np
from palimpsest.core.recall.reinforcement import BOOST, FIRST_CONFIDENCE, FIRST_SUCCESS, Round, message_worth

OLD, QUOTED, NEW = 1, 2, 50


def after(rounds: int) -> list[Round]:
    return [Round(10, [QUOTED])] * rounds


def test_before_the_first_round_all_are_worth_the_same() -> None:
    stands = message_worth(np.array([OLD, QUOTED]), [])
    assert stands.worth.tolist() == [FIRST_CONFIDENCE * FIRST_SUCCESS] * 2 and stands.may_come.all()


def test_what_is_quoted_gains_and_what_was_there_fades() -> None:
    old, quoted, new = message_worth(np.array([OLD, QUOTED, NEW]), after(1)).worth
    assert quoted == 2 * (FIRST_CONFIDENCE + BOOST) * 0.55  # an access doubles F, success moves a tenth of the way
    assert old < new == FIRST_CONFIDENCE * FIRST_SUCCESS


def test_after_eighteen_rounds_without_it_a_message_is_not_recalled_until_it_is_quoted() -> None:
    assert message_worth(np.array([OLD, QUOTED, NEW]), after(17)).may_come.all()
    assert message_worth(np.array([OLD, QUOTED, NEW]), after(18)).may_come.tolist() == [False, True, True]
    assert message_worth(np.array([OLD]), [*after(40), Round(10, [OLD])]).may_come.all()
