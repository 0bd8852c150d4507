from palimpsest.core.writing.compression import compressed
from palimpsest.core.writing.information import TermStatistics

COMMON = TermStatistics().with_texts(["we talked about the ferry again"] * 5)
TEXT = "So we talked about the ferry again and Orsolya did not pay 30 crowns for the varnish"


def test_the_words_that_tell_least_are_dropped() -> None:
    assert len(compressed(TEXT, COMMON, 0.6).split()) == 11
    assert compressed(TEXT, COMMON, 1.0) == TEXT
    assert "varnish" in compressed(TEXT, COMMON, 0.4)


def test_names_numbers_and_negations_stay() -> None:
    assert compressed(TEXT, COMMON, 0.1) == "Orsolya not 30"
    assert compressed("You can't go.", COMMON, 0.1) == "can't"


def test_a_long_text_is_compressed_again_and_again() -> None:
    long = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
    assert 5 < len(compressed(long, COMMON, 0.6, most_words=10).split()) <= 10
    assert len(compressed("1 2 3 4 5 6", COMMON, 1.0, most_words=2).split()) == 2


def test_nothing_is_left_of_nothing() -> None:
    assert compressed("", COMMON) == ""
