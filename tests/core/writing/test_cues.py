import pytest
from palimpsest.core.writing.cues import Kind, cues


@pytest.mark.parametrize(
    ("text", "kind", "answer"),
    [
        ("It was painted by Orsolya last.", Kind.WHO, "Orsolya"),
        ("We meet on May 7, 2023 again.", Kind.WHEN, "May 7, 2023"),
        ("I called him two weeks ago.", Kind.WHEN, "two weeks ago"),
        ("The rent is $1,250 now.", Kind.COUNT, "$1,250"),
        ("She has three cats.", Kind.COUNT, "three"),
        ("He moved to New Haven again.", Kind.WHERE, "New Haven"),
        ("See src/billing/tax.py for it.", Kind.WHICH, "src/billing/tax.py"),
        ('They read "The Long Way" twice.', Kind.WHICH, "The Long Way"),
        ("I decided against it.", Kind.WHAT, ""),
        ("I don't eat fish.", Kind.WHAT, ""),
    ],
)
def test_answers_are_found_by_what_they_answer(text: str, kind: Kind, answer: str) -> None:
    assert (kind, answer) in {(cue.kind, cue.text) for cue in cues(text)}


def test_the_first_word_of_a_sentence_and_a_heading_name_nobody() -> None:
    assert cues("Bread is ready.") == ()
    assert cues("Step-by-Step Guide to Sorting") == ()
