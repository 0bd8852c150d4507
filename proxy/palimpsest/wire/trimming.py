"""
A request's body without some of its messages, with old results of tools as a few words, old calls without arguments,
and results that are longer than the window without their middle.

Whatever stays is as the client wrote it, byte for byte, but for these results and calls. No word is written into a
call: models imitate what stands there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from palimpsest.domain import TOOL_ROLES, Chat, Json, Message, Trim
from palimpsest.domain.errors import WireError
from palimpsest.domain.ports import Wire
from palimpsest.wire.json_scan import skip_space, walk
from palimpsest.wire.layout import layout_of
from palimpsest.wire.message import THOUGHTS, objects, text_of

STUB = "[old tool result left out]"  # 26 characters: an agent reads the file again, whatever a longer text tells it
GAP = "\n[{:,} characters of this tool result left out: it is longer than the context window]\n"
NO_ARGUMENTS = "{}"
LEAST_CHARS = 120  # of a result or of arguments: less is not worth a change

_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_REASONING = frozenset({"reasoning", *THOUGHTS})
_REASONING_FIELDS = ("thinking_blocks", "reasoning_details")  # of chat messages; providers check them against the calls
_STAYING = frozenset({"configuration_update", "compaction_trigger"})  # items of the Responses wire that are no message
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def trimmed(trim: Trim, wire: Wire) -> Chat:
    """The request that goes upstream. Raises `WireError`: its layout is in doubt, or what is left reads differently."""
    chat, omission = trim.chat, trim.omission
    layout = chat.layout or layout_of(chat.body, chat.raw, wire.LISTED)
    if layout is None:
        raise WireError("leaving out old messages: the layout of the request body is not clear")
    run = memoryview(layout.body)[layout.first : layout.last]
    spans = _spans(chat, len(layout.starts))
    dropped = {
        element
        for at in omission.drops
        for element in spans[at]
        if text_of(layout.elements[element].get("type")) not in _STAYING
    }
    edited: dict[int, dict[str, int]] = {}  # element: ids of the calls whose results are shortened, to how much
    for at, chars in (*((at, 0) for at in omission.stubs), *omission.clips.items()):
        for element in spans[at]:
            edited.setdefault(element, {})[chat.messages[at].answers_call] = chars
    try:
        kept = [
            orjson.dumps(_shortened(layout.elements[at], edited[at])) if at in edited else run[first:stop]
            for at, (first, stop) in enumerate(zip(layout.starts, layout.stops, strict=True))
            if at not in dropped
        ]
    except (ValueError, IndexError, RecursionError, orjson.JSONEncodeError) as cause:
        raise WireError(f"leaving out old messages: {cause}") from cause
    left = wire.parse(b"".join([layout.body[: layout.first], b",".join(kept), layout.body[layout.last :]]))
    roles = [message.role for at, message in enumerate(chat.messages) if at not in omission.drops]
    if [message.role for message in left.messages] != roles:
        raise WireError("leaving out old messages: what is left reads differently")
    return left


def limited(body: bytes, reply_tokens: int) -> bytes:
    """
    A body that asks for no longer answer than this, where it names a limit. Raises `WireError`: it cannot be read.
    """
    try:
        text = body.decode()
        for name, (first, stop) in reversed([*walk(text, skip_space(text, 0))]):
            if name in _LIMITS and text[first:stop].isdigit() and int(text[first:stop]) > reply_tokens:
                text = f"{text[:first]}{reply_tokens}{text[stop:]}"
    except (ValueError, IndexError, RecursionError) as cause:
        raise WireError(f"limiting the answer: {cause}") from cause
    return text.encode()


def stub_chars(message: Message) -> int:
    """Characters that a stub takes away from a message; 0: it is none that may become one, or too short for it."""
    if message.role in TOOL_ROLES:
        chars = len(message.text) - len(STUB)
        return chars if chars >= LEAST_CHARS and _has_result(message.raw) else 0
    if message.role != "assistant" or not message.calls or thinks(message.raw):
        return 0
    return sum(len(call.arguments) - len(NO_ARGUMENTS) for call in message.calls if _is_emptied(call.arguments))


def clip_chars(message: Message) -> int:
    """Characters of a result that may be shortened; 0: it is none, or holds more than text."""
    is_text = message.role in TOOL_ROLES and not message.media and _has_result(message.raw)
    return len(message.text) if is_text else 0


def _is_emptied(arguments: str) -> bool:
    """Whether they are an object, and long. What is no object is no JSON either: nothing may stand for that."""
    return len(arguments) >= LEAST_CHARS and arguments.lstrip().startswith("{")


def _has_result(raw: Json) -> bool:
    content = raw.get("content")
    parts = [*objects(content)]
    typed = [part for part in parts if part.get("type") == "tool_result" or part.get("type") in _RESULTS]
    return bool(typed) or isinstance(content, str) or all(part.get("type") == "text" for part in parts)


def thinks(raw: Json) -> bool:
    """Whether a message holds thoughts of the model, which providers check against what stands beside them."""
    parts = {text_of(part.get("type")) for part in objects(raw.get("content"))}
    calls = objects(raw.get("tool_calls"))
    return bool(parts & _REASONING) or any(map(raw.get, _REASONING_FIELDS)) or any("extra_content" in c for c in calls)


def _spans(chat: Chat, elements: int) -> Mapping[int, Sequence[int]] | Sequence[Sequence[int]]:
    """The elements of the body's list that each message stands in."""
    if not chat.places:
        return [(at,) for at in range(len(chat.messages))]
    starts = sorted({place for place in chat.places if place >= 0})
    stops = [*starts[1:], elements]
    return [range(place, stops[bisect_right(starts, place) - 1]) if place >= 0 else () for place in chat.places]


