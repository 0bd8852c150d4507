"""
The chat-completions wire: parse, render, reply.

Lossless by construction: `parse` reads and keeps the bytes, `render` splices text into those very bytes, so whatever
is not understood here (fields, number formats, key order) reaches the upstream as the client wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from palimpsest.domain import Api, Chat, Completion, Insertion, Json
from palimpsest.domain.errors import WireError
from palimpsest.wire.assembly import assemble
from palimpsest.wire.json_body import positive, read_object
from palimpsest.wire.layout import KnownBody
from palimpsest.wire.message import objects, read_message, text_of
from palimpsest.wire.splice import Form, add

FORM = Form(listed="messages", text_part="text")
API = Api.OPENAI
LISTED, FOLDS = FORM.listed, False


def parse(body: bytes, known: KnownBody | None = None, raw: Json | None = None) -> Chat:
    """See `palimpsest.domain.ports.Wire`."""
    raw = known.raw if known else raw or read_object(body)
    listed = raw.get("messages")
    if known:
        new = (known.apart.get(id(said)) or (read_message(said),) for said in known.further)
        messages = known.messages((), [*chain.from_iterable(new)])
    elif not isinstance(listed, list) or not listed:
        raise WireError("reading the request body: no list of messages")
    else:
        messages = tuple(map(read_message, listed))
    return Chat(
        messages=messages,
        model=text_of(raw.get("model")),
        body=body,
        raw=raw,
        user=text_of(raw.get("user")),
        tool_names=tuple(_tool_names(raw)),
        stream=raw.get("stream") is True,
        max_reply_tokens=positive(raw.get("max_completion_tokens") or raw.get("max_tokens")),
        layout=known.layout if known else None,
    )


def render(chat: Chat, insertions: Sequence[Insertion]) -> bytes:
    """See `palimpsest.domain.ports.Wire`."""
    return add(chat, insertions, FORM)


def reply(payloads: Sequence[bytes], streamed: bool) -> Completion:
    """See `palimpsest.domain.ports.Wire`; the message is the first choice's, as far as it was heard."""
    try:
        raw, prompt_tokens = assemble(payloads if streamed else [b"".join(payloads)])
    except RecursionError:  # somebody nests objects by the hundred
        return Completion()
    if raw is None:
        return Completion(None, prompt_tokens)
    try:
        return Completion(read_message(raw | {"role": raw.get("role") or "assistant"}), prompt_tokens)
    except WireError:
        return Completion(None, prompt_tokens)


def _tool_names(raw: Json) -> Iterator[str]:
    for tool in objects(raw.get("tools")):
        definition = tool.get("function", tool.get("custom"))
        if isinstance(definition, dict) and isinstance(name := definition.get("name"), str):
            yield name
    for function in objects(raw.get("functions")):
        if isinstance(name := function.get("name"), str):
            yield name
