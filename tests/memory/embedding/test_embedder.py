"""The embedding model in two processes, and what happens while it is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.embedder import (
    QUESTION_CHARS,
    REMEMBERED_QUESTIONS,
    WAITING_QUESTIONS,
    LocalEmbedder,
    gist,
)
from palimpsest.memory.embedding.encoder import QUESTION_TOKENS
from palimpsest.memory.embedding.minilm import MiniLMEncoder
from palimpsest.memory.embedding.model import cache_folder
from palimpsest.settings.policy import ModelPolicy

pytestmark = pytest.mark.slow

Make = Callable[[ModelPolicy], LocalEmbedder]


class Counted:
    """Counts that a test can read."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.gauges: dict[str, float] = {}

    def fault(self, where: str) -> None:
        raise AssertionError(where)

    def observe(self, stage: str, seconds: float) -> None:
        self.stages.append(stage)

    def gauge(self, name: str, value: float, *labels: str) -> None:
        self.gauges[name] = value

    def add(self, name: str, amount: float, *labels: str) -> None:
        raise AssertionError(name)


@pytest.fixture
def counts() -> Counted:
    return Counted()


@pytest.fixture
async def make(counts: Counted) -> AsyncIterator[Make]:
    made: list[LocalEmbedder] = []

    def embedder(policy: ModelPolicy) -> LocalEmbedder:
        made.append(LocalEmbedder(policy, counts))
        return made[-1]

    yield embedder
    for each in made:
        await each.close()


def passage_processes() -> list[int]:
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            found += [child.pid] if "palimpsest.memory.embedding.embedding_worker" in child.cmdline() else []
    return found


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  what we wait for is a plain value
            await asyncio.sleep(0.01)


async def test_questions_and_passages_live_in_the_same_space(make: Make, counts: Counted, model_folder: Path) -> None:
    embedder = make(ModelPolicy(folder=model_folder))
    assert counts.gauges == {"embedder_ready": 0}
    assert await embedder.warm()
    text = "Which port does Postgres use?"
    (own,) = await embedder.embed_queries([text])
    assert own.shape == (384,)
    passages = await embedder.embed_passages([text, "I like Thai food more than Italian food."])
    assert passages[0] == pytest.approx(MiniLMEncoder(model_folder, 1).embed([text])[0], abs=1e-5)
    assert passages[0] @ own > 0.97  # the question went through 8-bit integers
    assert passages[1] @ own < 0.2
    assert (embedder.ready, embedder.status, counts.gauges) == (True, "ready", {"embedder_ready": 1})


async def test_question_asked_again_is_not_computed_again(make: Make, counts: Counted, model_folder: Path) -> None:
    embedder = make(ModelPolicy(folder=model_folder))
    await embedder.warm()
    first = await embedder.embed_queries(["Which port?"])
    assert await embedder.embed_queries(["Which port?"]) is first
    assert counts.stages == ["embed_query"]
    for number in range(REMEMBERED_QUESTIONS):
        await embedder.embed_queries([f"{number}"])
    assert await embedder.embed_queries(["Which port?"]) is not first


async def test_question_asked_twice_at_once_is_computed_once_and_survives_one_who_leaves(
    make: Make, counts: Counted, model_folder: Path
) -> None:
    embedder = make(ModelPolicy(folder=model_folder))
    await embedder.warm()
    leaves, stays = (asyncio.ensure_future(embedder.embed_queries(["Which port?"])) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    assert (await stays).shape == (1, 384)
    assert leaves.cancelled()
    assert counts.stages == ["embed_query"]


async def test_questions_that_nobody_waits_for_any_more_are_not_computed(
    make: Make, counts: Counted, model_folder: Path
) -> None:
    embedder = make(ModelPolicy(folder=model_folder))
    await embedder.warm()
    leaving = [asyncio.ensure_future(embedder.embed_queries([f"Which port, number {n}?"])) for n in range(50)]
    await asyncio.sleep(0)
    for question in leaving:
        question.cancel()
    await asyncio.wait(leaving)
    again = await asyncio.gather(*(embedder.embed_queries(["Which port, number 49?"]) for _ in range(3)))
    assert [vectors.shape for vectors in again] == [(1, 384)] * 3
    assert len(counts.stages) < 10, "those that had begun, and the last"


async def test_questions_that_would_wait_too_long_are_refused_at_once_and_those_in_front_are_answered(
    make: Make, model_folder: Path
) -> None:
    embedder = make(ModelPolicy(folder=model_folder))
    await embedder.warm()
    many = [embedder.embed_queries([f"Which port, number {n}?"]) for n in range(WAITING_QUESTIONS + 20)]
    answers = await asyncio.gather(*many, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, MemoryFault)]
    assert len(refused) == 20 and "others wait" in str(refused[0])
    assert (await embedder.embed_queries(["And now?"])).shape == (1, 384)


async def test_who_asks_while_the_model_is_loaded_may_wait_for_it(make: Make, model_folder: Path) -> None:
    embedder = make(ModelPolicy(folder=model_folder))
    assert not await embedder.loaded(60)  # nobody has begun: nothing to wait for
    warming = asyncio.create_task(embedder.warm())
    await asyncio.sleep(0)
    assert (embedder.is_loading, embedder.ready) == (True, False)
    assert not await embedder.loaded(0)
    assert await embedder.loaded(60)
    assert await warming
    assert not embedder.is_loading


