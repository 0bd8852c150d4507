"""Topic boundaries against boundaries that are known."""

from dataclasses import replace

from palimpsest.evaluation.segmentation import GLUED, Found, glued, measured

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

TALKS = [
    told(
        *(
            line
            for at in range(4)
            for line in (f"user: tell me of {thing} number {at}", f"assistant: {thing} number {at} is well")
        )
    )
    for thing in ("ferries", "lighthouses", "dogs", "bread", "violins", "chess", "paint", "snow", "wool", "maps", "tea")
]


def test_conversations_of_one_session_are_glued_in_tens() -> None:
    (ten,) = glued(TALKS)  # the eleventh is alone
    assert len(ten.turns) == 4 * GLUED
    assert ten.begins == frozenset(range(4, 40, 4))


def test_sessions_of_a_conversation_are_its_topics() -> None:
    two = replace(
        TALKS[0],
        sessions=2,
        messages=(*TALKS[0].messages, *(replace(said, session=1) for said in TALKS[1].messages)),
    )
    (one,) = glued([two])
    assert one.begins == {4}


def test_what_is_off_by_a_turn_is_found_and_what_is_off_by_two_is_not() -> None:
    found = Found()
    found.add([5, 22], frozenset({4, 20}))
    assert (found.recall, found.precision, found.f1) == (0.5, 0.5, 0.5)
    assert Found().f1 == 0


async def test_talk_of_other_things_is_told_apart() -> None:
    found = await measured(TALKS, WordEmbedder())
    assert found["words and vectors"].recall > 0.8
    assert found["words and vectors"].precision > found["every turn"].precision
    assert found["every turn"].recall == 1.0
    assert {one.known for one in found.values()} == {GLUED - 1}
