from __future__ import annotations

from dataclasses import replace

import pytest
from palimpsest.domain import Reach, ToolCall
from palimpsest.evaluation import palimpsest
from palimpsest.evaluation.palimpsest import DAY_SECONDS, Palimpsest, with_option

from tests.evaluation.told import START, told
from tests.remembered import WordEmbedder

TALK = told(
    "system: You are a travel guide.",
    "user: When is the harvest festival in Lisbon?",
    "assistant: The harvest festival in Lisbon begins on the third of May.",
    "user: My sister Clara plays the violin.",
    "assistant: Since when does she play?",
    "user: My key is password=hunter2hunter2 for the greenhouse door.",
    apart_seconds=DAY_SECONDS,
)
FESTIVAL = "When does the harvest festival in Lisbon begin?"
ROOM_CHARS = 540  # a quarter of it is the frame


async def test_a_block_is_what_the_proxy_would_say() -> None:
    async with Palimpsest(WordEmbedder()).opened(TALK) as reader:
        pack = await reader.pack(FESTIVAL, ROOM_CHARS)
    assert pack.admitted and pack.elapsed_ms > 0
    assert pack.text.startswith('<palimpsest-memory kind="restore">') and len(pack.text) <= ROOM_CHARS
    assert "[2023-11-16]" in pack.text, "dates are the data's"
    assert pack.messages[0] == pack.ranked[0] and {1, 2} <= {*pack.messages}
    assert 0 not in pack.ranked, "instructions are not recalled"


async def test_what_is_not_relevant_gets_nothing() -> None:
    async with Palimpsest(WordEmbedder()).opened(TALK) as reader:
        pack = await reader.pack("Write a haiku about autumn leaves.", 500)
    assert (pack.admitted, pack.text, pack.messages, pack.ranked) == (False, "", (), ())


async def test_only_what_was_dropped_comes_back() -> None:
    async with Palimpsest(WordEmbedder()).opened(TALK) as reader:
        assert (await reader.pack(FESTIVAL, 500, dropped=2)).ranked == (1,)
        assert not (await reader.pack(FESTIVAL, 500, dropped=0)).admitted


async def test_credentials_are_redacted_as_in_the_archive() -> None:
    async with Palimpsest(WordEmbedder()).opened(TALK) as reader:
        pack = await reader.pack("What is the key for the greenhouse door?", 500)
    assert 5 in pack.messages and "hunter2" not in pack.text


async def test_tool_calls_are_remembered() -> None:
    call = ToolCall("c1", "book_train", '{"to": "Porto"}')
    talk = told("user: go on", "assistant: ", "tool: seat 14B reserved", calls=(call,))
    async with Palimpsest(WordEmbedder()).opened(talk) as reader:
        assert "book_train" in (await reader.pack("which book_train call was it?", 500)).text


@pytest.mark.parametrize("name", ["palimpsest-items", "palimpsest-graph", "palimpsest-both"])
async def test_a_system_that_goes_by_items_keeps_some_and_quotes_passages(name: str) -> None:
    async with with_option(WordEmbedder(), None, name).opened(TALK) as reader:
        ((items,),) = await reader._store.database.read("SELECT count(*) FROM item")
        pack = await reader.pack(FESTIVAL, ROOM_CHARS)
    assert items > 0
    assert {1, 2} <= {*pack.messages}


async def test_a_system_takes_the_option_that_it_is_named_for() -> None:
    found = {}
    for name in ("palimpsest-floor", "palimpsest-not-episodic", "palimpsest-reinforced"):
        async with with_option(WordEmbedder(), None, name).opened(TALK) as reader:
            found[name] = [(await reader.pack(FESTIVAL, ROOM_CHARS)).messages for _ in range(2)]
            ((rounds,),) = await reader._store.database.read("SELECT count(*) FROM block")
            assert rounds == (2 if name == "palimpsest-reinforced" else 0)
    async with Palimpsest(WordEmbedder()).opened(TALK) as reader:
        usual = (await reader.pack(FESTIVAL, ROOM_CHARS)).messages
    assert len(found["palimpsest-floor"][0]) < len(usual)
    assert len(found["palimpsest-not-episodic"][0]) < len(usual)
    assert found["palimpsest-reinforced"][0] == usual


async def test_benchmarks_that_ask_for_no_probability_are_always_answered() -> None:
    async with Palimpsest(WordEmbedder()).opened(TALK) as reader:
        assert (await reader.pack("Does Clara like autumn leaves in Oslo?", 500)).admitted


async def test_one_store_takes_many_conversations_and_tells_them_apart() -> None:
    other = replace(told("user: The violin of Clara is in repair.", "assistant: A pity."), id="other")
    async with palimpsest.opened(WordEmbedder()) as store:
        await store.write([TALK])
        await store.write([other])
        assert store.occurrences(other) == (7, 8)
        asked = "Where is the violin of Clara?"
        assert "repair" not in (await store.reader(TALK).pack(asked, 500)).text
        wide = await store.reader(TALK, reach=Reach.TENANT).pack(asked, 500)
        assert "repair" in wide.text and {*wide.ranked} <= {*range(6)}
        rows = await store.database.read("SELECT created_at FROM occurrence ORDER BY id")
        assert [row[0] for row in rows[:6]] == [START + at * DAY_SECONDS for at in range(6)]
        assert await store.database.read("SELECT count(*) FROM unindexed") == [(0,)]
