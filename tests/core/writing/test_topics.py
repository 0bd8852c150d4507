import numpy as np
import pytest
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.topics import boundaries, label

SHIP = ["the ferry needs paint", "paint for the ferry is dear", "the ferry and its paint", "ferry paint came today"]
DOG = ["my dog eats fish", "the dog hates fish soup", "fish makes a dog fat", "that dog and the fish"]


def test_talk_of_other_things_begins_a_topic() -> None:
    assert boundaries([*SHIP, *DOG], TermStatistics()) == [4]


def test_talk_of_one_thing_has_no_boundary_where_it_shares_least() -> None:
    assert boundaries(SHIP, TermStatistics()) == []


@pytest.mark.parametrize("step", [0.4, 2.0], ids=["cosine .93 between topics", "cosine .45"])
def test_how_far_apart_topics_are_is_told_by_the_rest_of_the_talk(step: float) -> None:
    vectors = np.array([[1, 0], [1, 0.1], [1, 0], [1, 0.1], *[[1, step], [1, step + 0.1]] * 2])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert boundaries([*SHIP, *DOG], TermStatistics(), vectors) == [4]


def test_words_and_vectors_decide_together() -> None:
    elsewhere = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 2)
    assert boundaries([*SHIP, *DOG], TermStatistics(), elsewhere) == []


def test_few_turns_are_one_topic() -> None:
    assert boundaries([], TermStatistics()) == []
    assert boundaries(["one"], TermStatistics()) == []


def test_a_label_names_what_is_said_again_and_again() -> None:
    assert set(label(SHIP, TermStatistics(), 2).split(", ")) == {"ferry", "paint"}
    assert label([], TermStatistics()) == ""
