"""
The second question to the writer for expected predictive compression (WhenLoss): the least evidence of each answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.core.writing.claims import Claim
from palimpsest.core.writing.entries import PROBES
from palimpsest.domain import Json, SourceMessage
from palimpsest.domain.ports import Prompt, object_schema
from palimpsest.features.items.prompts.transcript import numbered_transcript

MOST = 3 * PROBES  # pieces: an answer seldom stands in more than three places
WORDS_CHARS = 400
ANSWER_TOKENS = 1200

INSTRUCTIONS = """\
You keep the memory of an assistant. You are given questions and numbered messages of a conversation. Find for each
question the shortest stretch of a message that answers it.
evidence: one entry for each place. question: the number of the question. message: the number of the message. words:
the stretch itself, copied letter by letter, with its names, dates, numbers and negations, and nothing added. Leave out
a question that the messages do not answer.
"""

_PLACE = object_schema(
    question={"type": "integer", "minimum": 1},
    message={"type": "integer", "minimum": 0},
    words={"type": "string", "maxLength": WORDS_CHARS},
)
SCHEMA = object_schema(evidence={"type": "array", "maxItems": MOST, "items": _PLACE})


def prompt(questions: Sequence[str], segment: Sequence[SourceMessage]) -> Prompt:
    """The prompt that asks for the evidence of questions."""
    asked = "\n".join(f"{number}. {' '.join(question.split())}" for number, question in enumerate(questions, 1))
    return Prompt(
        "evidence",
        INSTRUCTIONS,
        f"Questions:\n{asked}\n\nMessages:\n{numbered_transcript(segment)}",
        SCHEMA,
        ANSWER_TOKENS,
    )


def read_claims(answer: Json, questions: Sequence[str], segment: Sequence[SourceMessage]) -> list[Claim]:
    """The claims in the answer; those with unknown questions or messages are ignored."""
    return [
        Claim(found["words"], (found["message"],), questions[found["question"] - 1])
        for found in answer["evidence"]
        if found["question"] <= len(questions) and found["message"] < len(segment)
    ]
