"""
The wire of the Responses API: parse, render, reply.

Lossless as `chat` is: the bytes are kept, and text is spliced into those very bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from palimpsest.domain import Api, Chat, Completion, Insertion, Json, Message, PersistentList
from palimpsest.domain.errors import WireError
from palimpsest.wire.json_body import object_in, positive, read_object, token_count
from palimpsest.wire.layout import OUTSIDE, KnownBody
from palimpsest.wire.message import is_opaque, objects, parts_by_id, read_message, text_of
from palimpsest.wire.splice import Form, add

FORM = Form(listed="input", text_part="input_text")
API = Api.OPENAI
LISTED, FOLDS = FORM.listed, True

TRIGGER = "compaction_trigger"  # as the last item it asks for a compaction, and says nothing
_SETTING = "configuration_update"  # how the model is to answer from there on; Codex puts it behind the user's message
_ANSWERING = ("_output", "_response")  # how the types of items end that answer a call, or a question of the model's

Placed = tuple[int, Message]
"""Index of a message's first item, and the message."""


def parse(body: bytes, known: KnownBody | None = None, raw: Json | None = None) -> Chat:
    """See `palimpsest.domain.ports.Wire`."""
    raw = known.raw if known else raw or read_object(body)
    listed = raw.get("input")
    outside = () if known and known.is_outside_known else tuple(_instructions(raw))
    start = known.elements if known else 0
    placed = messages_of([*known.further] if known else [] if listed is None else listed)
    new, places, beside = [message for _, message in placed], [start + at for at, _ in placed], [OUTSIDE] * len(outside)
    follows, conversation = text_of(raw.get("previous_response_id")), raw.get("conversation")
    return Chat(
        messages=known.messages(outside, new) if known else (*outside, *new),
        places=known.places(beside, places) if known else (*beside, *places),
        model=text_of(raw.get("model")),
        body=body,
        raw=raw,
        user=text_of(raw.get("user")),
        tool_names=tuple(_tool_names(raw.get("tools"))),
        stream=raw.get("stream") is True,
        max_reply_tokens=positive(raw.get("max_output_tokens")),
        held=bool(follows or conversation),
        follows=follows,
        compacts=isinstance(listed, list | PersistentList) and bool(listed) and is_trigger(listed[-1]),
        layout=known.layout if known else None,
    )


def render(chat: Chat, insertions: Sequence[Insertion]) -> bytes:
    """See `palimpsest.domain.ports.Wire`."""
    return add(chat, insertions, FORM)


def reply(payloads: Sequence[bytes], streamed: bool) -> Completion:
    """See `palimpsest.domain.ports.Wire`; what the model said is one message."""
    heard = _AnswerParts()
    try:
        for payload in payloads if streamed else [b"".join(payloads)]:
            heard.take(object_in(payload), streamed)
        message = answer_of(heard.output())
        ids = tuple(parts_by_id(message)) if message and heard.is_stored else ()
        return Completion(message, heard.prompt_tokens, heard.id, ids)
    except (RecursionError, WireError):  # somebody nests objects by the hundred, or answers with something else
        return Completion(None, heard.prompt_tokens, heard.id)


def _instructions(raw: Json) -> Iterator[Message]:
    """What a request says beside its items; only a text, or items as they stand in the input."""
    raw_instructions = raw.get("instructions")
    if isinstance(raw_instructions, str) and raw_instructions:
        yield read_message({"role": "system", "content": raw_instructions})
    elif isinstance(raw_instructions, list):
        for _, message in messages_of(raw_instructions):
            yield message


def _tool_names(tools: Any) -> Iterator[str]:
    """Names of functions, those in namespaces too; of the provider's own tools their type."""
    for tool in objects(tools):
        if (kind := text_of(tool.get("type"))) == "namespace":
            yield from _tool_names(tool.get("tools"))
        elif name := text_of(tool.get("name")) or kind:
            yield name