async def test_the_process_that_embeds_passages_ends_when_there_are_none_and_comes_back(
    counts: Counted, model_folder: Path
) -> None:
    embedder = LocalEmbedder(ModelPolicy(folder=model_folder), counts, rest_seconds=0.2)
    try:
        assert await embedder.warm()
        for _ in range(2):
            assert (await embedder.embed_passages(["5433"])).shape == (1, 384)
            await until(lambda: not passage_processes())
        assert embedder.ready and (await embedder.embed_queries(["Which port?"])).shape == (1, 384)
    finally:
        await embedder.close()


async def test_process_that_hangs_or_is_killed_is_a_fault_and_the_next_call_starts_another(
    counts: Counted, model_folder: Path
) -> None:
    embedder = LocalEmbedder(ModelPolicy(folder=model_folder), counts, hung_seconds=1.0, passage_seconds=0.0)
    try:
        assert await embedder.warm()
        (hanging,) = passage_processes()
        os.kill(hanging, signal.SIGSTOP)
        with pytest.raises(MemoryFault, match="their process ended"):
            await embedder.embed_passages(["one"])
    finally:
        await embedder.close()
    patient = LocalEmbedder(ModelPolicy(folder=model_folder), counts)
    try:
        assert await patient.warm()
        os.kill(passage_processes()[0], signal.SIGKILL)
        with pytest.raises(MemoryFault, match="their process ended"):
            await patient.embed_passages(["one"])
        assert (await patient.embed_passages(["one"])).shape == (1, 384)
    finally:
        await patient.close()


async def test_missing_model_is_a_fault_that_says_so(make: Make, tmp_path: Path) -> None:
    embedder = make(ModelPolicy(cache=tmp_path, download="never"))
    assert not await embedder.warm()
    assert not embedder.ready
    with pytest.raises(MemoryFault, match="embedding a question: not loaded yet"):
        await embedder.embed_queries(["Which port?"])
    with pytest.raises(MemoryFault, match="embedding passages"):
        await embedder.embed_passages(["5433"])


async def test_model_that_arrives_is_picked_up(make: Make, model_folder: Path, tmp_path: Path) -> None:
    embedder = make(ModelPolicy(folder=tmp_path / "mine", cache=tmp_path / "cache", download="never"))
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.watch())
        await until(lambda: "download is never" in embedder.status)
        assert not embedder.ready
        shutil.copytree(model_folder, tmp_path / "arriving")
        (tmp_path / "arriving").rename(tmp_path / "mine")
    assert embedder.ready  # the watch ended by itself
    assert (await embedder.embed_queries(["Which port?"])).shape == (1, 384)


async def test_damaged_model_waits_for_a_better_one(make: Make, model_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model_folder, tmp_path / "mine")
    (folder / "model.onnx").write_bytes(b"this is no model")
    embedder = make(ModelPolicy(folder=folder, cache=tmp_path / "cache", download="never"))
    assert not await embedder.warm()
    assert "loading the embedding model" in embedder.status
    (tmp_path / "better.onnx").write_bytes((model_folder / "model.onnx").read_bytes())
    (tmp_path / "better.onnx").replace(folder / "model.onnx")
    assert await embedder.warm()


async def test_model_without_the_faster_copy_embeds_questions_exactly(
    make: Make, model_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(model_folder, tmp_path / "mine", ignore=shutil.ignore_patterns("questions"))
    embedder = make(ModelPolicy(folder=folder))
    assert await embedder.warm()
    exact = MiniLMEncoder(model_folder, 1).embed(["Which port?"])[0]
    assert (await embedder.embed_queries(["Which port?"]))[0] == pytest.approx(exact, abs=1e-6)


async def test_of_a_question_of_many_short_words_the_first_64_tokens_count(make: Make, model_folder: Path) -> None:
    embedder = make(ModelPolicy(folder=model_folder))
    assert await embedder.warm()
    dense = "a " * (QUESTION_TOKENS - 2)  # and the two that every text begins and ends with
    first, second, shorter = await embedder.embed_queries([dense + "cat", dense + "dog", dense[:-2] + "cat"])
    assert first == pytest.approx(second, abs=1e-6)
    assert first != pytest.approx(shorter, abs=1e-3)


def test_long_question_is_read_at_its_beginning_and_its_end() -> None:
    short = "Why does the importer stop? " * 8
    assert gist(short) == short
    text = f"Why does the importer stop? {'at line 1 of main.py ' * 500} It worked on Monday."
    assert gist(text).startswith("Why does the importer stop? at line 1")
    assert gist(text).endswith("of main.py  It worked on Monday.")
    assert len(gist(text)) <= QUESTION_CHARS
    assert len(gist("x" * 10_000)) <= QUESTION_CHARS + 1


async def test_damaged_model_in_our_cache_is_fetched_again(make: Make, model_folder: Path, tmp_path: Path) -> None:
    policy = ModelPolicy(cache=tmp_path)
    folder = shutil.copytree(model_folder, cache_folder(policy))
    (folder / "model.onnx").write_bytes(b"this is no model")
    embedder = make(policy)
    await embedder.watch()
    assert embedder.ready


async def test_closing_ends_a_fetch_and_leaves_nothing(make: Make, tmp_path: Path) -> None:
    embedder = make(ModelPolicy(cache=tmp_path))
    watching = asyncio.create_task(embedder.watch())
    await until(lambda: embedder.status.startswith("fetching"))
    await embedder.close()
    await watching
    assert not embedder.ready
    assert list((tmp_path / "models").iterdir()) == []
