"""What was said last is found by its meaning before it is indexed, and what is not found by it is said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from palimpsest.domain import Recalled
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Vectors
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.fresh_passages import MOST_PASSAGES
from palimpsest.memory.recall.recall import Recall

from tests.memory.recall.asking import FESTIVAL, TALK, Counts, ask, texts
from tests.remembered import Past, WordEmbedder
from tests.talking import NOW


class Aside:
    """Embeds beside questions, when it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.asked: list[str] = []
        self.fault = ""

    async def __call__(self, given: Sequence[str]) -> Vectors:
        await self.may.wait()
        if self.fault:
            raise MemoryFault(self.fault)
        self.asked += given
        return await WordEmbedder().embed_aside(given)


@pytest.fixture
def aside() -> Aside:
    return Aside()


@pytest.fixture
def recall(past: Past, aside: Aside) -> Recall:
    embedder = WordEmbedder()
    tables = PassageTables(embedder.name, embedder.dimensions)
    return Recall(past.database, tables, embedder, Counts(), lambda: NOW, embed_aside=aside)


async def asked(recall: Recall, lost: Sequence[int]) -> Recalled:
    return await recall.recall(ask(FESTIVAL, frozenset(lost)), 10)


async def test_what_was_just_said_is_found_by_its_meaning_the_newest_embedded_first(
    past: Past, recall: Recall, aside: Aside
) -> None:
    lost = await past.say(*TALK)
    while (recalled := await asked(recall, lost)).unindexed:
        pass  # the machine stood still for as long as a request waits
    assert texts(recalled)[0] == TALK[0] and recalled.candidates[0].signals["meaning"][1] > 0
    assert aside.asked == [*reversed(TALK)]
    assert (recalled.unindexed, recalled.eligible, recalled.is_too_early) == (0, len(TALK), False)
    await asked(recall, [])
    assert len(aside.asked) == len(TALK), "once"


async def test_where_the_index_is_far_behind_no_request_makes_up_for_it_and_that_is_said(
    past: Past, recall: Recall, aside: Aside
) -> None:
    many = [f"The {n}th parcel of the month went to harbour number {n * 7}." for n in range(MOST_PASSAGES + 1)]
    recalled = await asked(recall, await past.say(*many))
    assert not aside.asked
    assert (recalled.unindexed, recalled.eligible, recalled.is_too_early) == (len(many), len(many), True)


async def test_request_waits_a_moment_only_and_what_has_begun_is_there_for_the_next(
    past: Past, recall: Recall, aside: Aside
) -> None:
    lost = await past.say(*TALK)
    aside.may.clear()
    assert (await asked(recall, lost)).unindexed == len(TALK)
    assert (await asked(recall, lost)).unindexed == len(TALK), "and does not begin it twice"
    aside.may.set()
    async with asyncio.timeout(30):
        while (await asked(recall, lost)).unindexed:  # noqa: ASYNC110 - it ends beside us
            await asyncio.sleep(0.01)
    assert sorted(aside.asked) == sorted(TALK)


async def test_model_that_fails_keeps_nothing_from_being_found_by_its_words(
    past: Past, recall: Recall, aside: Aside
) -> None:
    aside.fault = "the model is gone"
    recalled = await asked(recall, await past.say(*TALK))
    assert texts(recalled)[0] == TALK[0] and recalled.unindexed == len(TALK)


def test_a_few_passages_of_many_make_no_recall_too_early() -> None:
    assert not Recalled((), False, "", unindexed=5, eligible=10).is_too_early
    assert Recalled((), False, "", unindexed=6, eligible=10).is_too_early
    assert not Recalled((), False, "", lexical_only=True, unindexed=10, eligible=10).is_too_early
