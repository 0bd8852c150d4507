"""Questions with known answers, made of what messages say."""

from __future__ import annotations

from random import Random

import pytest
from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.probes import CUE_WORDS, PIECE_CHARS, answers, probe

EXPORTER = "For the home server I decided that the metrics exporter listens on port 9417."


def asked_for(text: str, role: str = "user") -> set[str]:
    return {answer.text for answer in answers(text, role, Random(1).randrange)}


def first(number: int) -> int:
    """The least of those that could be chosen."""
    return 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EXPORTER, "9417"),
        ("The nightly report is written by tools/nightly_report.py since the move.", "tools/nightly_report.py"),
        ("My sister told me that Clara plays the violin in the town orchestra.", "Clara"),
        ("We moved the harvest meeting of the whole team to January because of rain.", "January"),
        ("Der Server im Keller lauscht seit gestern auf dem Port 9417, sagte ich.", "9417"),
    ],
)
def test_statements_are_asked_for_the_one_thing_that_they_name(text: str, expected: str) -> None:
    assert expected in asked_for(text)


@pytest.mark.parametrize(
    "text",
    [
        "Which port does the metrics exporter of the home server use, 9417 or 9100?",  # asks itself
        "Port 9417.",  # tells nothing to ask by
        "thanks, that looks good to me and I will go on with it tomorrow then",  # names nothing
        "x" * 700 + " 9417",  # data
    ],
)
def test_what_could_not_be_asked_for_is_left_out(text: str) -> None:
    made = [probe(answer, first) for answer in answers(text, "user", first)]
    assert not any(made)


def test_an_answer_stands_where_its_place_says() -> None:
    text = f"Good morning to all of you.\n{EXPORTER} And that is that."
    for answer in answers(text, "user", first):
        assert text[answer.start : answer.stop] == answer.text


def test_a_question_repeats_three_words_and_gives_nothing_of_the_answer_away() -> None:
    (answer,) = (one for one in answers(EXPORTER, "user", first) if one.text == "9417")
    made = probe(answer, Random(7).randrange)
    assert made is not None
    assert made.question.startswith("What did I say about ") and "9417" not in made.question
    said = set(query_terms(EXPORTER))
    assert len(said.intersection(query_terms(made.question))) == CUE_WORDS


def test_the_same_chance_asks_the_same() -> None:
    def ask(seed: int) -> list[object]:
        chance = Random(seed).randrange
        return [probe(answer, chance) for answer in answers(EXPORTER, "user", chance)]

    assert ask(3) == ask(3)


def test_what_was_redacted_is_asked_for_and_known_to_be_lost() -> None:
    text = "The deploy key of the staging machine is [redacted:openai] since the last rotation."
    marks = [answer for answer in answers(text, "user", first) if answer.is_redacted]
    assert [answer.text for answer in marks] == ["[redacted:openai]"]
    made = probe(marks[0], first)
    assert made is not None and "redacted" not in made.question


def test_a_question_is_in_the_language_of_its_statement() -> None:
    text = "Der Server im Keller lauscht seit gestern auf dem Port 9417, sagte ich."
    (answer,) = (one for one in answers(text, "user", first) if one.text == "9417")
    made = probe(answer, first)
    assert made is not None and made.question.startswith("Was hatte ich")


@pytest.mark.repeats
def test_all_places_of_a_long_text_may_be_asked_for_at_the_cost_of_one_piece() -> None:
    lines = [f"The account of the customer in row {number} was closed in the audit." for number in range(4000)]
    text = "\n".join(lines)
    chance = Random(5).randrange
    places = [one.start for _ in range(20) for one in answers(text, "tool", chance)]
    assert max(places) - min(places) > len(text) / 2
    one_look = [answer.start for answer in answers(text, "tool", chance)]
    assert max(one_look) - min(one_look) <= PIECE_CHARS
