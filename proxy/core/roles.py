"""
Is this a request beside the conversation? Titles, summaries, plans, commit messages, classifiers.

Decided before any state changes, by shape first and words second: a side request has no tools where the conversation
has some, another system prompt, another model; its words ask for a product OF a conversation. People ask such things
too ("summarise what we did"), so words without a change of shape prove nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from proxy.core.signals import Signals
from proxy.domain import Chat, Message, Shape

HEAD_CHARS = 600  # a tool is defined in the first lines; long agent prompts mention everything further down
EDGE_CHARS = 2000  # an instruction is glued to either end of a transcript
LONG_ASK_CHARS = 400  # nobody types an instruction of this length; clients keep them as templates
_SUMMARY = re.compile(r"summar|condens|compact|recap|digest|snapshot|checkpoint|hand-?off|context")
_TRANSCRIPT = re.compile(
    r"(?im)(?:^|\\n|>)\s*(?:#+ |\*\*|\[|<message type=\"|<|\()?"
    r"(user|human|assistant|ai|agent|model)\b[\"\]*)>]*\s*(?::|>|\]|\n|$)"
)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the words of a request ask for; only `decide` says what it means."""

    instructs: str = ""  # words that define a tool working on a conversation
    asks: str = ""  # words that ask for a product of the conversation before them
    strong: bool = False  # a long template with more than one such ask
    transcript: bool = False  # a conversation is written out inside one message
    summarises: bool = False  # the product is a text that may stand for the conversation later
    lone: bool = False  # no assistant message: nothing of a conversation but what is quoted


def read(chat: Chat, signals: Signals) -> Asked:
    """Read what a request asks for, from its words alone."""
    history = chat.history
    if not history:
        return Asked()
    system = _squeeze(" ".join(m.text[:HEAD_CHARS] for m in chat.messages if m.is_instruction)[: 2 * HEAD_CHARS])
    last = history[-1]
    ends = _squeeze(last.text[:EDGE_CHARS]) + " … " + _squeeze(last.text[-EDGE_CHARS:])
    lone = not any(m.role == "assistant" for m in history)
    transcript = lone and _is_transcript(last)
    hits = [found.group() for pattern in signals.asks if (found := pattern.search(ends))]
    instructs = next((found.group() for pattern in signals.instructs if (found := pattern.search(system))), "")
    if not instructs and lone and len(history) == 1 and (transcript or not system):
        instructs = next((found.group() for pattern in signals.instructs if (found := pattern.search(ends))), "")
    return Asked(
        instructs=instructs,
        asks=hits[0] if hits else "",
        strong=len(hits) > 1 and len(last.text) >= LONG_ASK_CHARS,
        transcript=transcript,
        summarises=any(_SUMMARY.search(words) for words in (instructs, *hits)),
        lone=lone,
    )


def decide(asked: Asked, shape: Shape, parent: Shape | None) -> tuple[bool, tuple[str, ...]]:
    """
    Is it a side request?

    Args:
        shape: of this request.
        parent: of the last main request of the conversation that it quotes; None when it quotes none.

    Returns:
        The verdict and the evidence for it, in words.
    """
    tools = bool(shape.tool_names)
    if asked.instructs and not tools and (asked.lone or asked.transcript):
        return True, (f"no tools, and instructed to work on a conversation: {asked.instructs!r}",)
    if asked.transcript and asked.asks and not tools:
        return True, (f"a conversation written out in one message, and asked: {asked.asks!r}",)
    differs = _differences(shape, parent) if parent is not None else ()
    if asked.instructs and differs:
        return True, (f"instructed to work on a conversation: {asked.instructs!r}", *differs)
    if asked.asks and differs:
        return True, (f"asked: {asked.asks!r}", *differs)
    if asked.asks and asked.strong:
        return True, (f"asked by a template of the client's: {asked.asks!r}",)
    if asked.instructs and asked.asks and parent is None and not tools:
        return True, (f"instructed: {asked.instructs!r}", f"asked: {asked.asks!r}")
    return False, ()


def _differences(shape: Shape, parent: Shape) -> tuple[str, ...]:
    """What no main request of the same conversation would change at once with such a question."""
    found = []
    if parent.tool_names and not shape.tool_names:
        found.append("the tools of the conversation are gone")
    if shape.instructions != parent.instructions:
        found.append("another system prompt than the conversation's")
    if shape.model != parent.model:
        found.append("another model than the conversation's")
    if shape.capped and not parent.capped:
        found.append("the answer is capped, as the conversation's are not")
    return tuple(found)


def _is_transcript(message: Message) -> bool:
    """Both voices of a conversation are labelled inside one message."""
    voices = {found.lower() for found in _TRANSCRIPT.findall(message.text[:20_000])}
    return bool(voices & {"user", "human"}) and bool(voices & {"assistant", "ai", "agent", "model"})


def _squeeze(text: str) -> str:
    return _SPACE.sub(" ", text).strip().lower()
