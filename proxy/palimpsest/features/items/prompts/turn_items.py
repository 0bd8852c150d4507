"""The question to the writer for LightMem-SLM: what of one turn can be used again."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.core.writing.claims import Claim
from palimpsest.core.writing.clauses import READ_CHARS
from palimpsest.domain import Json, SourceMessage
from palimpsest.domain.ports import Prompt, object_schema
from palimpsest.features.items.prompts.transcript import numbered_transcript

MOST_ITEMS = 4
ITEM_CHARS = 240
ANSWER_TOKENS = 400

INSTRUCTIONS = f"""\
You keep the memory of an assistant. You are given the numbered messages of one turn of a conversation. Say what of it
will be useful in later conversations with the same user.
items: at most {MOST_ITEMS} short statements that can be understood by themselves: what the user tells of himself and
his work, prefers, plans, decides or refuses, and what both agree on. Keep names, dates, numbers and negations exactly
as they are, and use the words of the messages. Never a transcript, never an answer to the user, nothing that was not
said. messages: the numbers of the messages that say so. An empty list if nothing will be useful.
"""

_MESSAGES: Json = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": MOST_ITEMS}
_ITEM = object_schema(text={"type": "string", "maxLength": ITEM_CHARS}, messages=_MESSAGES)
SCHEMA = object_schema(items={"type": "array", "maxItems": MOST_ITEMS, "items": _ITEM})


def prompt(turn: Sequence[int], segment: Sequence[SourceMessage]) -> Prompt:
    """The prompt that asks for the items of a turn."""
    text = numbered_transcript(segment, {at: segment[at].text[:READ_CHARS] for at in turn})
    return Prompt("turn_items", INSTRUCTIONS, text, SCHEMA, ANSWER_TOKENS)


def read_claims(answer: Json, turn: Sequence[int]) -> list[Claim]:
    """The claims in the answer about the turn's own messages."""
    return [Claim(item["text"], tuple(at for at in item["messages"] if at in turn)) for item in answer["items"]]
