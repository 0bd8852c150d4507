"""
WhenLoss's write stage: what each writer keeps of a conversation within a budget of tokens.

WhenLoss (arXiv 2605.24579, sections 5.2 and 5.3). What MemWalker and ReadAgent keep is only of use to a model that
walks through it, so they are left out; the others are read alike, by cosine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import numpy as np

from palimpsest.core.recall.ranking import Floats
from palimpsest.core.writing import lightmem3
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.lightmem3 import turns
from palimpsest.core.writing.writers import WRITERS
from palimpsest.domain import Item, SourceMessage
from palimpsest.domain.ports import Assistant, Embedder
from palimpsest.evaluation.baselines.chunks import CHUNK_TOKENS, ENCODING, token_chunks
from palimpsest.evaluation.baselines.epc import Epc
from palimpsest.evaluation.baselines.memorybank import retention
from palimpsest.evaluation.baselines.summary import Segment, Summary, TwoPassSummary, segments
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.turns import turn_pairs
from palimpsest.features.items.model_writers import ModelWriters
from palimpsest.memory.tokens.counter import encoder

Writer = Callable[[Conversation, int], Awaitable[Sequence[Piece]]]
"""A conversation and a budget in tokens (cl100k_base) to entries in order of time, none beyond the budget."""

Segmenting = Callable[[Conversation, int], Iterator[tuple[Sequence[SourceMessage], int, TermStatistics]]]
"""A conversation and a budget, to what a writer reads at once, the share of it, and the terms said until then."""

TENANT = "bench"
TURN_CHARS = 2000  # of a turn that is embedded
DAY_TOKENS = 8  # of "[2024-01-31]" and its line

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


def writers(embedder: Embedder, model: Model | None, assistant: Assistant | None = None) -> Mapping[str, Writer]:
    """Every writer by its name; those that ask a model only where there is one."""
    found: dict[str, Writer] = {"random": by_chance, "chunks": chunks, "extractive": extractive}
    found["memorybank"] = memorybank
    found |= {f"{name} by rule": by_rule(name, embedder) for name in WRITERS}
    if assistant is not None:
        found |= {f"{name} by model": by_model(name, embedder, assistant) for name in WRITERS}
    if model is None:
        return found
    named: Mapping[str, Callable[[Embedder, Model, int], Summary | Epc]] = {
        "summary": Summary,
        "summary-2": TwoPassSummary,
        "epc": Epc,
    }

    def writer(make: Callable[[Embedder, Model, int], Summary | Epc]) -> Writer:
        return lambda conversation, tokens: make(embedder, model, tokens).write(conversation)

    return found | {name: writer(make) for name, make in named.items()}


def by_rule(name: str, embedder: Embedder) -> Writer:
    """One of the proxy's own writers, without a model."""

    async def write(conversation: Conversation, tokens: int) -> Sequence[Piece]:
        found: list[Item] = []
        for segment, share, statistics in SEGMENTS[name](conversation, tokens):
            if name == "lightmem3":
                near = await turn_vectors(segment, embedder)
                found += lightmem3.write(segment, share, token_count, statistics, vectors=near)
            else:
                found += WRITERS[name](segment, share, token_count, statistics)
        return [shown(conversation, item) for item in found]

    return write


def by_model(name: str, embedder: Embedder, assistant: Assistant) -> Writer:
    """The same with a model."""
    asking = ModelWriters(assistant, token_count)

    async def write(conversation: Conversation, tokens: int) -> Sequence[Piece]:
        found: list[Item] = []
        for segment, share, statistics in SEGMENTS[name](conversation, tokens):
            near = await turn_vectors(segment, embedder) if name == "lightmem3" else None
            found += await asking.write(name, segment, share, statistics, TENANT, near)
        return [shown(conversation, item) for item in found]

    return write


def by_session(
    conversation: Conversation, tokens: int
) -> Iterator[tuple[Sequence[SourceMessage], int, TermStatistics]]:
    """Sessions, long ones in parts, with shares by the square root of their length (WhenLoss 5.3)."""
    statistics = TermStatistics()
    for part in segments(conversation, tokens):
        messages = [_source(conversation, at) for at in part.messages]
        statistics = statistics.with_texts(said.text for said in messages)
        yield messages, part.max_tokens, statistics


