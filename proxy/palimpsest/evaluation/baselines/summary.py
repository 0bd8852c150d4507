"""
Baseline: a model's summary of each session within a budget of tokens, WhenLoss's "Summary (LLM)".

WhenLoss (arXiv 2605.24579, section 5.3 and appendix A.1): one call a session, shares of the write budget by the square
root of a session's length, found by the cosine of all-MiniLM-L6-v2. A session whose messages are of one day is too long
to be one where nothing divides it: it is cut into segments of 8,000 characters then (there are none in LongMemEval).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from math import sqrt

from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.datasets import Conversation
from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.nearest import ByCosine, Nearest
from palimpsest.wire.message import readable

WRITE_TOKENS = 5_000  # WhenLoss 5.3
MIN_ENTRY_TOKENS = 50  # of the smallest session: a sentence or two
SEGMENT_CHARS = 8_000  # some 2,000 tokens, a session of LongMemEval
PROMPT = """You are compressing conversation memory
under a hard budget.
Summarize this session from {date}
in under {max_tokens} tokens.
Preserve names, dates, numbers,
preferences, negations, state changes,
decisions, and event relations.
Stay query-agnostic: do not guess
future questions.
Return only the compressed memory text.

{session_turns}"""

REFINE = """You are improving an existing compressed
memory under the same hard budget of
{max_tokens} tokens.
Increase density by replacing
vague references with specific names,
dates, numbers, preferences, decisions,
negations, and event relations.
Do not guess future questions.
Return only the revised memory.

Original session:
{session_turns}

Current compressed memory:
{summary}"""


@dataclass(frozen=True, slots=True)
class Segment:
    """One session, or a part of one: its messages, told turn by turn, and its share of the write budget."""

    messages: tuple[int, ...]
    session: int
    text: str
    date: str
    max_tokens: int


class Summary:
    """Summaries of sessions by cosine."""

    name = "summary"

    def __init__(self, embedder: Embedder, model: Model, write_tokens: int = WRITE_TOKENS) -> None:
        self._embedder = embedder
        self._model = model
        self._write_tokens = write_tokens

    @asynccontextmanager
    async def opened(self, conversation: Conversation) -> AsyncIterator[ByCosine]:
        yield ByCosine(await Nearest.of(await self.write(conversation), self._embedder))

    async def write(self, conversation: Conversation) -> list[Piece]:
        """Everything that is kept: one entry a segment."""
        parts = segments(conversation, self._write_tokens)
        written = await asyncio.gather(*(self._entry(part) for part in parts))
        return [Piece(f"[{part.date}] {text}", part.messages) for part, text in zip(parts, written, strict=True)]

    async def _entry(self, part: Segment) -> str:
        prompt = PROMPT.format(date=part.date, max_tokens=part.max_tokens, session_turns=part.text)
        return await self._model.complete(prompt, part.max_tokens)


class TwoPassSummary(Summary):
    """Each summary made denser by a second call, as many calls as `epc` takes (WhenLoss 6.7)."""

    name = "summary-2"

    async def _entry(self, part: Segment) -> str:
        """Summarise a segment, and let the model refine the summary."""
        summary = await super()._entry(part)
        prompt = REFINE.format(max_tokens=part.max_tokens, session_turns=part.text, summary=summary)
        return await self._model.complete(prompt, part.max_tokens)


def segments(conversation: Conversation, write_tokens: int) -> list[Segment]:
    """The sessions of a conversation, long ones in parts, each with its share of the budget in tokens."""
    parts: list[list[int]] = []
    for _, session in groupby(range(len(conversation.messages)), key=lambda at: conversation.messages[at].session):
        parts.append([])
        for at in session:
            chars = sum(len(conversation.messages[i].text) for i in parts[-1])
            if parts[-1] and chars + len(conversation.messages[at].text) > SEGMENT_CHARS:
                parts.append([])
            parts[-1].append(at)
    texts = [_told(conversation, part) for part in parts]
    whole = sum(sqrt(len(text)) for text in texts)
    return [
        Segment(
            messages=tuple(part),
            session=conversation.messages[part[0]].session,
            text=text,
            date=conversation.messages[part[0]].day,
            max_tokens=max(MIN_ENTRY_TOKENS, int(write_tokens * sqrt(len(text)) / whole)),
        )
        for part, text in zip(parts, texts, strict=True)
    ]


def _told(conversation: Conversation, part: Sequence[int]) -> str:
    said = [(at, conversation.messages[at]) for at in part]
    return "\n".join(f"turn_{at} {m.role}: {readable(m.text, m.calls)[:SEGMENT_CHARS]}" for at, m in said)
