"""
The items of the Responses API as messages: its list holds messages, calls, results and thoughts alike.

What a model said in one go is one message: its thoughts, texts and calls, in their order. The items stay as they are,
as parts of that message, for `read_message` to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from palimpsest.domain import Json, Message
from palimpsest.domain.errors import WireError
from palimpsest.wire.message import is_opaque, read_message, text_of

TRIGGER = "compaction_trigger"  # as the last item it asks for a compaction, and says nothing
_SETTING = "configuration_update"  # how the model is to answer from there on; Codex puts it behind the user's message
_ANSWERING = ("_output", "_response")  # how the types of items end that answer a call, or a question of the model's

Placed = tuple[int, Message]
"""Index of a message's first item, and the message."""


def messages_of(items: Any) -> tuple[Placed, ...]:
    """
    Read a list of items, or a text, which stands for one message of the user's.

    Raises:
        WireError: it is neither, or an item is not what the wire calls one.
    """
    if isinstance(items, str):
        return ((0, read_message({"role": "user", "content": items})),)
    if not isinstance(items, list):
        raise WireError("reading the request body: its input is neither a text nor a list of items")
    return tuple((at, read_message(raw)) for at, raw in _folded(items))


def answer_of(items: Iterable[Any]) -> Message | None:
    """
    What the output of an answer says, as one message; None where it holds nothing of the model's.

    Raises:
        WireError: an item is not what the wire calls one.
    """
    own = [item for item in items if isinstance(item, dict) and _role(item) == "assistant"]
    return read_message({"role": "assistant", "content": own}) if own else None


def is_trigger(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == TRIGGER


def _folded(items: Iterable[Any]) -> Iterator[tuple[int, Json]]:
    said: list[Json] = []
    start = 0
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise WireError(f"reading the request body: item {at} is not an object")
        if item.get("type") == _SETTING:
            continue
        role = _role(item)
        if said and (role != "assistant" or is_opaque(item)):
            yield start, {"role": "assistant", "content": said}
            said = []
        if is_trigger(item):
            continue
        if is_opaque(item):
            yield at, {"role": "assistant", "content": [item]}
        elif role == "assistant":
            start = start if said else at
            said.append(item)
        elif "role" in item:
            yield at, item
        else:
            yield at, {"role": role, "content": [item]}
    if said:
        yield start, {"role": "assistant", "content": said}


def _role(item: Json) -> str:
    """Whose item it is. Types that are not known are the model's: nobody else thinks of new ones."""
    if "role" in item:
        return text_of(item["role"])
    return "tool" if text_of(item.get("type")).endswith(_ANSWERING) else "assistant"
