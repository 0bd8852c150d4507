"""
How is a store of many memories made, once for many runs? Own conversations, and noise up to the size.

Noise is what other people said. Its vectors are those of each passage's beginning and end, by the copy of the model
that embeds questions: real ones, at a tenth of the time, good enough for what is only in the way. What comes after all
of the noise is said, is said again, under other ids and with vectors drawn at random: good for time and memory alone.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from proxy.core.archive.chunking import digest
from proxy.embedding.minilm import DIMENSIONS
from proxy.embedding.model import cache_folder
from proxy.errors import PolicyError
from proxy.evaluation import palimpsest
from proxy.evaluation.datasets import Conversation
from proxy.evaluation.palimpsest import Store
from proxy.evaluation.report import progress
from proxy.evaluation.vectors import CachedEmbedder
from proxy.ports import Vectors
from proxy.settings.policy import ModelPolicy
from proxy.store import schema

PART_MESSAGES = 100  # of noise are written at a time: sizes are met to within a few hundred passages
DRAWN_AT_ONCE = 10_000  # vectors, 15 MB

# One telling more: every row of the first one once again, its ids moved on. Texts are stored once either way.
AGAIN = (
    "INSERT INTO conversation SELECT id + ?1, tenant, public || '/' || ?1, role, parent, user, scope, created_at"
    " FROM conversation WHERE id < ?2",
    "INSERT INTO occurrence SELECT id + ?1, conversation + ?1, turn, position, content, abs(random()), opening, flags,"
    " role, created_at FROM occurrence WHERE id < ?2",
    "INSERT INTO memory SELECT id + ?1, tenant, conversation + ?1, occurrence + ?1, start, stop, tags, kind"
    " FROM memory WHERE id < ?2",
    "INSERT INTO memory_text(rowid, tokens) SELECT rowid + ?1, tokens FROM memory_text WHERE rowid < ?2",
)


class Hurried:
    """Implements `proxy.ports.Embedder` for noise."""

    def __init__(self, embedder: CachedEmbedder) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.ready = True

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.embed_queries(texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.concatenate([await self._embedder.embed_queries([text]) for text in texts])


def stores_folder() -> Path:
    """Where stores are kept for the next run: gigabytes, which may be deleted."""
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
    """How many memories there are."""
    ((count,),) = await store.database.read("SELECT count(*) FROM memory")
    return int(count)


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
    """Say all of it again until there are so many memories."""
    database, once = store.database, await count_of(store)
    ((apart,),) = await database.read("SELECT max(seq) + 1 FROM sqlite_sequence")
    tellings = -(-memories // once)
    for number in range(1, tellings):
        await database.write([(sql, [(number * apart, apart)]) for sql in AGAIN])
        report(await count_of(store))
    await database.write([("UPDATE term SET memories = memories * ?", [(tellings,)])])
    draw = np.random.default_rng(seed)
    while True:
        rows = await database.read(
            "SELECT id FROM memory WHERE id > (SELECT ifnull(max(memory), 0) FROM vector) ORDER BY id LIMIT ?",
            (DRAWN_AT_ONCE,),
        )
        if not rows:
            return
        drawn = draw.standard_normal((len(rows), DIMENSIONS), np.float32)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        vectors = [
            (id, store.embedder.name, own.astype(np.float16).tobytes()) for (id,), own in zip(rows, drawn, strict=True)
        ]
        await database.write([("INSERT INTO vector(memory, model, own) VALUES (?, ?, ?)", vectors)])


def _key(own: Sequence[Conversation], noise: Sequence[Conversation], seed: int | None) -> str:
    """Another one where the data, or what becomes of it, is another."""
    cut = [digest(said.text, said.role) for conversation in own for said in conversation.messages]
    texts = (said.text for conversation in (*own, *noise) for said in conversation.messages)
    told = "\0".join((f"{len(schema.MIGRATIONS)} {PART_MESSAGES} {seed} {cut}", *texts))
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
