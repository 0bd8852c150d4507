"""
Simulated compactions: what a client sends afterwards, a summary of what it dropped or none, and its last messages.

LANTERN (arXiv 2606.05182, sections 4.3 and 5.7): compaction at 30, 50 or 70 % of a conversation, the last four messages
kept. What is asked of memory then is what the proxy makes of that request (`core/recall/diagnosis.py`): nobody
knows yet which of the lost facts will be needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import orjson

from palimpsest.core.history.link_keys import flags_of
from palimpsest.core.recall.diagnosis import diagnose
from palimpsest.domain import Event, Head, Lineage, Pressure, Query, Role, Speaker, Tier
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation.datasets import Conversation, DatasetMessage
from palimpsest.evaluation.model import Model
from palimpsest.settings.policy import Policy
from palimpsest.wire.chat import parse
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message, readable

KEPT_MESSAGES = 4  # LANTERN 4.3
FRACTIONS = (0.3, 0.5, 0.7)  # LANTERN 5.7
MIN_MESSAGES = 20  # LANTERN 4.1: shorter ones are not compacted
SUMMARY_CHARS = 2000  # some 500 tokens: what clients ask their models for
POINT_CHARS = 160  # of one message in an extractive summary: a sentence
INTRODUCTION = "Summary of the conversation so far:\n"
SUMMARISE = (
    "Summarise this conversation for yourself, so that you can go on without it: goal, state, decisions, what is next. "
    "At most 300 words.\n\n"
)
ABSTRACT_CHARS = 24_000  # of the dropped part shown to the model: its beginning and end
TENANT = "bench"
KEY = b"the same in every run"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
ROOMY = Pressure(0, 1_000_000, 0, 0.0, Tier.CALM)  # the budget is the benchmark's, not the window's


class Strategy(StrEnum):
    """How a client makes room."""

    EXTRACTIVE = "extractive"
    SLIDING = "sliding window"
    ABSTRACTIVE = "abstractive"


@dataclass(frozen=True, slots=True)
class Compacted:
    """The first `dropped` messages are gone; `summary`, "" for none, and the `kept` ones stand."""

    strategy: Strategy
    dropped: int
    summary: str
    kept: tuple[DatasetMessage, ...]

    @property
    def visible(self) -> str:
        """All that the model still sees."""
        return "\n".join([self.summary, *(readable(said.text, said.calls) for said in self.kept)])


def until(conversation: Conversation, fraction: float) -> Conversation:
    """The conversation as it stood when it was compacted."""
    return Conversation(
        conversation.id,
        conversation.messages[: round(len(conversation.messages) * fraction)],
        (),
        conversation.sessions,
    )


async def compacted(conversation: Conversation, strategy: Strategy, model: Model | None = None) -> Compacted:
    """
    Compact a conversation that stands as it is.

    Raises:
        PolicyError: an abstractive summary without a model.
    """
    dropped = max(0, len(conversation.messages) - KEPT_MESSAGES)
    lost, kept = conversation.messages[:dropped], conversation.messages[dropped:]
    if strategy is Strategy.SLIDING:
        return Compacted(strategy, dropped, "", kept)
    if strategy is Strategy.EXTRACTIVE:
        return Compacted(strategy, dropped, INTRODUCTION + extract(lost), kept)
    if model is None:
        raise PolicyError("summarising abstractively: no model is configured; give --model NAME")
    told = "\n".join(f"{said.role}: {said.text}" for said in lost if said.text.strip())
    if len(told) > ABSTRACT_CHARS:
        told = f"{told[: ABSTRACT_CHARS // 2]}\n…\n{told[-ABSTRACT_CHARS // 2 :]}"
    return Compacted(strategy, dropped, INTRODUCTION + await model.complete(SUMMARISE + told), kept)


def extract(messages: Sequence[DatasetMessage]) -> str:
    """The first sentence of messages that are spread evenly over all that people and the assistant said."""
    told = (said.text.strip() for said in messages if said.role in ("user", "assistant"))
    points = [_SENTENCE_END.split(text, maxsplit=1)[0][:POINT_CHARS] for text in told if text]
    fit = SUMMARY_CHARS // POINT_CHARS
    chosen = points if len(points) <= fit else [points[at * len(points) // fit] for at in range(fit)]
    return "\n".join(f"- {point}" for point in chosen)


def query_after(conversation: Conversation, after: Compacted, policy: Policy) -> Query | None:
    """What the proxy asks its memory when the request arrives that follows; None where it would ask nothing."""
    summary = [{"role": "user", "content": after.summary}] if after.summary else []
    body = {"model": "", "messages": [*summary, *(said.raw for said in after.kept)]}
    chat = parse(orjson.dumps(body))
    past = [read_message(said.raw) for said in conversation.messages]
    places = [at for at, message in enumerate(past) if not message.is_instruction]
    prints = [fingerprint_of(past[at], KEY) for at in places]
    head = Head(
        conversation=conversation.id,
        turn=1,
        role=Role.MAIN,
        fulls=[fingerprint.full for fingerprint in prints],
        openings=[fingerprint.opening for fingerprint in prints],
        occurrences=places,
        flags=[flags_of(past[at]) for at in places],
    )
    stay = [index for index, at in enumerate(places) if at >= after.dropped]
    lineage = Lineage(
        event=Event.SUMMARY if summary else Event.TRUNCATE,
        role=Role.MAIN,
        head=head,
        kept=(*([-1] * len(summary)), *stay),
        dropped=tuple(range(len(places) - len(stay))),
        summary_at=(0,) if summary else (),
    )
    told = [fingerprint_of(message, KEY).full for message in chat.history]
    found = diagnose(chat, told, Speaker(TENANT, TENANT), lineage, conversation.id, ROOMY, policy)
    if found.query is None:
        return None
    # what the pipeline takes from its journal, where the last human message is among what was dropped
    asked = [past[at].text for at in found.ask_journal]
    return replace(found.query, text="\n".join([*asked, found.query.text]).strip())