class _AnswerParts:
    """
    An answer, put together from a body or from events as they come.

    An item is there whole with its last event; of one that was cut off, what its pieces said.
    """

    def __init__(self) -> None:
        self.id = ""
        self.is_stored = True
        self.prompt_tokens: int | None = None
        self._whole: list[Any] = []
        self._items: dict[int, Json] = {}  # by their index in the output
        self._done: set[int] = set()
        self._pieces: dict[int, dict[tuple[str, int], list[str]]] = {}  # of items: by kind of text, and part

    def take(self, said: Json, is_event: bool) -> None:
        """Take a whole body, or the next event."""
        if not is_event:
            return self._take_response(said)
        if isinstance(response := said.get("response"), dict):
            self._take_response(response)
        index = said.get("output_index")
        if type(index) is not int:
            return None
        kind, item = text_of(said.get("type")), said.get("item")
        if isinstance(item, dict):
            self._items[index] = item
            if kind.endswith(".done"):
                self._done.add(index)
        elif kind.endswith(".delta") and isinstance(piece := said.get("delta"), str):
            part = said.get("content_index")
            name = (kind, part if type(part) is int else 0)
            self._pieces.setdefault(index, {}).setdefault(name, []).append(piece)
        return None

    def output(self) -> list[Any]:
        """The items, in their order."""
        return self._whole or [self._item(index) for index in sorted(self._items)]

    def _take_response(self, response: Json) -> None:
        """Take id, output and token count from a response object."""
        self.id = text_of(response.get("id")) or self.id
        self.is_stored = response.get("store") is not False
        if isinstance(output := response.get("output"), list):
            self._whole = output
        usage = response.get("usage")
        if isinstance(usage, dict) and (count := token_count(usage.get("input_tokens"))) is not None:
            self.prompt_tokens = count

    def _item(self, index: int) -> Json:
        """The output item of this index, with its streamed pieces joined where it has not come whole."""
        item, pieces = self._items[index], self._pieces.get(index)
        if index in self._done or not pieces:
            return item
        said = {name: "".join(texts) for name, texts in sorted(pieces.items())}
        if item.get("type") == "message":
            return item | {
                "content": [_PARTS[kind] | {_FIELDS[kind]: text} for (kind, _), text in said.items() if kind in _PARTS]
            }
        return item | {_FIELDS[kind]: text for (kind, _), text in said.items() if kind in _FIELDS}


_PARTS = {"response.output_text.delta": {"type": "output_text"}, "response.refusal.delta": {"type": "refusal"}}
_FIELDS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.mcp_call_arguments.delta": "arguments",
}


def messages_of(items: Any) -> tuple[Placed, ...]:
    """
    Read a list of items, or a text, which is a user's message. Raises `WireError`: it is neither, or holds no items.
    """
    if isinstance(items, str):
        return ((0, read_message({"role": "user", "content": items})),)
    if not isinstance(items, list):
        raise WireError("reading the request body: its input is neither a text nor a list of items")
    return tuple((at, read_message(raw)) for at, raw in _folded(items))


def answer_of(items: Iterable[Any]) -> Message | None:
    """What the output of an answer says, as one message, or None; raises as `messages_of`."""
    own = [item for item in items if isinstance(item, dict) and _role(item) == "assistant"]
    return read_message({"role": "assistant", "content": own}) if own else None


def is_trigger(item: Any) -> bool:
    """Whether an item asks for a compaction."""
    return isinstance(item, dict) and item.get("type") == TRIGGER


def _folded(items: Iterable[Any]) -> Iterator[tuple[int, Json]]:
    """Fold the items of an input into messages, with the index of the first item of each."""
    said: list[Json] = []
    start = 0
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise WireError(f"reading the request body: item {at} is not an object")
        if item.get("type") == _SETTING:
            continue
        role = _role(item)
        if said and (role != "assistant" or is_opaque(item)):
            yield start, {"role": "assistant", "content": said}
            said = []
        if is_trigger(item):
            continue
        if is_opaque(item):
            yield at, {"role": "assistant", "content": [item]}
        elif role == "assistant":
            start = start if said else at
            said.append(item)
        elif "role" in item:
            yield at, item
        else:
            yield at, {"role": role, "content": [item]}
    if said:
        yield start, {"role": "assistant", "content": said}


def _role(item: Json) -> str:
    """Whose item it is. Types that are not known are the model's: nobody else thinks of new ones."""
    if "role" in item:
        return text_of(item["role"])
    return "tool" if text_of(item.get("type")).endswith(_ANSWERING) else "assistant"
