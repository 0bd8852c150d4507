from palimpsest.core.writing.compact_items import ITEMS_A_TURN, compacted, write

from tests.core.writing.talking import count, segment, statistics


def texts(*lines: str) -> list[str]:
    talk = segment(*lines)
    return [item.text for item in write(talk, 1000, count, statistics(talk))]


def test_what_opens_and_fills_a_sentence_is_left_out() -> None:
    assert compacted("Well, I actually just moved to a very small flat") == "I moved to a small flat"
    assert compacted("I moved") == "I moved"


def test_statements_are_kept_and_questions_and_small_talk_are_not() -> None:
    assert texts("user: Thanks a lot!", "user: Where does the ferry of Skagen leave?") == []
    assert texts("user: Well, my sister Anna lives in Skagen.") == ["my sister Anna lives in Skagen."]


def test_a_turn_gives_two_items_at_most() -> None:
    told = "user: " + " ".join(f"My aunt Orsolya{at} lives in Skagen." for at in range(6))
    assert len(texts(told)) == ITEMS_A_TURN


def test_what_the_user_tells_comes_before_what_he_is_told() -> None:
    talk = segment("user: My aunt Zoe lives in Skagen.", "assistant: The painter Krohn once lived in Skagen.")
    (item,) = write(talk, 18, count, statistics(talk))
    assert "Zoe" in item.text
