"""
The session files of Codex (`rollout-*.jsonl`): items of the Responses API, one a line, in their order.

A line is `{"timestamp", "type", "payload"}`; the first versions wrote the bare items. A compaction says what stands for
the history from there on; a rollback takes the last turns away, which are a branch from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palimpsest.domain import Json, Role
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import seconds
from palimpsest.features.transfer.trees import Node, Tree
from palimpsest.wire.message import objects, text_of
from palimpsest.wire.responses import messages_of

PROGRAM = "codex"  # as config/clients.yaml names its signal
TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
BARE = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call"})
ROLLBACK = "thread_rolled_back"


def is_line(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return (value.get("type") in TYPES and isinstance(value.get("payload"), dict)) or _is_first(value)


def _is_first(value: Json) -> bool:
    """Whether a line is the first of an early file: the session without a type."""
    return "type" not in value and "timestamp" in value and isinstance(value.get("id"), str)


class Session:
    """The lines of one file. Give each to `take`; `trees` are its conversation."""

    def __init__(self) -> None:
        self._id = self._parent = ""
        self._model = ""
        self._began_at = 0.0
        self._nodes: list[Node] = []
        self._said: list[Json] = []  # items of one answer
        self._said_at = 0.0
        self._place = ""  # where the conversation stands
        self._resets = False

    def take(self, value: Any) -> None:
        """Take the next line of the file; raises `WireError`: it is none that this program writes."""
        if not isinstance(value, dict):
            raise WireError("not a line of a session")
        kind, at = value.get("type"), seconds(value.get("timestamp"))
        payload = value.get("payload")
        if kind in TYPES and isinstance(payload, dict):
            self._take(kind, payload, at)
        elif _is_first(value):
            self._begin(value, at)
        elif kind in BARE:
            self._item(value, at)

    def trees(self) -> list[Tree]:
        """The conversation; none where the file names no session."""
        self._end_answer()
        if not self._id:
            return []
        role = Role.SUBAGENT if self._parent else Role.MAIN
        named, serves = f"{PROGRAM}:{self._id}", f"{PROGRAM}:{self._parent}" if self._parent else ""
        return [Tree(PROGRAM, self._id, self._nodes, self._place, self._began_at, role, (named,), serves)]

    def _take(self, kind: Any, payload: Json, at: float) -> None:
        """Take in a line by its kind: session, model, item, compaction, or turns that are taken back."""
        if kind == "session_meta":
            self._begin(payload, at)
        elif kind == "turn_context":
            self._model = text_of(payload.get("model")) or self._model
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "compacted":
            self._compact(payload, at)
        elif payload.get("type") == ROLLBACK and type(payload.get("num_turns")) is int:
            self._roll_back(payload["num_turns"])

    def _begin(self, meta: Json, at: float) -> None:
        """Take id, time, parent and instructions of the session from its first line."""
        if self._id:
            return  # a fork repeats the beginning of what it was forked from
        self._id = text_of(meta.get("id"))
        self._began_at = seconds(meta.get("timestamp")) or at
        source = meta.get("source")
        spawned = source.get("subagent") if isinstance(source, dict) else None
        spawned = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
        self._parent = text_of(spawned.get("parent_thread_id")) if isinstance(spawned, dict) else ""
        base = meta.get("base_instructions")
        instructions = text_of(base.get("text")) if isinstance(base, dict) else text_of(meta.get("instructions"))
        if instructions:
            self._add([{"role": "system", "content": instructions}], at)

    def _item(self, item: Json, at: float) -> None:
        """Add a message, or a part of the answer that goes on."""
        if item.get("type") == "reasoning":
            return
        (_, message), *_ = messages_of([item]) or ((0, None),)
        if message is not None and message.role == "assistant":
            self._said.append(item)
            self._said_at = self._said_at or at
            return
        self._end_answer()
        if message is not None:
            self._add([message.raw], at)

    def _end_answer(self) -> None:
        said, self._said = self._said, []
        at, self._said_at = self._said_at, 0.0
        self._add([message.raw for _, message in messages_of(said)], at)

    def _compact(self, payload: Json, at: float) -> None:
        """End the answer, and add the summary of a compaction, from which the history begins anew."""
        self._end_answer()
        history = [*objects(payload.get("replacement_history"))]
        summary = text_of(payload.get("message"))
        self._resets = True
        if summary:
            self._add([{"role": "user", "content": summary}], at, is_summary=True)
        elif history:  # the last of it is the summary; the rest the person's own words, which stand in front already
            raws = [message.raw for _, message in messages_of(history)]
            self._add(raws[-1:], at, is_summary=True)

    def _roll_back(self, turns: int) -> None:
        """Take away the last turns: what comes next goes on from what stands in front of them."""
        self._end_answer()
        by_id = {node.id: node for node in self._nodes}
        place = self._place
        while place and turns > 0:
            node = by_id[place]
            turns -= bool(node.raw and node.raw["role"] == "user")
            place = node.parent
        self._place = place

    def _add(self, raws: Sequence[Json], at: float, is_summary: bool = False) -> None:
        for raw in raws:
            id = f"{len(self._nodes)}"
            resets, self._resets = self._resets, False
            self._nodes.append(Node(id, self._place, raw, at, self._model, resets, is_summary))
            self._place = id