def at_once(conversation: Conversation, tokens: int) -> Iterator[tuple[Sequence[SourceMessage], int, TermStatistics]]:
    """All of it: the LightMems find topics and turns themselves."""
    messages = [_source(conversation, at) for at in range(len(conversation.messages))]
    yield messages, tokens, TermStatistics().with_texts(said.text for said in messages)


async def turn_vectors(messages: Sequence[SourceMessage], embedder: Embedder) -> Floats:
    """Unit vectors (n, d) of a writer's turns."""
    texts = [" ".join(messages[at].text for at in turn)[:TURN_CHARS] for turn in turns(messages)]
    return (await embedder.embed_passages(texts)).astype(np.float64)


SEGMENTS: Mapping[str, Segmenting] = {"epc": by_session, "lightmem3": at_once, "lightmem-slm": at_once}


async def chunks(conversation: Conversation, tokens: int) -> Sequence[Piece]:
    """Chunks of 200 tokens; the oldest are dropped first."""
    dated = [_dated(conversation, chunk) for chunk in token_chunks(conversation)]
    return dated[-(tokens // (CHUNK_TOKENS + DAY_TOKENS)) :]


async def extractive(conversation: Conversation, tokens: int) -> Sequence[Piece]:
    """Of each session the first sentence of every turn, then the second, and so on, as long as its share lasts."""
    return [
        Piece(f"[{part.date}]\n{text}", part.messages)
        for part in segments(conversation, tokens)
        if (text := _first_sentences(conversation, part))
    ]


async def by_chance(conversation: Conversation, tokens: int) -> Sequence[Piece]:
    """Whole messages, drawn by lot: what any writer must beat. The same ones in every run."""
    pieces = [_dated(conversation, Piece(said.text, (at,))) for at, said in enumerate(conversation.messages)]
    order = list(range(len(pieces)))
    random.Random(conversation.id).shuffle(order)
    return _fitting(pieces, order, tokens)


async def memorybank(conversation: Conversation, tokens: int) -> Sequence[Piece]:
    """The turns of which most is retained; the others are forgotten."""
    turns = turn_pairs(conversation.messages)
    pieces = [_dated(conversation, Piece(turn.content, turn.messages)) for turn in turns]
    return _fitting(pieces, np.argsort(-retention(turns), kind="stable").tolist(), tokens)


def _fitting(pieces: Sequence[Piece], order: Sequence[int], tokens: int) -> Sequence[Piece]:
    """Those that a budget takes, asked for in an order, as they were told."""
    kept = []
    for at in order:
        length = token_count(pieces[at].text)
        if length <= tokens:
            kept.append(at)
            tokens -= length
    return [pieces[at] for at in sorted(kept)]


def token_count(text: str) -> int:
    """Tokens of cl100k_base."""
    return len(encoder(ENCODING).encode_ordinary(text))


def _source(conversation: Conversation, at: int) -> SourceMessage:
    said = conversation.messages[at]
    return SourceMessage(at, said.role, said.text, said.at)


def shown(conversation: Conversation, item: Item) -> Piece:
    """An item as a reader gets it, with its day and its question or topic."""
    day = conversation.messages[item.sources[0].occurrence].day
    messages = tuple(dict.fromkeys(span.occurrence for span in item.sources))
    return Piece(f"[{day}] {item.question or item.topic}\n{item.text}", messages)


def _dated(conversation: Conversation, piece: Piece) -> Piece:
    return Piece(f"[{conversation.messages[piece.messages[0]].day}]\n{piece.text}", piece.messages)


def _first_sentences(conversation: Conversation, part: Segment) -> str:
    turns = [_SENTENCE.findall(conversation.messages[at].text) for at in part.messages]
    room = part.max_tokens
    taken = [0] * len(turns)
    for depth in range(max(map(len, turns), default=0)):
        for at, sentences in enumerate(turns):
            if depth < len(sentences) and taken[at] == depth:
                length = token_count(sentences[depth]) + 1
                if length <= room:
                    room -= length
                    taken[at] += 1
    told = ("".join(sentences[:count]).strip() for sentences, count in zip(turns, taken, strict=True))
    return "\n".join(line for line in told if line)
