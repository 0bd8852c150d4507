"""
The first question to the writer for expected predictive compression (WhenLoss): what may be asked of a conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.core.writing.claims import QUESTION_CHARS
from palimpsest.core.writing.entries import PROBES
from palimpsest.domain import Json, SourceMessage
from palimpsest.domain.ports import Prompt, object_schema
from palimpsest.features.items.prompts.transcript import numbered_transcript

ANSWER_TOKENS = 400  # five questions

INSTRUCTIONS = f"""\
You prepare the memory of an assistant. You are given numbered messages of a conversation. Guess what somebody will ask
about it months later, when nobody remembers it.
questions: {PROBES} questions, each about another detail that these messages answer: who, when, where, how many, which
name, file or version; what was decided, preferred, planned, changed or refused, and what is not so. Ask in full words,
with the names in it, so that the question can be understood by itself. Do not answer.
"""

_QUESTION: Json = {"type": "string", "maxLength": QUESTION_CHARS}
SCHEMA = object_schema(questions={"type": "array", "items": _QUESTION, "maxItems": PROBES})


def prompt(segment: Sequence[SourceMessage]) -> Prompt:
    """The prompt that asks for questions about a segment."""
    return Prompt("probe_questions", INSTRUCTIONS, numbered_transcript(segment), SCHEMA, ANSWER_TOKENS)
