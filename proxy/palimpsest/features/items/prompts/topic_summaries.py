"""The question to the writer for LightMem-3: a summary of each topic in the short-term buffer, all in one call."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.core.writing.claims import TOPIC_CHARS, Claim
from palimpsest.core.writing.lightmem3 import Topic
from palimpsest.domain import Json, SourceMessage
from palimpsest.domain.ports import Prompt, object_schema
from palimpsest.features.items.prompts.transcript import numbered_transcript

FACTS_A_TOPIC = 8
FACT_CHARS = 300
SOURCES = 6  # messages that one fact is told in
TOKENS_A_TOPIC = 250  # of the answer
MOST_TOKENS = 2000

INSTRUCTIONS = f"""\
You keep the memory of an assistant. You are given numbered messages of a conversation, shortened to their telling
words, in groups that are about one topic each. Summarise each group.
topics: one entry for each group. number: its number. name: what it is about, in two to five words. facts: at most
{FACTS_A_TOPIC} short statements that can be understood by themselves, about what somebody told, decided, prefers, plans
or refuses. Keep names, dates, numbers and negations exactly as they are, and use the words of the messages. Add and
conclude nothing. messages: the numbers of the messages that say so. Leave out greetings and what nobody will ask for.
"""

_MESSAGES: Json = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": SOURCES}
_FACT = object_schema(text={"type": "string", "maxLength": FACT_CHARS}, messages=_MESSAGES)
_TOPIC = object_schema(
    number={"type": "integer", "minimum": 1},
    name={"type": "string", "maxLength": TOPIC_CHARS},
    facts={"type": "array", "maxItems": FACTS_A_TOPIC, "items": _FACT},
)
SCHEMA = object_schema(topics={"type": "array", "items": _TOPIC})


def prompt(topics: Sequence[Topic], segment: Sequence[SourceMessage]) -> Prompt:
    """The prompt that asks for summaries of the topics of one buffer."""
    groups = (
        f"Group {number}:\n{numbered_transcript(segment, dict(zip(topic.messages, topic.texts, strict=True)))}"
        for number, topic in enumerate(topics, 1)
    )
    most = min(MOST_TOKENS, TOKENS_A_TOPIC * len(topics))
    return Prompt("topic_summaries", INSTRUCTIONS, "\n\n".join(groups), SCHEMA, most)


def read_claims(answer: Json, topics: Sequence[Topic]) -> list[Claim]:
    """The claims in the answer about each topic's own messages; unknown groups are ignored."""
    found = []
    for told_of in answer["topics"]:
        if told_of["number"] <= len(topics):
            own = topics[told_of["number"] - 1].messages
            for fact in told_of["facts"]:
                found.append(
                    Claim(fact["text"], tuple(at for at in fact["messages"] if at in own), "", told_of["name"])
                )
    return found
