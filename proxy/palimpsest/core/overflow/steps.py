"""
Steps: the stretches of a conversation that go or stay as a whole.

A step is what a user says, or what a model says with the results of the calls in it. Between two steps no call waits
for its result, and no element of the body is divided, so that without a step all pairs are still complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from palimpsest.domain import TOOL_ROLES, Chat, Message, frozen


@frozen
class Step:
    """
    Messages `first` to `stop` of a request, the last not included.

    `messages` are those of them that go with it: instructions stay, unless they share an element of the body.
    """

    first: int
    stop: int
    is_users: bool
    messages: tuple[int, ...]


def steps_of(chat: Chat) -> list[Step]:
    """The steps of a request, in order. Instructions in front of the first belong to none."""
    messages = chat.messages
    waiting = _inside_calls(messages)
    found: list[int] = []
    last_role = ""
    for at, message in enumerate(messages):
        if message.is_instruction:
            continue
        begins = message.role not in TOOL_ROLES and (message.role != last_role or not found)
        is_divided = bool(chat.places) and at > 0 and chat.places[at] == chat.places[at - 1]
        if begins and at not in waiting and not is_divided:
            found.append(at)
        last_role = message.role
    pairs = pairwise([*found, len(messages)])
    return [Step(at, stop, messages[at].role == "user", _droppable(chat, at, stop)) for at, stop in pairs]


def _droppable(chat: Chat, first: int, stop: int) -> tuple[int, ...]:
    said = [at for at in range(first, stop) if not chat.messages[at].is_instruction]
    if len(said) == stop - first or not chat.places:
        return tuple(said)
    elements = {chat.places[at] for at in said}
    return tuple(at for at in range(first, stop) if chat.places[at] in elements)


def _inside_calls(messages: Sequence[Message]) -> frozenset[int]:
    """Indexes in front of which a call still waits for a result. Ids may be used again: the newest counts."""
    called: dict[str, int] = {}
    newest, waiting = -1, set[int]()
    for at, message in enumerate(messages):
        if message.calls:
            newest = at
            called |= {call.id: at for call in message.calls if call.id}
        elif message.role in TOOL_ROLES:
            since = called.get(message.answers_call, newest)
            waiting.update(range(since + 1, at + 1) if since >= 0 else ())
    return frozenset(waiting)
