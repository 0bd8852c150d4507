"""
The rules by which providers refuse a request for the order of its messages, on each wire.

Strict ones: what any provider or any chat template of a local model refuses is a violation, whichever is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import orjson

from palimpsest.domain import Json

INSTRUCTIONS = ("system", "developer")


def violations(endpoint: str, body: Json) -> list[str]:
    """What is wrong with a request to this path of the API, in words; empty: nothing."""
    if endpoint.endswith("/messages"):
        return [*_of_messages(body.get("messages") or [])]
    if endpoint.endswith("/responses"):
        items = body.get("input")
        return [*_of_items(items if isinstance(items, list) else [])]
    return [*_of_chat(body.get("messages") or [])]


def _of_chat(messages: Sequence[Json]) -> Iterator[str]:
    waiting: list[str] = []
    before = ""
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"message {at}: a result of no call in front of it"
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            yield f"message {at}: {len(waiting)} calls in front of it have no result"
            waiting = []
        for call in message.get("tool_calls") or ():
            waiting.append(call["id"])
            if not _is_object(call["function"]["arguments"]):
                yield f"message {at}: the arguments of a call are no JSON object"
        if role in INSTRUCTIONS:
            continue
        if (before, role) in (("user", "user"), ("assistant", "assistant"), ("tool", "user"), ("", "assistant")):
            yield f"message {at}: {role} behind {before or 'nothing'}"
        before = role


def _of_messages(messages: Sequence[Json]) -> Iterator[str]:
    for at, (before, message) in enumerate(pairwise([{"role": "assistant", "content": ""}, *messages])):
        if message["role"] == before["role"]:
            yield f"message {at}: {message['role']} behind {message['role']}"
        called = {part["id"] for part in _parts(before) if part["type"] == "tool_use"}
        answered = [part["tool_use_id"] for part in _parts(message) if part["type"] == "tool_result"]
        if called != set(answered) or len(called) != len(answered):
            yield f"message {at}: its results are not those of the calls in front of it"
        if not message["content"]:
            yield f"message {at}: it is empty"
    if messages and (waiting := [part for part in _parts(messages[-1]) if part["type"] == "tool_use"]):
        yield f"the last message: {len(waiting)} calls have no result"


def _of_items(items: Sequence[Json]) -> Iterator[str]:
    called = [item["call_id"] for item in items if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    if sorted(called) != sorted(answered):
        yield "calls and results are not the same"
    for at, (item, following) in enumerate(pairwise([*items, {}])):
        if item.get("type") == "reasoning" and following.get("type") not in ("function_call", "message", "reasoning"):
            yield f"item {at}: reasoning without what it led to"
        if item.get("type") == "function_call" and not _is_object(item["arguments"]):
            yield f"item {at}: the arguments of a call are no JSON object"
        if item.get("role") == following.get("role") == "user":
            yield f"item {at + 1}: user behind user"


def _parts(message: Json) -> list[Json]:
    content = message["content"]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
