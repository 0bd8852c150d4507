from math import exp

import pytest
from palimpsest.core.recall.gaps import MARGIN
from palimpsest.evaluation.diagnosis import Segments, bleu_1, contains_match, gaps, spans, token_f1

TURN = "I'm planning to move to Seattle around mid-March."


@pytest.mark.parametrize(
    ("oracle", "stored", "retrieved", "verdict"),
    [
        (0.53, 0.22, 0.18, "write"),
        (0.53, 0.49, 0.42, "retrieval"),
        (0.53, 0.43, 0.33 + MARGIN / 2, "mixed"),
        (1.0, 1.0, 1.0, "mixed"),
    ],
)
def test_the_larger_gap_is_the_verdict_beyond_the_margin(
    oracle: float, stored: float, retrieved: float, verdict: str
) -> None:
    found = gaps(oracle, stored, retrieved)
    assert found.verdict == verdict
    assert found.write + found.retrieval == pytest.approx(oracle - retrieved)


def test_a_turn_is_preserved_where_most_words_of_it_and_its_segment_are_shared() -> None:
    assert Segments([f"hello\nAnn: {TURN}\nbye"]).keeps(TURN), "a line of an entry is a segment"
    assert Segments(["planning to move to Seattle around March"]).keeps(TURN)
    assert not Segments(["the user discussed relocation plans"]).keeps(TURN)
    assert not Segments([TURN + " And " + "more and other words follow here " * 3 + "still"]).keeps("Seattle")
    assert Segments([TURN, "soup"]).turn_recall([TURN, "no such turn"]) == 0.5


def test_spans_are_names_dates_and_numbers() -> None:
    said = "we like adoption agencies, and on 7 May 2023 we saw Seattle"
    assert spans("Adoption agencies in Seattle, 7 May 2023", said) == ["Seattle", "7", "May", "2023"]
    assert spans(None, said) == spans("yes, often", said) == []
    assert Segments([said]).span_recall(["Seattle", "Lisbon"]) == 0.5


def test_answers_are_compared_with_the_gold_answer() -> None:
    assert contains_match("It was around mid-March, I think.", "mid-March") == 1.0
    assert contains_match("It was in March.", "mid-March") == 0.0
    assert token_f1("moved to Seattle", "Seattle") == pytest.approx(0.5)
    assert token_f1("a b", "b c") == pytest.approx(0.5)
    assert token_f1("I don't know", "Seattle") == token_f1("", "a") == 0.0


def test_bleu_counts_words_of_the_answer_and_takes_from_short_ones() -> None:
    assert bleu_1("moved to Seattle", "Seattle") == pytest.approx(1 / 3)
    assert bleu_1("Seattle Seattle", "Seattle") == pytest.approx(1 / 2), "a word counts as often as the key has it"
    assert bleu_1("Seattle", "Seattle in May") == pytest.approx(exp(-2))
    assert bleu_1("", "Seattle") == 0.0
