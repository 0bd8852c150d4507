"""What turns say, in short, for tests to compare."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.domain.portable_turn import PortableTurn
from palimpsest.wire.message import read_message


def told(turn: PortableTurn) -> tuple[str, ...]:
    """The event, and each message of a turn: its role and what it says or calls."""
    answer = [turn.answer] if turn.answer else []
    read = [read_message(message.raw) for message in (*turn.messages, *answer)]
    return (turn.event.value, *(f"{m.role}: {m.text or m.calls[0].name}" for m in read))


def carried(turns: Sequence[PortableTurn]) -> dict[str, list[str]]:
    """By turn, all that its request held, and its answer: what it keeps of its parents, and what it brings."""
    listings: dict[str, list[str]] = {}
    for turn in turns:
        messages = {m.position: read_message(m.raw).text for m in turn.messages if m.raw["role"] != "system"}
        for position, index, count in turn.kept:
            for place in range(count):
                messages[position + place] = listings[turn.parent][index + place]
        answer = [read_message(turn.answer.raw).text] if turn.answer else []
        listings[turn.id] = [messages[position] for position in sorted(messages)] + answer
    return listings
