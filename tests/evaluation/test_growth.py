from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from palimpsest.domain import Reach
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Vectors
from palimpsest.evaluation import growth, palimpsest
from palimpsest.evaluation.datasets import Conversation, Question

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

OWN = replace(
    told("user: Where does the ferry to Naxos leave?", "assistant: From gate E2 in Piraeus, at half past seven."),
    id="own",
    questions=(Question("q", "From which gate does the ferry to Naxos leave?", None, "one", ("m1",)),),
)
NOISE = [
    replace(told(*(f"user: The weaver sold carpet number {at} on day {at + day}." for at in range(30))), id=f"n{day}")
    for day in range(4)
]


class CountingEmbedder(WordEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.passages = 0

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages += len(texts)
        return await super().embed_passages(texts)


def finished(folder: Path) -> list[Path]:
    return [made for made in folder.iterdir() if made.suffix != ".part"]


async def prepare(folder: Path, memories: int, embedder: WordEmbedder, seed: int | None = None) -> Path:
    return await growth.prepare(folder, memories, [OWN], NOISE, cast(Any, embedder), seed)


async def test_a_store_holds_what_is_asked_and_noise_up_to_its_size(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    made = await prepare(tmp_path, 50, embedder)
    async with palimpsest.opened(embedder, folder=made) as store:
        assert 50 <= await growth.count_of(store) <= 50 + growth.PART_MESSAGES
        await store.know([OWN])
        recalled = await store.reader(OWN, reach=Reach.TENANT).recall(OWN.questions[0].text)
    assert [found.memory.text for found in recalled.candidates[:2]] == [said.text for said in OWN.messages]
    assert embedder.passages == len(OWN.messages), "noise is embedded as questions are, in a tenth of the time"


async def test_a_store_is_made_once(tmp_path: Path) -> None:
    made = await prepare(tmp_path, 50, CountingEmbedder())
    again = CountingEmbedder()
    assert await prepare(tmp_path, 50, again) == made
    assert finished(tmp_path) == [made]
    assert (again.passages, again.asked) == (0, [])


async def test_too_little_noise_is_said_and_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="name more --noise"):
        await prepare(tmp_path, 500, CountingEmbedder())
    assert finished(tmp_path) == []


async def test_where_speed_alone_counts_all_is_said_again_with_vectors_drawn_at_random(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    once = 2 + 4 * 30
    made = await prepare(tmp_path, 2 * once + 1, embedder, seed=1)
    async with palimpsest.opened(embedder, folder=made) as store:
        assert await growth.count_of(store) == 3 * once
        ((vectors, different),) = await store.database.read("SELECT count(*), count(DISTINCT own) FROM vector")
        ((own,),) = await store.database.read("SELECT own FROM vector ORDER BY memory DESC LIMIT 1")
        ((holding, said),) = await store.database.read(
            "SELECT memories, (SELECT count(*) FROM memory_text WHERE memory_text MATCH 'naxo')"
            " FROM term WHERE term = 'naxo'"
        )
    assert vectors == 3 * once
    assert different > 2 * once
    assert np.linalg.norm(np.frombuffer(own, np.float16).astype(np.float32)) == pytest.approx(1, abs=1e-3)
    assert holding == said == 3


def test_a_part_of_a_conversation_is_asked_only_what_it_answers() -> None:
    conversation: Conversation = OWN
    assert growth.part_of(conversation, 1.0) == conversation
    assert growth.part_of(conversation, 0.5).questions == ()
    assert len(growth.part_of(conversation, 0.5).messages) == 1
