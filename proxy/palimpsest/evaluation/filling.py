"""
The rule by which every baseline fills its block, so that only their choice of pieces differs.

The rule is ours (`core/block/packing.py`): best first, the last one cut to the room that is left, if enough is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

from palimpsest.core.block.packing import MIN_FILL_CHARS
from palimpsest.evaluation.systems import Pack

JOINT = "\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of memory: its text as it would be shown, and the indices of the messages that it tells of."""

    text: str
    messages: tuple[int, ...]


def filled(pieces: Iterable[Piece], budget_chars: int, started: float, *, whole: bool = False) -> Pack:
    """
    A block of the pieces, best first.

    Args:
        pieces: best first.
        budget_chars: of the whole block.
        started: `perf_counter()` when the question came.
        whole: a piece is never cut; one that does not fit is left out.
    """
    texts: list[str] = []
    packed: list[int] = []
    ranked: list[int] = []
    room = budget_chars
    for piece in pieces:
        ranked.extend(piece.messages)
        if not piece.text.strip():
            continue
        text = piece.text if len(piece.text) <= room else "" if whole or room < MIN_FILL_CHARS else piece.text[:room]
        if text:
            texts.append(text)
            packed.extend(piece.messages)
            room -= len(text) + len(JOINT)
    elapsed_ms = (perf_counter() - started) * 1000
    return Pack(JOINT.join(texts), _once(packed), _once(ranked), elapsed_ms, bool(texts))


def _once(messages: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(messages))
