"""
The question to the selector: which passages of earlier conversations help with a message, and in which order.

One call orders all candidates, as in LANTERN's optional rerank.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from palimpsest.core.recall.selection import KEPT
from palimpsest.domain import Json, Memory
from palimpsest.domain.ports import Prompt

MESSAGE_CHARS = 2000  # of what is asked
PASSAGE_CHARS = 300  # of each passage: two or three sentences tell what it is about
TOKENS_PER_NUMBER = 4  # digits, comma, space
FRAME_TOKENS = 20  # of the answer, around the numbers

INSTRUCTIONS = """\
You choose what to remind an assistant of. You are given the newest message of a user and numbered passages of earlier
conversations. Name the numbers of the passages that help to answer the message: those that hold the answer or a part of
it first, then those that are needed to understand them. If several say the same, prefer the newer one. Leave out what
is merely about the same topic. Name only numbers that stand there, each once.
"""


def prompt(message: str, memories: Sequence[Memory]) -> Prompt:
    """
    The prompt that asks for a ranking of passages.

    Args:
        memories: the candidates; they are numbered from 1.
    """
    lines = [f"[{number}] {_line(memory)}" for number, memory in enumerate(memories, start=1)]
    text = "\n".join([f"The newest message:\n{message[:MESSAGE_CHARS]}\n", "The passages:", *lines])
    most = min(KEPT, len(memories))
    tokens = FRAME_TOKENS + TOKENS_PER_NUMBER * most
    return Prompt("selection", INSTRUCTIONS, text, _schema(len(memories), most), tokens)


def _schema(count: int, most: int) -> Json:
    number = {"type": "integer", "minimum": 1, "maximum": count}
    return {
        "type": "object",
        "properties": {"passages": {"type": "array", "items": number, "maxItems": most}},
        "required": ["passages"],
        "additionalProperties": False,
    }


def _line(memory: Memory) -> str:
    """One passage on one line, so that no text of it can be taken for another number's."""
    day = datetime.fromtimestamp(memory.created_at, UTC).date().isoformat()
    return f"{day} {' '.join(memory.role.split())[:20]}: {' '.join(memory.text.split())[:PASSAGE_CHARS]}"
