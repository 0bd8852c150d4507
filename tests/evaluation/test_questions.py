"""Chats in which facts are told, questions about them, and the words by which a right answer is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from palimpsest.evaluation.datasets import DatasetError
from palimpsest.evaluation.questions import ACKNOWLEDGED, Talk, literal, of_answer, of_fact, talks

from tests.evaluation.test_datasets import line

CHAT = {"facts": [{"text": "Our port is 9417.", "key": "9417", "question": "Which port?"}], "topics": ["What is tea?"]}
SETS = {
    "sets": {
        "en": {
            "facts": [
                {"fact": "The gate code is 4471 blue.", "question": "What is the gate code?", "kind": "identifier"},
                {"fact": "Always answer in verse.", "question": "How does rain form?", "kind": "instruction"},
            ],
            "filler": ["What is tea?", "And coffee?"],
        },
        "de": {
            "facts": [{"fact": "Der Code ist 4471.", "question": "Code?", "kind": "identifier"}],
            "filler": ["Tee?"],
        },
    }
}


def read(tmp_path: Path, data: object, *answers: str, languages: tuple[str, ...] = ()) -> list[Talk]:
    (tmp_path / "data.json").write_text(json.dumps(data))
    return talks(tmp_path / "data.json", answers, 0, languages, 42)


def test_a_key_is_looked_for_as_it_is_written() -> None:
    assert literal("Troms").holds("In TROMSØ, of course.") and not literal("Troms").holds("In Bergen.")


def test_an_answer_is_right_with_all_words_that_carry_meaning_in_any_order() -> None:
    key = of_answer("the blue house in Oslo")
    assert key.holds("In Oslo stood a house, all blue.") and not key.holds("A house in Oslo.")


def test_a_fact_is_known_by_two_words_that_the_question_does_not_hold() -> None:
    key = of_fact("We drive a 2009 Skoda Octavia.", "What car do we drive?")
    assert key.holds("You own a Skoda Octavia.")
    assert not key.holds("You drive a Skoda.") and not key.holds("A car that you drive.")
    assert of_fact("It is Monday.", "When is it?").holds("Monday.")


def test_facts_are_told_between_other_things_and_each_question_knows_its_message(tmp_path: Path) -> None:
    (talk,) = read(tmp_path, CHAT)
    (asked,) = talk.asked
    assert [talk.messages[at]["content"] for at in asked.gold] == ["Our port is 9417."]
    assert [m["content"] for m in talk.messages[1::2]] == [ACKNOWLEDGED, *(f"{ACKNOWLEDGED} ({n})" for n in (2, 3, 4))]
    assert talk.messages[0]["content"] == "What is tea?" and talk.messages[4]["content"] == "What is tea? (2)"
    assert talk.turns == (1, 3, 5, 7)


def test_the_assistant_says_what_it_is_given(tmp_path: Path) -> None:
    (talk,) = read(tmp_path, CHAT, "One.", "Two.")
    assert [m["content"] for m in talk.messages[1::2]] == ["One.", "Two.", "One. (2)", "Two. (2)"]


def test_wishes_are_left_out_and_languages_chosen(tmp_path: Path) -> None:
    english, german = read(tmp_path, SETS)
    assert (english.name, german.name) == ("data en", "data de")
    assert [asked.kind for asked in english.asked] == ["identifier"]
    assert read(tmp_path, SETS, languages=("de",)) == [german]


def test_of_conversations_those_questions_count_whose_answer_words_can_tell(tmp_path: Path) -> None:
    def question(id: str, answer: str | None, category: str = "c") -> dict[str, object]:
        return {"id": id, "question": "What?", "answer": answer, "category": category, "evidence": [1]}

    asked = [
        question("good", "a blue house"),
        question("none", None),
        question("little", "yes"),
        question("dated", "Monday", "temporal"),
        question("never said", "a house", "adversarial"),
    ]
    (tmp_path / "talk.jsonl").write_text(line(questions=asked))
    (talk,) = talks(tmp_path / "talk.jsonl", [], 0, (), 42)
    assert [each.key.reference for each in talk.asked] == ["a blue house"]
    assert [talk.text(at) for at in talk.asked[0].gold] == ["Ann: I sail on Monday."] and talk.turns == (1,)


@pytest.mark.parametrize("data", [{"facts": [], "topics": ["a"]}, {"sets": {"en": {}}}, []])
def test_other_data_is_refused(tmp_path: Path, data: object) -> None:
    with pytest.raises(DatasetError, match="expected facts and topics, or sets of facts"):
        read(tmp_path, data)
