"""
What does a chat-completions body say, and how is something added to it? parse, render, reply.

Lossless by construction: `parse` reads and keeps the bytes, `render` splices text into those very bytes, so whatever
is not understood here (fields, number formats, key order) reaches the upstream as the client wrote it.
"""

from __future__ import annotations

import hashlib
from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

import orjson

from proxy.domain import BLOCK_CLOSE, BLOCK_OPEN, Chat, Insertion, Json, Message, ToolCall
from proxy.errors import WireError
from proxy.wire.assembly import assemble
from proxy.wire.splice import splice

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}  # type to its field


def parse(body: bytes) -> Chat:
    """
    Read a request.

    Raises:
        WireError: the body is no chat request that we understand; pass it on untouched.
    """
    try:
        raw = orjson.loads(body)
    except orjson.JSONDecodeError as cause:
        raise WireError(f"reading the request body: {cause}") from cause
    if not isinstance(raw, dict):
        raise WireError("reading the request body: not a JSON object")
    listed = raw.get("messages")
    if not isinstance(listed, list) or not listed:
        raise WireError("reading the request body: no list of messages")
    limit = raw.get("max_completion_tokens") or raw.get("max_tokens")
    return Chat(
        messages=tuple(map(read_message, listed)),
        model=_text(raw.get("model")),
        body=body,
        raw=raw,
        user=_text(raw.get("user")),
        tool_names=tuple(_tool_names(raw)),
        stream=raw.get("stream") is True,
        max_reply_tokens=limit if type(limit) is int and limit > 0 else None,
    )


def render(chat: Chat, insertions: Sequence[Insertion]) -> bytes:
    """
    The body with text added to its messages; without insertions the client's very bytes.

    Raises:
        WireError: the text cannot be added without doubt about what the body means (a repeated key, an index that is
            not there); pass it on untouched.
    """
    return splice(chat.body, insertions) if insertions else chat.body


def reply(payloads: Sequence[bytes], streamed: bool) -> tuple[Message | None, int | None]:
    """
    Read what was heard of an answer; never raises.

    Args:
        payloads: of server-sent events when `streamed`, else the pieces of one JSON body.

    Returns:
        The first choice's message as far as it was heard (None: nothing readable), and `usage.prompt_tokens`.
    """
    try:
        raw, prompt_tokens = assemble(payloads if streamed else [b"".join(payloads)])
    except RecursionError:  # somebody nests objects by the hundred
        return None, None
    if raw is None:
        return None, prompt_tokens
    try:
        return read_message(raw | {"role": raw.get("role") or "assistant"}), prompt_tokens
    except WireError:
        return None, prompt_tokens


def read_message(raw: Any) -> Message:
    """
    Read one message as it stands in a request.

    Raises:
        WireError: it is not what the wire calls a message.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("role"), str):
        raise WireError("reading a message: not an object with a role")
    content = raw.get("content")
    parts: list[Json] = []
    if isinstance(content, str):
        texts = [without_blocks(content)]
    elif content is None or isinstance(content, list):
        parts = content or []
        texts = list(_texts(parts))
    else:
        raise WireError("reading a message: its content is neither text, nor parts, nor null")
    if refusal := _text(raw.get("refusal")):
        texts.append(refusal)
    return Message(
        role=raw["role"],
        text="\n".join(texts),
        raw=raw,
        name=_text(raw.get("name")),
        calls=tuple(_calls(raw)),
        answers_call=_text(raw.get("tool_call_id")),
        media=tuple(reference for part in parts for reference in _media(part)),
    )


def without_blocks(text: str) -> str:
    """The text without blocks of ours and the blank line that joins each to what follows."""
    if BLOCK_OPEN not in text:
        return text
    kept, at = [], 0
    while (close := text.find(BLOCK_CLOSE, at)) >= 0:
        stop = close + len(BLOCK_CLOSE)
        start = text.rfind(BLOCK_OPEN, at, close)  # the nearest: somebody may have written the word alone before it
        kept.append(text[at : start if start >= 0 else stop])
        at = stop + 2 if start >= 0 and text.startswith("\n\n", stop) else stop
    return "".join(kept) + text[at:]


def inline_reference(data: str) -> str:
    """
    What stands for inlined data in the archive: `sha256:<hex>;<bytes>` of the decoded bytes.

    Args:
        data: a `data:` URI, or bare base64. What does not decode is hashed as written.
    """
    head, _, payload = data.partition(",") if data[:5].lower() == "data:" else (";base64", "", data)
    try:
        content = a2b_base64(payload) if head.lower().endswith(";base64") else unquote_to_bytes(payload)
    except ValueError:
        content = payload.encode()
    return f"sha256:{hashlib.sha256(content).hexdigest()};{len(content)}"


def _texts(parts: Sequence[Any]) -> Iterator[str]:
    for part in parts:
        if not isinstance(part, dict):
            raise WireError("reading a message: a content part is not an object")
        field = TEXT_PARTS.get(_text(part.get("type")))
        if field and isinstance(text := part.get(field), str):
            said = without_blocks(text)
            if said or not text:  # a part that was nothing but a block of ours leaves no empty line
                yield said


def _media(part: Json) -> Iterator[str]:
    """Images, audio and files: `{"type": T, T: URL or {"url" | "data" | "file_data" | "file_id": ...}}`."""
    kind = _text(part.get("type"))
    if kind in TEXT_PARTS:
        return
    held = part.get(kind, part.get("source"))
    if isinstance(held, str):
        held = {"url": held}
    if not isinstance(held, dict):
        return
    for field in ("url", "data", "file_data", "file_id"):
        if isinstance(value := held.get(field), str):
            inlined = field in ("data", "file_data") or value[:5].lower() == "data:"
            yield inline_reference(value) if inlined else value


def _calls(raw: Json) -> Iterator[ToolCall]:
    calls = raw.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise WireError("reading a message: its tool calls are not a list of objects")
    legacy = raw.get("function_call")
    for call in [*calls, {"function": legacy}] if isinstance(legacy, dict) else calls:
        told = call.get("function", call.get("custom"))
        told = told if isinstance(told, dict) else {}
        arguments = told.get("arguments", told.get("input", ""))
        if not isinstance(arguments, str):
            try:
                arguments = orjson.dumps(arguments).decode()
            except orjson.JSONEncodeError as cause:
                raise WireError(f"reading a tool call: {cause}") from cause
        yield ToolCall(id=_text(call.get("id")), name=_text(told.get("name")), arguments=arguments)


def _tool_names(raw: Json) -> Iterator[str]:
    for tool in _objects(raw.get("tools")):
        told = tool.get("function", tool.get("custom"))
        if isinstance(told, dict) and isinstance(name := told.get("name"), str):
            yield name
    for function in _objects(raw.get("functions")):
        if isinstance(name := function.get("name"), str):
            yield name


def _objects(value: Any) -> Iterable[Json]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
