import numpy as np
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.topics import boundaries, label

SHIP = ["the ferry needs paint", "paint for the ferry is dear", "the ferry and its paint", "ferry paint came today"]
DOG = ["my dog eats fish", "the dog hates fish soup", "fish makes a dog fat", "that dog and the fish"]


def test_talk_of_other_things_begins_a_topic() -> None:
    assert boundaries([*SHIP, *DOG], TermStatistics()) == [4]
    assert boundaries(SHIP, TermStatistics()) == []


def test_where_there_are_vectors_their_distance_decides_too() -> None:
    apart = np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4)
    alike = np.array([[1.0, 0.0]] * 8)
    assert boundaries([*SHIP, *DOG], TermStatistics(), apart) == [4]
    assert boundaries([*SHIP, *DOG], TermStatistics(), alike) == []


def test_few_turns_are_one_topic() -> None:
    assert boundaries([], TermStatistics()) == []
    assert boundaries(["one"], TermStatistics()) == []


def test_a_label_names_what_is_said_again_and_again() -> None:
    assert set(label(SHIP, TermStatistics(), 2).split(", ")) == {"ferry", "paint"}
    assert label([], TermStatistics()) == ""
