"""
The question to the controller: what to look for in the memory of conversations, for one message of a user.
"""

from __future__ import annotations

from datetime import UTC, datetime

from palimpsest.core.recall.query_plan import MOST_QUESTIONS, QUESTION_CHARS
from palimpsest.domain import Json, Teller
from palimpsest.domain.ports import Prompt

MESSAGE_CHARS = 2000  # of the message; the beginning says what is wanted
ANSWER_TOKENS = 300

INSTRUCTIONS = """\
You plan searches in an archive of earlier conversations between a user and an assistant. You are given the newest
message of the user. Do not answer it. Say what has to be found so that somebody else can answer it.
questions: up to four short, self-contained things to search for. Write each as a statement or question that could
stand in the archive, with the names in it, one for each separate piece of evidence. An empty list if the message itself
is the best search.
first_day, last_day: the days, as YYYY-MM-DD, between which it was said, only if the message tells; else two empty
texts.
said_by: who said what is looked for: user, others (the assistant or another person), tools (results of programs), or
anyone if the message does not tell.
"""

_DAY: Json = {"type": "string", "maxLength": 10}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "items": {"type": "string", "maxLength": QUESTION_CHARS},
            "maxItems": MOST_QUESTIONS,
        },
        "first_day": _DAY,
        "last_day": _DAY,
        "said_by": {"type": "string", "enum": [teller.value for teller in Teller]},
    },
    "required": ["questions", "first_day", "last_day", "said_by"],
    "additionalProperties": False,
}


def prompt(message: str, now: float) -> Prompt:
    """
    The prompt that asks for the plan of a look-up.

    Args:
        now: Unix seconds.
    """
    today = datetime.fromtimestamp(now, UTC).date().isoformat()
    text = f"Today is {today}. The newest message:\n{message[:MESSAGE_CHARS]}"
    return Prompt("query_plan", INSTRUCTIONS, text, SCHEMA, ANSWER_TOKENS)
