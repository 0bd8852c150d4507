"""
The questions to a model that writes items, and what its answers claim.

Expected predictive compression (WhenLoss) asks twice: what may be asked of a conversation, and the least evidence of
each answer. LightMem-3 asks for a summary of each topic in the short-term buffer, all in one call, and LightMem-SLM for
what of one turn can be used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palimpsest.core.writing.claims import QUESTION_CHARS, TOPIC_CHARS, Claim
from palimpsest.core.writing.clauses import READ_CHARS, SPEAKER_ROLES
from palimpsest.core.writing.entries import PROBES
from palimpsest.core.writing.lightmem3 import Topic
from palimpsest.domain import Json, SourceMessage
from palimpsest.domain.ports import Prompt, object_schema

QUESTIONS_TOKENS = 400  # five questions

QUESTIONS = f"""\
You prepare the memory of an assistant. You are given numbered messages of a conversation. Guess what somebody will ask
about it months later, when nobody remembers it.
questions: {PROBES} questions, each about another detail that these messages answer: who, when, where, how many, which
name, file or version; what was decided, preferred, planned, changed or refused, and what is not so. Ask in full words,
with the names in it, so that the question can be understood by itself. Do not answer.
"""

_QUESTION: Json = {"type": "string", "maxLength": QUESTION_CHARS}
QUESTIONS_SCHEMA = object_schema(questions={"type": "array", "items": _QUESTION, "maxItems": PROBES})

EVIDENCE_PLACES = 3 * PROBES  # pieces: an answer seldom stands in more than three places
EVIDENCE_CHARS = 400
EVIDENCE_TOKENS = 1200

EVIDENCE = """\
You keep the memory of an assistant. You are given questions and numbered messages of a conversation. Find for each
question the shortest stretch of a message that answers it.
evidence: one entry for each place. question: the number of the question. message: the number of the message. words:
the stretch itself, copied letter by letter, with its names, dates, numbers and negations, and nothing added. Leave out
a question that the messages do not answer.
"""

_PLACE = object_schema(
    question={"type": "integer", "minimum": 1},
    message={"type": "integer", "minimum": 0},
    words={"type": "string", "maxLength": EVIDENCE_CHARS},
)
EVIDENCE_SCHEMA = object_schema(evidence={"type": "array", "maxItems": EVIDENCE_PLACES, "items": _PLACE})

FACTS_A_TOPIC = 8
FACT_CHARS = 300
FACT_SOURCES = 6  # messages that one fact is told in
TOPIC_TOKENS = 250  # of the answer
TOPICS_TOKENS = 2000

TOPICS = f"""\
You keep the memory of an assistant. You are given numbered messages of a conversation, shortened to their telling
words, in groups that are about one topic each. Summarise each group.
topics: one entry for each group. number: its number. name: what it is about, in two to five words. facts: at most
{FACTS_A_TOPIC} short statements that can be understood by themselves, about what somebody told, decided, prefers, plans
or refuses. Keep names, dates, numbers and negations exactly as they are, and use the words of the messages. Add and
conclude nothing. messages: the numbers of the messages that say so. Leave out greetings and what nobody will ask for.
"""

_FACT_MESSAGES: Json = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": FACT_SOURCES}
_FACT = object_schema(text={"type": "string", "maxLength": FACT_CHARS}, messages=_FACT_MESSAGES)
_TOPIC = object_schema(
    number={"type": "integer", "minimum": 1},
    name={"type": "string", "maxLength": TOPIC_CHARS},
    facts={"type": "array", "maxItems": FACTS_A_TOPIC, "items": _FACT},
)
TOPICS_SCHEMA = object_schema(topics={"type": "array", "items": _TOPIC})

TURN_ITEMS = 4
ITEM_CHARS = 240
ITEMS_TOKENS = 400

ITEMS = f"""\
You keep the memory of an assistant. You are given the numbered messages of one turn of a conversation. Say what of it
will be useful in later conversations with the same user.
items: at most {TURN_ITEMS} short statements that can be understood by themselves: what the user tells of himself and
his work, prefers, plans, decides or refuses, and what both agree on. Keep names, dates, numbers and negations exactly
as they are, and use the words of the messages. Never a transcript, never an answer to the user, nothing that was not
said. messages: the numbers of the messages that say so. An empty list if nothing will be useful.
"""

_ITEM_MESSAGES: Json = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": TURN_ITEMS}
_ITEM = object_schema(text={"type": "string", "maxLength": ITEM_CHARS}, messages=_ITEM_MESSAGES)
ITEMS_SCHEMA = object_schema(items={"type": "array", "maxItems": TURN_ITEMS, "items": _ITEM})


def numbered_transcript(segment: Sequence[SourceMessage], texts: Mapping[int, str] | None = None) -> str:
    """
    A transcript of what people and the assistant say, a numbered line each: "[3] user: ...".

    Args:
        texts: by index, what is shown; None: all messages as they are, long ones cut.
    """
    shown = texts if texts is not None else {at: said.text[:READ_CHARS] for at, said in enumerate(segment)}
    return "\n".join(
        f"[{at}] {segment[at].name or segment[at].role}: {' '.join(text.split())}"
        for at, text in shown.items()
        if segment[at].role in SPEAKER_ROLES and text.strip()
    )


def questions_prompt(segment: Sequence[SourceMessage]) -> Prompt:
    return Prompt("probe_questions", QUESTIONS, numbered_transcript(segment), QUESTIONS_SCHEMA, QUESTIONS_TOKENS)


def evidence_prompt(questions: Sequence[str], segment: Sequence[SourceMessage]) -> Prompt:
    asked = "\n".join(f"{number}. {' '.join(question.split())}" for number, question in enumerate(questions, 1))
    material = f"Questions:\n{asked}\n\nMessages:\n{numbered_transcript(segment)}"
    return Prompt("evidence", EVIDENCE, material, EVIDENCE_SCHEMA, EVIDENCE_TOKENS)


def read_evidence(answer: Json, questions: Sequence[str], segment: Sequence[SourceMessage]) -> list[Claim]:
    """The claims in the answer; those with unknown questions or messages are ignored."""
    return [
        Claim(found["words"], (found["message"],), questions[found["question"] - 1])
        for found in answer["evidence"]
        if found["question"] <= len(questions) and found["message"] < len(segment)
    ]


def topics_prompt(topics: Sequence[Topic], segment: Sequence[SourceMessage]) -> Prompt:
    """The prompt that asks for summaries of the topics of one buffer."""
    groups = (
        f"Group {number}:\n{numbered_transcript(segment, dict(zip(topic.messages, topic.texts, strict=True)))}"
        for number, topic in enumerate(topics, 1)
    )
    most = min(TOPICS_TOKENS, TOPIC_TOKENS * len(topics))
    return Prompt("topic_summaries", TOPICS, "\n\n".join(groups), TOPICS_SCHEMA, most)


def read_topics(answer: Json, topics: Sequence[Topic]) -> list[Claim]:
    """The claims in the answer about each topic's own messages; unknown groups are ignored."""
    found = []
    for told_of in answer["topics"]:
        if told_of["number"] <= len(topics):
            own = topics[told_of["number"] - 1].messages
            for fact in told_of["facts"]:
                cited = tuple(at for at in fact["messages"] if at in own)
                found.append(Claim(fact["text"], cited, "", told_of["name"]))
    return found


def items_prompt(turn: Sequence[int], segment: Sequence[SourceMessage]) -> Prompt:
    text = numbered_transcript(segment, {at: segment[at].text[:READ_CHARS] for at in turn})
    return Prompt("turn_items", ITEMS, text, ITEMS_SCHEMA, ITEMS_TOKENS)


def read_items(answer: Json, turn: Sequence[int]) -> list[Claim]:
    """The claims in the answer about the turn's own messages."""
    return [Claim(item["text"], tuple(at for at in item["messages"] if at in turn)) for item in answer["items"]]
