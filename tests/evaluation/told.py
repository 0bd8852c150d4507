"""Small conversations, told as `user: ...` lines, for tests of what measures memories."""

from __future__ import annotations

from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.datasets import Conversation, DatasetMessage

START = 1_700_000_000.0


def told(*lines: str, apart_seconds: float = 60.0, calls: tuple[ToolCall, ...] = ()) -> Conversation:
    """
    A conversation of these lines.

    Args:
        lines: each "role: text".
        calls: of the first assistant message.
    """
    messages: list[DatasetMessage] = []
    for at, line in enumerate(lines):
        role, _, text = line.partition(": ")
        made = calls if role == "assistant" and all(said.role != "assistant" for said in messages) else ()
        raw: Json = {"role": role, "content": text}
        if made:
            raw["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in made
            ]
        messages.append(DatasetMessage(f"m{at}", role, text, text, START + at * apart_seconds, 0, made, raw))
    return Conversation("told", tuple(messages), (), 1)
