"""
Stores of many memories, made once for many runs: own conversations, and noise up to the size.

Noise is what other people said. Its vectors are those of each passage's beginning and end, by the copy of the model
that embeds questions: real ones, at a tenth of the time, good enough for what is only in the way. What comes after all
of the noise is said, is said again, under other ids and with vectors drawn at random: good for time and memory alone.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from palimpsest.core.archive.chunking import split_into_passages
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Vectors
from palimpsest.evaluation import palimpsest
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.palimpsest import Store
from palimpsest.evaluation.report import progress
from palimpsest.evaluation.rows import copy_rows, id_offset, multiply_term_counts, passages_without_vector
from palimpsest.evaluation.vectors import CachedEmbedder
from palimpsest.memory.embedding.model import cache_folder
from palimpsest.settings.policy import ModelPolicy
from palimpsest.store import version
from palimpsest.store.search.derived import Derived
from palimpsest.store.turns.stats import count

PART_MESSAGES = 100  # of noise are written at a time: sizes are met to within a few hundred passages
DRAWN_AT_ONCE = 10_000  # vectors, 15 MB


class Hurried:
    """Implements `palimpsest.domain.ports.Embedder` for noise."""

    def __init__(self, embedder: CachedEmbedder) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.ready = True

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.embed_queries(texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.concatenate([await self._embedder.embed_queries([text]) for text in texts])


def stores_folder() -> Path:
    """The folder of stores that are kept for the next run: gigabytes, which may be deleted."""
    return cache_folder(ModelPolicy()).parent.parent / "evaluation" / "growth"


async def prepare(
    folder: Path,
    memories: int,
    own: Sequence[Conversation],
    noise: Sequence[Conversation],
    embedder: CachedEmbedder,
    seed: int | None = None,
) -> Path:
    """
    The data folder of a store of about so many memories, made unless it is there.

    Args:
        folder: where such stores are kept.
        memories: passages wanted; `own` is written whole in any case.
        seed: of the vectors of what is said again where the noise does not suffice; None: it must suffice.

    Raises:
        PolicyError: it does not.
    """
    made = folder / f"{_key(own, noise, seed)}-{memories}"
    if made.exists():
        return made
    making = made.with_suffix(".part")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    async with palimpsest.opened(embedder, folder=making) as store:
        await store.write(own)
    async with palimpsest.opened(Hurried(embedder), folder=making) as store:
        with progress() as bar:
            task = bar.add_task(f"writing {memories:,} memories", total=memories)
            for part in _parts(noise):
                bar.update(task, completed=(count := await count_of(store)))
                if count >= memories:
                    break
                await store.write([part])
            if seed is not None:
                await _repeat(store, memories, seed, lambda count: bar.update(task, completed=count))
            elif noise and (count := await count_of(store)) < memories:
                raise PolicyError(
                    f"--sizes {memories}: data and noise make {count} memories; name more --noise, or measure the time"
                    " alone with --speed-sizes"
                )
    making.rename(made)
    return made


def part_of(conversation: Conversation, share: float) -> Conversation:
    """The beginning of a conversation, and the questions that it answers."""
    messages = conversation.messages[: max(1, round(share * len(conversation.messages)))]
    there = {said.id for said in messages}
    questions = tuple(asked for asked in conversation.questions if there.issuperset(asked.evidence))
    return replace(conversation, messages=messages, questions=questions)


async def count_of(store: Store) -> int:
    """How many memories a store has."""
    return await store.database.ask(lambda ask: count(ask, "memories"))


def _parts(noise: Sequence[Conversation]) -> Iterator[Conversation]:
    """Pieces of all conversations in turn, so that every size holds something of each."""
    cut = [
        [
            replace(said, id=f"noise-{number}-{at}", messages=said.messages[at : at + PART_MESSAGES], questions=())
            for at in range(0, len(said.messages), PART_MESSAGES)
        ]
        for number, said in enumerate(noise)
    ]
    return (part for part in chain.from_iterable(zip_longest(*cut)) if part is not None)


async def _repeat(store: Store, memories: int, seed: int, report: Callable[[int], None]) -> None:
    """Copy all rows until there are so many memories, and draw vectors at random for the copies."""
    database, once = store.database, await count_of(store)
    offset = await database.ask(id_offset)
    copies = -(-memories // once)
    for copy in range(1, copies):
        await database.transact(functools.partial(copy_rows, copy=copy, id_offset=offset))
        report(await count_of(store))
    await database.transact(functools.partial(multiply_term_counts, copies=copies))
    draw, derived = np.random.default_rng(seed), Derived(database, time.time)
    while ids := await database.ask(functools.partial(passages_without_vector, limit=DRAWN_AT_ONCE)):
        drawn = draw.standard_normal((len(ids), store.embedder.dimensions), np.float32)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        await derived.save_vectors(store.embedder.name, dict(zip(ids, drawn, strict=True)))


def _key(own: Sequence[Conversation], noise: Sequence[Conversation], seed: int | None) -> str:
    """A name of the store, another one where the data, or what is made of it, is another."""
    cut = [split_into_passages(said.text, said.role) for conversation in own for said in conversation.messages]
    texts = (said.text for conversation in (*own, *noise) for said in conversation.messages)
    told = "\0".join((f"{version.VERSION} {PART_MESSAGES} {seed} {cut}", *texts))
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
