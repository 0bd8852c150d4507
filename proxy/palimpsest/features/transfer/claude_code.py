"""
The session files of Claude Code: one JSON object a line, each with the line that it follows (`parentUuid`).

An answer stands on several lines, one for each of its parts, with the id of the same message. A compaction is a
boundary that names what it follows beside the tree, and a summary behind it. A sub-agent's lines are a conversation of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from palimpsest.domain import Json, Role
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import seconds
from palimpsest.features.transfer.trees import Node, Tree
from palimpsest.wire import messages
from palimpsest.wire.message import THOUGHTS, objects, text_of
from palimpsest.wire.values import dumps

PROGRAM = "claude-code"  # as config/clients.yaml names its signal
TYPES = frozenset({"user", "assistant", "system", "summary", "attachment", "progress", "file-history-snapshot"})
BOUNDARY = "compact_boundary"
SYNTHETIC = "<synthetic>"  # the model of answers that the program made itself: errors, interruptions


def is_line(value: Any) -> bool:
    return isinstance(value, dict) and "sessionId" in value and value.get("type") in TYPES and "payload" not in value


class Session:
    """The lines of one file. Give each to `take`; `trees` are its conversations."""

    def __init__(self) -> None:
        self._id = ""
        self._drafts: dict[str, list[_Line]] = {}  # by agent; "" the session itself
        self._agent_of: dict[str, str] = {}  # sub-agents of a session, by their lines
        self._answers: dict[str, _Line] = {}  # by the id of their message
        self._line_of: dict[str, str] = {}  # lines that are part of another

    def take(self, value: Any) -> None:
        """Take the next line of the file; raises `WireError`: it is none that this program writes."""
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise WireError("not a line of a session")
        uuid = text_of(value.get("uuid"))
        if not uuid:
            return  # titles, snapshots of files and the like
        self._id = self._id or text_of(value.get("sessionId"))
        line = _Line(uuid, self._parent(value), seconds(value.get("timestamp")))
        line.resets = value["type"] == "system" and value.get("subtype") == BOUNDARY
        agent = self._agent(value, line)
        message = value.get("message")
        if value["type"] in ("user", "assistant") and isinstance(message, dict) and not value.get("isMeta"):
            line.is_summary = value.get("isCompactSummary") is True
            line.model = text_of(message.get("model"))
            content = message.get("content")
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*objects(content)]
            line.role, line.parts = value["type"], [part for part in parts if part.get("type") not in THOUGHTS]
            if value["type"] == "assistant" and self._joins(line, text_of(message.get("id"))):
                return
        self._drafts.setdefault(agent, []).append(line)

    def trees(self) -> Iterator[Tree]:
        """The session's conversation, and those of its sub-agents."""
        for agent, lines in self._drafts.items():
            own = f"{PROGRAM}:{self._id}"
            yield Tree(
                PROGRAM,
                f"{self._id}/{agent}" if agent else self._id,
                [*_nodes(lines)],
                role=Role.SUBAGENT if agent else Role.MAIN,
                client_ids=(f"{own}/{agent}" if agent else own,),
                serves=own if agent else "",
                began_at=next((line.at for line in lines if line.at), 0.0),
            )

    def _parent(self, value: Json) -> str:
        parent = text_of(value.get("parentUuid")) or text_of(value.get("logicalParentUuid"))
        return self._line_of.get(parent, parent)

    def _agent(self, value: Json, line: _Line) -> str:
        """The subagent whose line this is, "" for none: older files mix the lines, newer ones name the agent."""
        agent = text_of(value.get("agentId"))
        if not agent and value.get("isSidechain"):
            agent = self._agent_of.get(line.parent, "") or line.uuid
        if agent:
            self._agent_of[line.uuid] = agent
        return agent

    def _joins(self, line: _Line, id: str) -> bool:
        """Whether a line is one more part of an answer."""
        answer = self._answers.get(id) if id else None
        if answer is not None and line.parent == answer.uuid:
            answer.parts += line.parts
            self._line_of[line.uuid] = answer.uuid
            return True
        if id:
            self._answers[id] = line
        return False


class _Line:
    """One line, or those of one answer."""

    def __init__(self, uuid: str, parent: str, at: float) -> None:
        self.uuid, self.parent, self.at = uuid, parent, at
        self.role, self.model = "", ""
        self.parts: list[Json] = []
        self.resets = self.is_summary = False


def _nodes(lines: Iterable[_Line]) -> Iterator[Node]:
    """The nodes of a session, one for each message of the API that a line makes."""
    resets = False
    last_of: dict[str, str] = {}
    for line in lines:
        parent = last_of.get(line.parent, line.parent)
        resets |= line.resets
        raws = [] if not line.parts or line.model == SYNTHETIC else _messages_of(line)
        if not raws:
            yield Node(line.uuid, parent)
            continue
        id = line.uuid
        for number, raw in enumerate(raws):
            id = line.uuid if not number else f"{line.uuid}/{number}"
            yield Node(id, parent, raw, line.at, line.model, resets and not number, line.is_summary)
            parent = id
        last_of[line.uuid], resets = id, False


def _messages_of(line: _Line) -> list[Json]:
    """The message of a line, as the messages that the API would have."""
    body = dumps({"messages": [{"role": line.role, "content": line.parts}]})
    return [said.raw for said in messages.parse(body.encode(errors="surrogatepass")).messages]
