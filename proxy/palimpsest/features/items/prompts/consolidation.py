"""
The questions to the consolidator: what becomes of an item beside newer ones, and what items relate.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import get_args

from palimpsest.core.consolidation.relations import NAME_CHARS, Relation
from palimpsest.domain import Json
from palimpsest.domain.ports import Prompt

ITEM_CHARS = 400  # of each; items are a sentence or two
JUDGEMENT_TOKENS = 60
MOST_RELATIONS = 40  # of a batch of items
TOKENS_PER_RELATION = 40
QUOTE_CHARS = 200

LEAVE, REPEATED, REPLACED = "leave", "repeated", "replaced"

JUDGE = """\
You tidy notes about a user. You are given one older note and numbered newer notes. Decide what becomes of the older
one.
repeated: one of the newer notes says the same and loses nothing of it. replaced: one of the newer notes gives a newer
value of the same thing, so that the older one no longer holds. leave: in all other cases, and in doubt.
note: the number of that newer note; 0 for leave.
"""
RELATE = """\
You make a small graph of general knowledge out of numbered notes. Name only relations that a note states.
is-a: the first is a kind of the second. has-property: the first has the second. implies: where the first holds, the
second does. related-to: the note connects them otherwise.
source and target: one to three words as they stand in the note, without numbers. Never a person's name, and nothing
that leads to a person: no address, number, account or link.
quote: the words of the note that state it, exactly as they stand there, with both source and target in them.
"""

_WORDS: Json = {"type": "string", "maxLength": NAME_CHARS}


def judge_prompt(older: str, queue: Sequence[tuple[str, float]]) -> Prompt:
    """
    The prompt that asks for the verdict on an item.

    Args:
        queue: texts of newer items, and when they were said, Unix seconds; they are numbered from 1.
    """
    lines = [f"[{number}] {_day(at)} {_line(text)}" for number, (text, at) in enumerate(queue, start=1)]
    text = "\n".join([f"The older note: {_line(older)}", "The newer notes:", *lines])
    schema = {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": [LEAVE, REPEATED, REPLACED]},
            "note": {"type": "integer", "minimum": 0, "maximum": len(queue)},
        },
        "required": ["verdict", "note"],
        "additionalProperties": False,
    }
    return Prompt("consolidation", JUDGE, text, schema, JUDGEMENT_TOKENS)


def relate_prompt(texts: Sequence[str]) -> Prompt:
    """The prompt that asks for the relations in items, numbered from 1."""
    text = "\n".join(f"[{number}] {_line(text)}" for number, text in enumerate(texts, start=1))
    relation = {
        "type": "object",
        "properties": {
            "note": {"type": "integer", "minimum": 1, "maximum": len(texts)},
            "source": _WORDS,
            "relation": {"type": "string", "enum": [*get_args(Relation)]},
            "target": _WORDS,
            "quote": {"type": "string", "maxLength": QUOTE_CHARS},
        },
        "required": ["note", "source", "relation", "target", "quote"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"relations": {"type": "array", "items": relation, "maxItems": MOST_RELATIONS}},
        "required": ["relations"],
        "additionalProperties": False,
    }
    return Prompt("relations", RELATE, text, schema, TOKENS_PER_RELATION * MOST_RELATIONS)


def _line(text: str) -> str:
    """One item on one line, so that no text of it can be taken for another number's."""
    return " ".join(text.split())[:ITEM_CHARS]


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()
