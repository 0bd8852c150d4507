from __future__ import annotations

from palimpsest.evaluation import palimpsest
from palimpsest.evaluation.costs import LENGTHS_CHARS, indexing, search

from tests.evaluation.told import told
from tests.remembered import WordEmbedder, meaning


async def test_both_ways_of_searching_look_at_every_passage() -> None:
    talk = told(*(f"user: The weaver sold carpet number {at}." for at in range(30)))
    async with palimpsest.opened(WordEmbedder()) as store:
        await store.write([talk])
        found = await search(store, meaning("Which carpet?"))
    assert found.passages == 30
    assert found.scan_ms > 0 < found.cache_ms


async def test_messages_of_every_length_that_the_data_suffices_for_are_indexed() -> None:
    talk = told("user: " + "The weaver of Naxos sold another carpet. " * 100)
    spent = await indexing([talk], WordEmbedder())
    assert [one.chars for one in spent] == list(LENGTHS_CHARS[:2]), "4,100 characters hold one message of 3,000 only"
    assert [one.passages for one in spent] == [1, 1]
