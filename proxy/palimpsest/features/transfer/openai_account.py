"""
The account export of ChatGPT: `conversations.json`, a list of conversations, each a tree of messages (`mapping`).

What the model thought, and what was generated beside the conversation, is left out; calls of tools and their results
take the form of the chat API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from palimpsest.domain import Json
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import MAX_SECONDS
from palimpsest.features.transfer.trees import Node, Tree
from palimpsest.wire.message import text_of

PROGRAM = "chatgpt"
THOUGHTS = ("thoughts", "reasoning_recap")
PROFILE = ("user_profile", "user_instructions", "about_user_message", "about_model_message")
POINTERS = ("asset_pointer", "audio_asset_pointer", "video_container_asset_pointer")


def is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def tree_of(value: Json) -> Tree:
    """Read one conversation; raises `WireError`: it has no id."""
    id = text_of(value.get("conversation_id")) or text_of(value.get("id"))
    if not id:
        raise WireError("a conversation without an id")
    placed = [*_in_order(value["mapping"])]
    names: dict[str, str] = {}  # node: the call that it makes, or answers
    nodes = [_node(key, node, names) for key, node in placed]
    began_at, model = _seconds_or_zero(value.get("create_time")), text_of(value.get("default_model_slug"))
    nodes = [Node(n.id, n.parent, n.raw, n.at, n.model or model) for n in nodes]
    return Tree(PROGRAM, id, nodes, text_of(value.get("current_node")), began_at)


def _in_order(mapping: Json) -> Iterator[tuple[str, Json]]:
    """Nodes, parents in front of their children, siblings by time; unconnected ones count as roots."""
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    children: dict[str, list[str]] = {}
    for key, node in nodes.items():
        parent = text_of(node.get("parent"))
        children.setdefault(parent if parent in nodes and parent != key else "", []).append(key)
    for listed in children.values():
        listed.sort(key=lambda key: _time(nodes[key]))
    done: set[str] = set()
    for root in (*children.get("", ()), *nodes):  # the rest are rings, which no export should hold
        left = [root]
        while left:
            key = left.pop()
            if key not in done:
                done.add(key)
                yield key, nodes[key]
                left += reversed(children.get(key, ()))


def _time(node: Json) -> float:
    message = node.get("message")
    return _seconds_or_zero(message.get("create_time")) if isinstance(message, dict) else 0.0


def _seconds_or_zero(value: Any) -> float:
    is_time = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MAX_SECONDS
    return float(value) if is_time else 0.0


def _node(key: str, node: Json, names: dict[str, str]) -> Node:
    """A node of the conversation tree; `names` maps each node to the tool call that results below it answer."""
    parent, message = text_of(node.get("parent")), node.get("message")
    message = message if isinstance(message, dict) else {}
    author, content, metadata = (
        value if isinstance(value := message.get(name), dict) else {} for name in ("author", "content", "metadata")
    )
    role = text_of(author.get("role"))
    model = text_of(metadata.get("model_slug"))
    names[key] = names.get(parent, "")
    raw = _message(role, text_of(author.get("name")), text_of(message.get("recipient")), content, key, names)
    return Node(key, parent, raw, _time(node), model)


def _message(role: str, name: str, recipient: str, content: Json, key: str, names: dict[str, str]) -> Json | None:
    """A message of the Chat API; None for thoughts and what is empty."""
    kind = text_of(content.get("content_type"))
    if kind in THOUGHTS or role not in ("user", "assistant", "system", "tool"):
        return None
    said = _parts(content) if kind == "multimodal_text" else _text(content)
    if not said:
        return None
    if kind in ("user_editable_context", "model_editable_context"):
        return {"role": "system", "content": said}
    if role == "assistant" and recipient not in ("", "all"):
        names[key] = f"call-{key}"
        arguments = said if isinstance(said, str) else _joined(part.get("text") for part in said)
        call = {"id": names[key], "type": "function", "function": {"name": recipient, "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if role == "tool":
        named = {"name": name} if name else {}
        return {"role": "tool", "tool_call_id": names[key] or f"call-{key}", "content": said} | named
    return {"role": role, "content": said}


def _text(content: Json) -> str:
    if isinstance(parts := content.get("parts"), list):
        return _joined(
            part if isinstance(part, str) else text_of(part.get("text")) for part in _texts_and_objects(parts)
        )
    names = ("title", "url", *PROFILE, "name", "result", "text", "model_set_context")
    return _joined(content.get(name) for name in names)


def _parts(content: Json) -> list[Json]:
    """The parts of a message as the Chat API has them."""
    parts: list[Json] = []
    for part in _texts_and_objects(content.get("parts")):
        if isinstance(part, str):
            parts += [{"type": "text", "text": part}] if part else []
        elif text := text_of(part.get("text")):  # a transcription of what was spoken
            parts.append({"type": "text", "text": text})
        elif text_of(part.get("content_type")) == "image_asset_pointer":
            parts.append({"type": "image_url", "image_url": {"url": text_of(part.get("asset_pointer"))}})
        elif pointer := next((text for name in POINTERS if (text := text_of(part.get(name)))), ""):
            parts.append({"type": "file", "file": {"file_id": pointer}})
    return parts


def _texts_and_objects(parts: Any) -> Iterator[Any]:
    return (part for part in parts if isinstance(part, str | dict)) if isinstance(parts, list) else iter(())


def _joined(texts: Iterable[Any]) -> str:
    return "\n".join(text for text in texts if isinstance(text, str) and text)
