from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.block.packing import MIN_FILL_CHARS
from palimpsest.evaluation.filling import Piece, filled


def test_the_best_pieces_come_first_and_what_did_not_fit_is_still_ranked() -> None:
    pack = filled([Piece("a" * 100, (2,)), Piece("b" * 100, (0, 1)), Piece("c" * 50, (3,))], 160, 0.0)
    assert pack.text == "a" * 100 + "\n" + "c" * 50
    assert (pack.messages, pack.ranked) == ((2, 3), (2, 0, 1, 3))


def test_a_piece_is_cut_to_the_room_that_is_left_if_that_is_enough() -> None:
    long = Piece("x" * 1000, (0,))
    assert filled([long], MIN_FILL_CHARS, 0.0).text == "x" * MIN_FILL_CHARS
    assert filled([long], MIN_FILL_CHARS - 1, 0.0).text == ""


def test_nothing_that_fits_is_nothing_admitted() -> None:
    assert not filled([], 100, 0.0).admitted
    assert not filled([Piece(" \n", (0,))], 100, 0.0).admitted


@given(st.lists(st.text(max_size=700)), st.integers(0, 2000))
def test_the_budget_is_never_exceeded(texts: list[str], budget: int) -> None:
    pieces = [Piece(text, (at,)) for at, text in enumerate(texts)]
    assert len(filled(pieces, budget, 0.0).text) <= budget
