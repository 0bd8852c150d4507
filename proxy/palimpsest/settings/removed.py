"""
Settings of earlier versions: what took the place of each, for whoever still sets one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LADDER = "recall blocks shrink at 60, 70 and 80 % of the window, as measured best"
_REINFORCEMENT = "counting recalls gained nothing when measured, and was taken out"
_RANKING = "fixed at the value that measured best"
_WAITING = "fixed, and seen in the metrics (palimpsest_queued, palimpsest_turns_lost_total)"

REMOVED = {
    **dict.fromkeys(
        (f"pressure.{name}" for name in ("warm", "tight", "full")),
        _LADDER,
    ),
    **dict.fromkeys(
        (f"pressure.{tier}_{what}" for tier in ("calm", "warm", "tight") for what in ("passages", "passage_chars")),
        _LADDER,
    ),
    "pressure.replay_share": "replayed blocks take at most 4 % of the window",
    "pressure.unknown_tokenizer_ratio": "1.3 until the provider's reports of usage teach better",
    "restore.chars": "a restore takes at most 6,000 characters; memory.generosity says how readily it takes them",
    "restore.free_room_share": "a restore takes at most half of the free window",
    "restore.passage_chars": "a passage of a restore has at most 1,000 characters",
    "recall.fusion": _RANKING,
    "recall.mmr_lambda": _RANKING,
    "recall.candidates": _RANKING,
    "recall.gate_cosine": "memory.generosity took its place",
    "recall.gate_rare_terms": "memory.generosity took its place",
    "recall.placement": "it is memory.placement now",
    **dict.fromkeys(
        (f"reinforcement.{name}" for name in ("enabled", "boost", "decay", "floor", "threshold", "smoothing")),
        _REINFORCEMENT,
    ),
    "archive.queue_turns": _WAITING,
    "archive.queue_bytes": _WAITING,
    "archive.answer_bytes": "of an answer the first 8 MiB are archived",
    "archive.commit_wait_ms": "it is the same as memory.deadline_ms now",
    "archive.index_batch": "32 passages are embedded at a time",
    "model.threads": "an embedding run takes one thread",
    "limits.memory_body_bytes": "requests above 32 MiB pass without memory",
    "limits.memory_messages": "requests of more than 20,000 messages pass without memory",
}
"""Dotted path of each setting, and what holds instead."""


def removed_in(tree: Mapping[str, Any]) -> Iterator[str]:
    """Paths of the removed settings that a tree of settings sets."""
    for path in REMOVED:
        section, _, name = path.partition(".")
        if isinstance(inner := tree.get(section), Mapping) and name in inner:
            yield path
