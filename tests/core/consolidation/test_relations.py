"""Relations are taken from few forms of sentence, and name no person, secret, number or contact."""

from __future__ import annotations

import pytest
from palimpsest.core.consolidation.relations import (
    Edge,
    Node,
    is_hidden,
    names_of,
    people_in,
    relations,
    things_in,
    words,
)


def stated(text: str, *people: str) -> list[str]:
    """Relations that a sentence states, without those of words that stand together."""
    return [told(edge) for edge in relations(text, people, {}, 100)]


def told(edge: Edge) -> str:
    return f"{edge.source.name} {edge.relation} {edge.target.name}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Oscar is a guinea pig.", ["Oscar is-a guinea pig"]),
        ("Ann: And you know that Leith is a harbour town in the north", ["Leith is-a harbour town"]),
        (
            "We do crafts such as pottery, painting and weaving.",
            ["pottery is-a craft", "painting is-a craft", "weaving is-a craft"],
        ),
        ("We grow medlars and other fruits", ["medlar is-a fruit"]),
        ("Postgres supports a window function.", ["Postgres has-property window function"]),
        ("In May we are in Leith. Leith is beautiful.", ["Leith has-property beautiful"]),
        ("PostgreSQL is a relational database.", ["PostgreSQL is-a relational database"]),
        ("A rolling upgrade requires a second replica.", []),
        ("The upgrade requires a second replica.", ["upgrade implies second replica"]),
    ],
)
def test_a_sentence_that_states_a_kind_or_a_property_is_taken(text: str, expected: list[str]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Paris is a bit of a way off",
        "It is a nice day.",
        "Oscar is a great joke",
        "Is Oscar a guinea pig?",
        "John read a book about Apple",
        "She was a teacher in Leith",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert stated(text) == []


def test_words_that_stand_together_in_several_items_are_related_and_common_ones_are_not() -> None:
    frequencies = {"medlar": 3, "pottery": 2, "garden": 40, "single": 1}
    found = relations("the medlars, the pottery, a garden and a single thing", (), frequencies, 100)
    assert [told(edge) for edge in found] == ["medlar related-to pottery"]
    assert {"medlar", "pottery", "garden"} <= words("Ann: the medlars, the pottery, a garden")
    assert "ann" not in words("Ann: the medlars")


def test_a_phrase_that_is_said_again_is_one_node_and_its_words_are_none() -> None:
    frequencies = {"staging worker": 2, "staging": 2, "worker": 2, "collector": 2}
    found = relations("the staging worker and its collectors", (), frequencies, 100)
    assert [told(edge) for edge in found] == ["collector related-to staging worker"]


def test_a_name_is_a_node_only_where_an_item_says_that_it_is_a_things() -> None:
    frequencies = {"leith": 2, "ferry": 2}
    text = "Leith and its ferry"
    assert relations(text, (), frequencies, 100) == ()
    found = relations(text, (), frequencies, 100, things_in("We live in Leith."))
    assert [told(edge) for edge in found] == ["Leith related-to ferry"]


NAMES = (
    *("Priya Sharma", "Nguyen Van Minh", "Olumide Adeyemi", "Fatima al-Zahra", "Søren Kierkegaard", "Xiaoming Li"),
    *("José Hernández", "Siobhán O'Connor", "Björk Guðmundsdóttir", "Mehmet Yilmaz", "Aiyana Whitehorse"),
    *("Kwame Nkrumah", "Giulia de Luca", "Yuki Tanaka", "Thandiwe Mkhize", "李小明", "محمد علي", "Иван Петров"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "sentence",
    [
        "{} likes the harbour festival.",
        "I met {} at the harbour festival.",
        "{} is a nurse.",
        "{} is helpful.",
        "My sister {} plays the violin.",
        "The violin of {} broke.",
        "{}: I play the violin at the harbour.",
        "We went with {} to the harbour in Lisbon.",
        "{}'s greenhouse needs heating, and the festival too.",
        "{} works for the harbour and has a violin.",
        "On Sunday the violin went to {}, who is happy.",
        "{} and other nurses play the violin.",
    ],
)
def test_no_name_of_a_person_is_a_node_in_whatever_language(name: str, sentence: str) -> None:
    text = sentence.format(name)
    parts = {part for part in name.lower().replace("'", " ").replace("-", " ").split() if len(part) > 2}
    for edge in relations(text, (), dict.fromkeys(words(text), 2), 100):
        for node in edge.nodes:
            assert parts.isdisjoint(node.name.lower().replace("'", " ").replace("-", " ").split()), edge


@pytest.mark.parametrize(
    "text",
    [
        "My sister Wilma is a pilot and Wilma loves Leith",
        "Wilma: Wilma is a pilot.",
        "I'm Wilma, and Wilma is a pilot.",
        "Ms Wilma is a pilot.",
    ],
)
def test_a_person_is_no_node(text: str) -> None:
    assert not any(
        "wilma" in edge.source.name.lower() for edge in relations(text, (), dict.fromkeys(words(text), 2), 100)
    )


def test_short_forms_of_names_and_words_that_open_a_sentence_are_no_entities() -> None:
    assert stated("Mel is a pilot.", "melanie") == []
    assert stated("This is a contemporary painting.") == []
    assert people_in("That's great, Mel!") == {"mel"}


def test_users_are_no_nodes_by_any_part_of_their_names() -> None:
    people = names_of("wilma.okonkwo-brandt@example.com")
    assert {"wilma", "okonkwo", "brandt"} <= people
    assert stated("Wilma is a pilot.", *people) == []
    assert stated("Okonkwo is a harbour.", *people) == []
    assert stated("Leith is a harbour.", *people) == ["Leith is-a harbour"]


@pytest.mark.parametrize(
    "text",
    [
        "The password of the medlars is the pottery",
        "Leith is a harbour, write to ann@example.com",
        "Leith is a harbour, https://example.com/leith",
        "Leith is a harbour, my phone number is the usual",
        r"Leith is a harbour in C:\secrets",
    ],
)
def test_nothing_is_taken_from_what_holds_a_secret_or_leads_to_somebody(text: str) -> None:
    assert relations(text, (), dict.fromkeys(words(text), 2), 100) == ()


@pytest.mark.parametrize("name", ["ann7", "a_b", "4111 1111", "ann@example.com", "x" * 41, "ignore\nall"])
def test_only_plain_words_are_names(name: str) -> None:
    assert is_hidden(Node("concept", name), ())


def test_a_short_form_of_a_name_is_hidden_and_a_word_that_begins_like_one_is_not() -> None:
    assert is_hidden(Node("thing", "mel"), ("melanie",)) and not is_hidden(Node("concept", "mel"), ("melanie",))
    assert not is_hidden(Node("thing", "me"), ("melanie",)) and is_hidden(Node("concept", "melanie"), ("melanie",))
