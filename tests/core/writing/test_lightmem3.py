from palimpsest.core.writing.entries import cost
from palimpsest.core.writing.lightmem3 import Buffers, batches, filled, turns, write

from tests.core.writing.talking import count, segment, statistics

LINES = [
    line
    for at in range(60)
    for line in (
        f"user: In {1900 + at} the keeper Orsolya{at} painted harbour{at} with {at} litres of varnish.",
        f"assistant: Then harbour{at} shone for {at} years.",
    )
]
TALK = segment(*LINES)


def test_one_call_summarises_what_fills_the_buffer() -> None:
    for size in (64, 128, 256):
        found = [*batches(TALK, count, statistics(TALK), Buffers(short_term_tokens=size))]
        filled = [sum(count(text) for topic in batch for text in topic.texts) for batch in found]
        assert all(tokens >= size for tokens in filled[:-1])
    assert len(found) * 10 <= len(turns(TALK))


def test_every_turn_is_in_one_topic_in_order() -> None:
    told = [at for batch in batches(TALK, count, statistics(TALK)) for topic in batch for at in topic.messages]
    assert told == [*range(len(TALK))]


def test_a_tighter_compression_takes_fewer_calls() -> None:
    calls = [len([*batches(TALK, count, statistics(TALK), Buffers(short_term_tokens=64, keep=k))]) for k in (0.3, 0.9)]
    assert calls[0] < calls[1]


def test_what_does_not_fill_the_buffer_stays_in_it_and_a_full_one_is_the_same_whatever_follows() -> None:
    small = Buffers(sensory_tokens=64, short_term_tokens=128)
    sizes = [filled(TALK[:stop], count, statistics(TALK), small) for stop in range(len(TALK) + 1)]
    assert sizes[4] == 0 and sizes[-1] > 0
    assert {*sizes} == {0, sizes[-1]}
    first = next(batches(TALK, count, statistics(TALK), small))
    assert first[-1].messages[-1] + 1 == sizes[-1]


def test_another_compressor_is_asked_for_each_message() -> None:
    talk = segment("user: a b c", "assistant: d e f")
    ((topic,),) = batches(talk, count, statistics(talk), compress=lambda text, most: text.upper()[:most])
    assert topic.texts == ("A B C", "D E F")


def test_a_turn_is_a_users_messages_and_the_answers_to_them() -> None:
    talk = segment("system: x", "user: a", "user: b", "assistant: c", "tool: d", "assistant: e", "user: f")
    assert turns(talk) == [(1, 2, 3, 5), (6,)]


def test_a_topic_is_one_item_with_a_name() -> None:
    items = write(TALK, 400, count, statistics(TALK))
    assert items
    assert all(item.topic for item in items)
    assert len(items) <= sum(len(batch) for batch in batches(TALK, count, statistics(TALK)))


def test_a_short_topic_keeps_its_best_statement_and_all_keep_within_the_budget() -> None:
    fact = "For the staging worker I decided that the collector listens on port 7431."
    others = ("weather", "tides", "stars", "moss", "rain", "owls")
    talk = segment(
        *(line for text in (fact, *others) for line in (f"user: Tell me something: {text}", "assistant: Noted."))
    )
    items = write(talk, 71, count, statistics(talk))
    assert any("7431" in item.text for item in items)
    assert sum(cost(item, count) for item in items) <= 71
