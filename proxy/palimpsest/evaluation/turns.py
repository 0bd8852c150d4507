"""
A turn of a conversation: what was said to the assistant since its last word, and that word.

LANTERN (section 3.1) groups user and assistant messages into turn pairs with their tool calls. In a tool loop the
assistant speaks many times; each time is a turn of its own, so that none of them vanishes in the summary of a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palimpsest.core.archive.chunking import names_something, tags
from palimpsest.evaluation.datasets import DatasetMessage
from palimpsest.wire.message import readable

SUMMARY_CHARS_OF_MESSAGE = 500  # LANTERN 3.1
SUMMARY_CHARS = 1200  # LANTERN 3.1


@dataclass(frozen=True, slots=True)
class TurnPair:
    """`messages` are indices, rising. `hints` are tags, file paths and tool names, lower case."""

    messages: tuple[int, ...]
    content: str
    summary: str
    hints: frozenset[str]
    tools: tuple[str, ...]
    files: tuple[str, ...]
    at: float


def turn_pairs(messages: Sequence[DatasetMessage]) -> list[TurnPair]:
    """The turns of a conversation, in order; every message is in one of them."""
    turns = []
    begun: list[int] = []
    for at, said in enumerate(messages):
        begun.append(at)
        if said.role == "assistant":
            turns.append(_turn(messages, begun))
            begun = []
    return [*turns, _turn(messages, begun)] if begun else turns


def hints(text: str) -> frozenset[str]:
    """What a text names: LANTERN's hints. Our own judgements of texts, which are tags as well, are none of them."""
    return frozenset(filter(names_something, tags(text)))


def _turn(messages: Sequence[DatasetMessage], at: Sequence[int]) -> TurnPair:
    said = [messages[index] for index in at]
    content = "\n".join(readable(message.text, message.calls) for message in said)
    named = sorted(hints(content))
    files = tuple(tag for tag in named if "/" in tag)
    tools = tuple(dict.fromkeys(call.name for message in said for call in message.calls))
    parts = [m.text[:SUMMARY_CHARS_OF_MESSAGE] for m in said if m.role in ("user", "assistant") and m.text.strip()]
    if tools:
        parts.append("tools: " + ", ".join(tools))
    if files:
        parts.append("files: " + ", ".join(files))
    hinted = frozenset(named) | {tool.lower() for tool in tools}
    return TurnPair(tuple(at), content, "\n".join(parts)[:SUMMARY_CHARS], hinted, tools, files, said[-1].at)
