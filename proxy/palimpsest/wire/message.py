"""
The reader of a message's parts, for all three APIs: texts, calls, results, media.

Each wire hands out its messages in the form `{"role": ..., "content": text or parts}`, parts as the client wrote them,
so that what is stored is read back here whatever wire it came by.
"""

from __future__ import annotations

import hashlib
import re
from binascii import a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from sys import getsizeof
from typing import Any
from urllib.parse import unquote_to_bytes

from palimpsest.domain import Json, Message, ToolCall
from palimpsest.domain.errors import WireError
from palimpsest.wire.frame import without_blocks
from palimpsest.wire.values import dumps, memory_bytes

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}  # type to its field
BLOCK_ROLES = ("user", "system", "developer")  # of messages that a block is put into, or that are one
OPAQUE_PART = "compaction"  # in the type of a part: what a provider made of a history, for itself to read
OWN_PREFIX = "palimpsest.compaction."  # of what stands in an item that the proxy made itself, in a provider's place
INLINED_FIELDS = ("data", "file_data")  # base64 without `data:` in front
REFERENCE = "sha256:"
REFERRED_FIELDS = ("url", "data", "file_data", "file_id")
THOUGHTS = ("thinking", "redacted_thinking")  # go back to the provider and to nobody else
BYTES_PER_MESSAGE = 500  # of memory for the objects that a message is read into, beside what the client wrote
QUOTED = ("document", "search_result")  # texts that somebody hands over, in `content`, or in a `source` of some kind

_TAG = re.compile(r"<([\w-]{1,64})(?![\w-])[^<>]{0,4096}>")  # a name is short, and whole


def read_message(raw: Any) -> Message:
    """Read one message, as in a chat request or with another wire's parts; raises `WireError`: it is none."""
    if not isinstance(raw, dict) or not isinstance(raw.get("role"), str):
        raise WireError("reading a message: not an object with a role")
    said = _PartTexts()
    try:
        said.content(without_memory_blocks(raw).get("content"))
    except RecursionError as cause:  # somebody nests parts by the hundred
        raise WireError("reading a message: its parts are nested too deep") from cause
    if refusal := text_of(raw.get("refusal")):
        said.texts.append(refusal)
    said.chat_calls(raw)
    return Message(
        role=raw["role"],
        text="\n".join(said.texts),
        raw=raw,
        name=text_of(raw.get("name")),
        calls=tuple(said.calls),
        answers_call=text_of(raw.get("tool_call_id")) or said.answers,
        media=tuple(said.media),
        opaque=tuple(said.opaque),
        refers=tuple(said.refers),
    )


def bytes_of(message: Message) -> int:
    """Bytes of memory that a message takes, about, with what the client wrote."""
    text = 0 if message.raw.get("content") is message.text else getsizeof(message.text)
    return BYTES_PER_MESSAGE + memory_bytes(message.raw) + text + sum(getsizeof(c.arguments) for c in message.calls)


def with_referred(message: Message, parts: Mapping[str, Json]) -> Message:
    """The message with parts that it refers to by id filled in, as far as they are known."""
    if not parts.keys() & set(message.refers):
        return message
    content = [parts.get(_reference(part), part) for part in message.raw["content"]]
    return read_message({**message.raw, "content": content})


def parts_by_id(message: Message) -> dict[str, Json]:
    """The parts of a message that have an id."""
    return {id: part for part in objects(message.raw.get("content")) if (id := text_of(part.get("id")))}


def is_aside(text: str) -> bool:
    """Whether a text stands between tags as a whole, as clients put what they add beside results of tools."""
    inner = text.strip()
    opening = _TAG.match(inner)
    return opening is not None and inner.endswith(f"</{opening[1]}>", opening.end())


def is_opaque(part: Json) -> bool:
    """Whether a part stands for a history in words that only its provider can read."""
    return OPAQUE_PART in text_of(part.get("type")) and bool(text_of(part.get("encrypted_content")))


def compacted(part: Json) -> str:
    """The summary that a provider put in place of a history and that anybody can read; "" where it is none."""
    return text_of(part.get("content")) if part.get("type") == OPAQUE_PART else ""


def without_memory_blocks(raw: Json) -> Json:
    """
    A message without memory blocks, which another proxy in front may have added; the same object if it has none.

    Answers and results of tools never get one: what reads like a block there is kept as what they say.
    """
    content = raw.get("content")
    if raw.get("role") not in BLOCK_ROLES or not isinstance(content, str | list):
        return raw
    if isinstance(content, str):
        said = without_blocks(content)
        return raw if len(said) == len(content) else {**raw, "content": said}
    parts = [part for part in map(_without_memory_block, content) if part is not None]
    return raw if all(map(is_, parts, content)) and len(parts) == len(content) else {**raw, "content": parts}


def _without_memory_block(part: Any) -> Any:
    """A content part without memory blocks; None where it was nothing else."""
    if not isinstance(part, dict):
        return part
    name = TEXT_PARTS.get(text_of(part.get("type")), "")
    text = part.get(name)
    if not isinstance(text, str):
        return without_memory_blocks(part) if "role" in part else part
    said = without_blocks(text)
    if len(said) == len(text):
        return part
    return {**part, name: said} if said else None


