"""Questions about "the user", as the user would ask them."""

from __future__ import annotations

import pytest
from palimpsest.core.recall.third_person import as_user


@pytest.mark.parametrize(
    ("question", "own"),
    [
        ("where does the user live", "where do I live"),
        ("Who is the user's manager?", "Who is my manager?"),
        ("Is the user allergic to nuts?", "Am I allergic to nuts?"),
        ("What has this user decided?", "What have I decided?"),
        ("the user was where in May?", "I was where in May?"),
        ("what did you promise to the user", "what did you promise to me"),
        ("Which port did you tell the user?", "Which port did you tell me?"),
        ("what does the user\u2019s sister play", "what does my sister play"),
        ("Which editor did the user choose?", "Which editor did I choose?"),
    ],
)
def test_the_user_is_the_one_who_asks(question: str, own: str) -> None:
    assert as_user(question) == own


@pytest.mark.parametrize(
    "question", ["", "Where do I live?", "Which users table has the key?", "the username", "¿Quién?"]
)
def test_a_question_about_nobody_is_left_as_it_is(question: str) -> None:
    assert as_user(question) == question