def _shortened(element: Json, answered: Mapping[str, int]) -> Json:
    """An element with stubs in it. `answered`: characters that stay of results, by ids of their calls; 0: a stub."""
    role, kind, content = element.get("role"), text_of(element.get("type")), element.get("content")
    if role in TOOL_ROLES:
        return {**element, "content": _result(content, *answered.values())}
    if kind in _RESULTS:
        output = element.get("output")
        return {**element, "output": _result(output, *answered.values())} if isinstance(output, str | list) else element
    if kind == "function_call":
        return _emptied(element, "arguments")
    if role == "user" and isinstance(content, list):
        return {**element, "content": [_shortened_part(part, answered) for part in content]}
    if role == "assistant":
        changed: Json = {}
        if isinstance(calls := element.get("tool_calls"), list):
            changed["tool_calls"] = [_without_arguments(call) for call in calls]
        if isinstance(legacy := element.get("function_call"), dict):
            changed["function_call"] = _emptied(legacy, "arguments")
        if isinstance(content, list):
            changed["content"] = [_without_input(part) for part in content]
        return element | changed
    return element


def _shortened_part(part: Any, answered: Mapping[str, int]) -> Any:
    is_short = isinstance(part, dict) and part.get("type") == "tool_result" and part.get("tool_use_id") in answered
    return {**part, "content": _result(part.get("content"), answered[part["tool_use_id"]])} if is_short else part


def _result(content: Any, chars: int) -> str:
    """A tool's result with so many characters of its own, from both ends."""
    text = content if isinstance(content, str) else "\n".join(text_of(part.get("text")) for part in objects(content))
    left, tail = len(text) - chars, len(text) - chars // 2
    return f"{text[: tail - left]}{GAP.format(left)}{text[tail:]}" if chars else STUB


def _without_arguments(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    return {**call, "function": _emptied(function, "arguments")} if isinstance(function, dict) else call


def _emptied(call: Json, name: str) -> Json:
    return {**call, name: NO_ARGUMENTS} if _is_emptied(text_of(call.get(name))) else call


def _without_input(part: Any) -> Any:
    is_call = isinstance(part, dict) and part.get("type") == "tool_use" and isinstance(part.get("input"), dict)
    return {**part, "input": {}} if is_call and _is_emptied(orjson.dumps(part["input"]).decode()) else part
