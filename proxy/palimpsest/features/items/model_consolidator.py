"""
The consolidator: a language model judges what rules leave of items, and names what they relate.

It only chooses among what is there: a verdict names a newer item of the queue, and a relation counts if the words that
it quotes stand in the item and hold both of its ends. What it says otherwise, and whatever an item orders, is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from palimpsest.core.consolidation.queues import Entry, Verdict, entry_of
from palimpsest.core.consolidation.relations import NAME_CHARS, Edge, Relation, is_private, node_of
from palimpsest.domain import Json
from palimpsest.domain.days import day_of
from palimpsest.domain.errors import AssistFault
from palimpsest.domain.ports import Assistant, Prompt, object_schema
from palimpsest.store.knowledge.items import StoredItem

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


class ModelConsolidator:
    """Judges what rules leave of items, and says what they relate."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant

    async def judge(self, older: StoredItem, queue: Sequence[StoredItem], tenant: str) -> Verdict | None:
        """The verdict on an item, given the newer ones of its queue; None: leave it, or no verdict."""
        try:
            prompt = judge_prompt(older.text, [(item.text, item.said_at) for item in queue])
            answer = await self._assistant.answer(prompt, tenant)
        except AssistFault:  # counted where it happened: the item is left
            return None
        number, verdict = answer["note"], answer["verdict"]
        if verdict == LEAVE or not number:
            return None
        heir = queue[number - 1]
        if not _may_stand_for(entry_of(heir.id, heir.text, heir.role), entry_of(older.id, older.text, older.role)):
            return None
        if verdict == REPEATED:
            return Verdict(older.id, heir.id, "merged", "said again, by the model's judgement")
        return Verdict(older.id, heir.id, "superseded", "a newer value, by the model's judgement")

    async def relate(self, items: Sequence[StoredItem], tenant: str) -> Mapping[int, Sequence[Edge]]:
        """The relations that items state by the model, by item, each checked against the words of its item."""
        sent = [item for item in items if not is_private(item.text)]
        if not sent:
            return {}
        try:
            answer = await self._assistant.answer(relate_prompt([item.text for item in sent]), tenant)
        except AssistFault:  # counted where it happened: rules alone relate them
            return {}
        found: dict[int, list[Edge]] = {}
        for one in answer["relations"]:
            item = sent[one["note"] - 1]
            if (edge := _edge(one, item.text)) is not None:
                found.setdefault(item.id, []).append(edge)
        return found


def _may_stand_for(newer: Entry, older: Entry) -> bool:
    """Whether the same speaker said both, in some of the same words: what others say replaces nothing of a user's."""
    return newer.speaker == older.speaker and not newer.words.isdisjoint(older.words)


def _edge(claim: Json, text: str) -> Edge | None:
    """A relation that the item states by the quoted words; None: it does not."""
    quote = " ".join(claim["quote"].split()).lower()
    if not quote or quote not in " ".join(text.split()).lower():
        return None
    ends = []
    for name in (claim["source"], claim["target"]):
        if " ".join(name.split()).lower() not in quote or (node := node_of(" ".join(name.split()))) is None:
            return None
        ends.append(node)
    return None if ends[0] == ends[1] else Edge(ends[0], claim["relation"], ends[1])


def judge_prompt(older: str, queue: Sequence[tuple[str, float]]) -> Prompt:
    """The prompt that asks for the verdict on an item, beside newer ones and their Unix seconds, numbered from 1."""
    lines = [f"[{number}] {day_of(at)} {_line(text)}" for number, (text, at) in enumerate(queue, start=1)]
    text = "\n".join([f"The older note: {_line(older)}", "The newer notes:", *lines])
    schema = object_schema(
        verdict={"type": "string", "enum": [LEAVE, REPEATED, REPLACED]},
        note={"type": "integer", "minimum": 0, "maximum": len(queue)},
    )
    return Prompt("consolidation", JUDGE, text, schema, JUDGEMENT_TOKENS)


def relate_prompt(texts: Sequence[str]) -> Prompt:
    """The prompt that asks for the relations in items, numbered from 1."""
    text = "\n".join(f"[{number}] {_line(text)}" for number, text in enumerate(texts, start=1))
    relation = object_schema(
        note={"type": "integer", "minimum": 1, "maximum": len(texts)},
        source=_WORDS,
        relation={"type": "string", "enum": [*get_args(Relation)]},
        target=_WORDS,
        quote={"type": "string", "maxLength": QUOTE_CHARS},
    )
    schema = object_schema(relations={"type": "array", "items": relation, "maxItems": MOST_RELATIONS})
    return Prompt("relations", RELATE, text, schema, TOKENS_PER_RELATION * MOST_RELATIONS)


def _line(text: str) -> str:
    """One item on one line, so that no text of it can be taken for another number's."""
    return " ".join(text.split())[:ITEM_CHARS]
