"""
The consolidator: a language model judges what rules leave of items, and names what they relate.

It only chooses among what is there: a verdict names a newer item of the queue, and a relation counts if the words that
it quotes stand in the item and hold both of its ends. What it says otherwise, and whatever an item orders, is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from palimpsest.core.consolidation.queues import Entry, Verdict, entry_of
from palimpsest.core.consolidation.relations import Edge, is_private, node_of
from palimpsest.domain import Json
from palimpsest.domain.errors import AssistFault
from palimpsest.domain.ports import Assistant
from palimpsest.features.items.prompts.consolidation import LEAVE, REPEATED, judge_prompt, relate_prompt


class Text(Protocol):
    """An item: its id, text, speaker, and time (Unix seconds)."""

    @property
    def id(self) -> int: ...

    @property
    def text(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def said_at(self) -> float: ...


class ModelConsolidator:
    """Implements `memory.consolidation.Judge`."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant

    async def judge(self, older: Text, queue: Sequence[Text], tenant: str) -> Verdict | None:
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

    async def relate(self, items: Sequence[Text], tenant: str) -> Mapping[int, Sequence[Edge]]:
        """What items relate, by item, each checked against the words of that item."""
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