def inline_reference(data: str) -> str:
    """
    The reference that replaces inlined data in the archive: `sha256:<hex>;<bytes>`, its hash and size.

    Args:
        data: a `data:` URI, or bare base64; or such a reference, which stands for itself. What does not decode is
            hashed as written.
    """
    if data.startswith(REFERENCE):
        return data
    head, _, payload = data.partition(",") if data[:5].lower() == "data:" else (";base64", "", data)
    try:
        content = a2b_base64(payload) if head.lower().endswith(";base64") else unquote_to_bytes(payload)
    except ValueError:
        content = payload.encode("utf-8", "surrogatepass")
    return f"{REFERENCE}{hashlib.sha256(content).hexdigest()};{len(content)}"


def text_of(value: Any) -> str:
    """The value where it is a text, else ""."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> Iterable[Json]:
    """The objects in a list; nothing where it is none."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _reference(part: Json) -> str:
    """The id of the part that this one refers to, "" where it says something itself."""
    return text_of(part.get("id")) if part.get("type") == "item_reference" or part.keys() == {"id"} else ""


@dataclass(slots=True)
class _PartTexts:
    """What the parts read so far say, in their order."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    media: list[str] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    refers: list[str] = field(default_factory=list)
    answers: str = ""

    def content(self, content: Any) -> None:
        """Add a text or parts."""
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list):
            for part in content:
                self._part(part)
        elif content is not None:
            raise WireError("reading a message: its content is neither text, nor parts, nor null")

    def _part(self, part: Any) -> None:
        """Add one content part of any wire: text, call, result, media, or what only the provider can read."""
        if not isinstance(part, dict):
            raise WireError("reading a message: a content part is not an object")
        kind = text_of(part.get("type"))
        if (text_field := TEXT_PARTS.get(kind)) is not None:
            if isinstance(text := part.get(text_field), str):
                self.texts.append(text)
        elif kind == "message" or (not kind and "role" in part):  # an item of the Responses wire
            self.content(part.get("content"))
        elif kind == "tool_result":
            self._result(part.get("tool_use_id"), part.get("content"))
        elif kind.endswith("_tool_result"):  # of the provider's own tools: they answer no call of the client's
            self._result("", part.get("content"))
        elif kind.endswith("_output"):
            self._result(part.get("call_id"), part.get("output"))
        elif kind == "tool_use":
            self._call(part.get("id"), part.get("name"), part.get("input"))
        elif kind.endswith("_call") and "call_id" in part:  # others are the provider's own, and done
            asked = next((part[key] for key in ("arguments", "input", "action") if key in part), "")
            self._call(part.get("call_id"), part.get("name") or kind, asked)
        elif summary := compacted(part):
            if not summary.startswith(OWN_PREFIX):
                self.content(summary)
            self.opaque.append(inline_reference(summary))
        elif referred := _reference(part):
            self.refers.append(referred)
        elif is_opaque(part):
            self.opaque.append(inline_reference(part["encrypted_content"]))
        elif kind in THOUGHTS:
            pass
        elif kind in QUOTED and (quoted := _quoted(part)) is not None:
            self.content(quoted)
        else:
            self._medium(part, kind)

    def _result(self, call: Any, content: Any) -> None:
        """Add the content of a tool result, and the id of the call that it answers."""
        self.answers = self.answers or text_of(call)
        if isinstance(content, dict):
            content = [content]
        if isinstance(content, str | list):
            self.content(content)

    def _call(self, id: Any, name: Any, arguments: Any) -> None:
        if not isinstance(arguments, str):
            arguments = dumps(arguments)
        self.calls.append(ToolCall(id=text_of(id), name=text_of(name), arguments=arguments))

    def _medium(self, part: Json, kind: str) -> None:
        """Add an image, audio or file: `{"type": T, T or "source": URL or {"url" | "data" | ...}}`, or bare fields."""
        held = part.get(kind, part.get("source"))
        if held is None and kind.startswith("input_"):  # the Responses wire: {"type": "input_image", "image_url": URL}
            held = {"url": part.get("image_url"), **part}
        if isinstance(held, str):
            held = {"url": held}
        if not isinstance(held, dict):
            return
        for name in REFERRED_FIELDS:
            if isinstance(value := held.get(name), str):
                inlined = name in INLINED_FIELDS or value[:5].lower() == "data:"
                self.media.append(inline_reference(value) if inlined else value)

    def chat_calls(self, raw: Json) -> None:
        """Add the calls that a chat message carries beside its content."""
        calls = raw.get("tool_calls") or []
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise WireError("reading a message: its tool calls are not a list of objects")
        legacy = raw.get("function_call")
        listed: Sequence[Json] = [*calls, {"function": legacy}] if isinstance(legacy, dict) else calls
        for call in listed:
            definition = call.get("function", call.get("custom"))
            definition = definition if isinstance(definition, dict) else {}
            self._call(call.get("id"), definition.get("name"), definition.get("arguments", definition.get("input", "")))


def _quoted(part: Json) -> str | list[Any] | None:
    """The text or the parts that a document hands over; None where it holds data, or is elsewhere."""
    source = part.get("source")
    source = source if isinstance(source, dict) else {}
    said = source.get("data") if source.get("type") == "text" else source.get("content", part.get("content"))
    return said if isinstance(said, str | list) else None


def readable(text: str, calls: Sequence[ToolCall] = ()) -> str:
    """What a message says and does, as text (LANTERN 3.1): one line a call. Without calls it is `text` itself."""
    return "\n".join(filter(None, (text, *(f"{call.name}({call.arguments})" for call in calls))))
