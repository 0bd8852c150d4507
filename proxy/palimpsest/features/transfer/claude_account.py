"""
The account export of Claude: `conversations.json`, a list of conversations with their messages (`chat_messages`).

A message of the model's holds its calls of tools and their results; here they take the form of the Messages API, where
results are the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palimpsest.domain import Json
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import seconds
from palimpsest.features.transfer.trees import Node, Tree
from palimpsest.wire import messages
from palimpsest.wire.message import objects, text_of
from palimpsest.wire.values import dumps

PROGRAM = "claude"
FIELDS = {"text": ("text",), "tool_use": ("id", "name", "input"), "tool_result": ("tool_use_id", "content", "is_error")}
"""Of the parts that are kept, what the API knows of them; the rest is for the pages of the web site."""


def is_conversation(value: Any) -> bool:
    """Whether a value of the file is a conversation of this program."""
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def tree_of(value: Json) -> Tree:
    """Read one conversation; raises `WireError`: it has no id, or a message is none."""
    id = text_of(value.get("uuid"))
    if not id:
        raise WireError("a conversation without a uuid")
    nodes: list[Node] = []
    last_of: dict[str, str] = {}  # message: the last of the nodes that it makes
    before = ""
    for number, message in enumerate(objects(value["chat_messages"])):
        name = text_of(message.get("uuid")) or str(number)
        named = message.get("parent_message_uuid")
        # the parent of the first is an id that no message has; older exports name none, and are lists
        parent = last_of.get(named, "") if isinstance(named, str) and named else before
        at = seconds(message.get("created_at"))
        for place, raw in enumerate(_messages_of(message)):
            node = Node(name if not place else f"{name}/{place}", parent, raw, at)
            nodes.append(node)
            parent = node.id
        last_of[name] = before = parent
    current = last_of.get(text_of(value.get("current_leaf_message_uuid")), "")
    return Tree(PROGRAM, id, nodes, current, seconds(value.get("created_at")))


def _messages_of(message: Json) -> Iterator[Json]:
    """Split one message of the export into messages of the API, wherever the role changes."""
    sender = text_of(message.get("sender"))
    if sender not in ("human", "assistant"):
        raise WireError("a message that is neither the person's nor the model's")
    parts = [*_parts(message.get("content"))] or _of_text(message.get("text"))
    parts += _documents_of(message)
    natives: list[Json] = []
    for part in parts:
        role = "user" if sender == "human" or part["type"] == "tool_result" else "assistant"
        if natives and natives[-1]["role"] == role:
            natives[-1]["content"].append(part)
        else:
            natives.append({"role": role, "content": [part]})
    if natives:
        chat = messages.parse(dumps({"messages": natives}).encode(errors="surrogatepass"))
        yield from (said.raw for said in chat.messages)


def _of_text(text: Any) -> list[Json]:
    return [{"type": "text", "text": text}] if isinstance(text, str) and text else []


def _parts(content: Any) -> Iterator[Json]:
    """The text, calls and results among the parts of a message, with missing ids of calls filled in."""
    last_call = ""
    for number, part in enumerate(objects(content)):
        kind = text_of(part.get("type"))
        if kind not in FIELDS or (kind == "text" and not part.get("text")):
            continue
        kept = {"type": kind} | {name: part[name] for name in FIELDS[kind] if part.get(name) is not None}
        if kind == "tool_use":  # older exports leave out the ids
            last_call = kept["id"] = text_of(part.get("id")) or f"call-{number}"
        elif kind == "tool_result":
            kept["tool_use_id"] = text_of(part.get("tool_use_id")) or last_call
            kept["content"] = (
                [*_parts(part["content"])] if isinstance(part.get("content"), list) else part.get("content")
            )
            if not kept["content"]:
                kept["content"] = ""
        yield kept


def _documents_of(message: Json) -> list[Json]:
    """The attachments of a message as documents: their text, or the ids of files that the export leaves out."""
    found: list[Json] = []
    for one in objects(message.get("attachments")):
        if text := text_of(one.get("extracted_content")):
            source = {"type": "text", "media_type": "text/plain", "data": text}
            found.append({"type": "document", "title": text_of(one.get("file_name")), "source": source})
    for one in objects(message.get("files")):
        if name := text_of(one.get("file_uuid")) or text_of(one.get("file_name")):
            source = {"type": "file", "file_id": name}
            found.append({"type": "document", "title": text_of(one.get("file_name")), "source": source})
    return found
