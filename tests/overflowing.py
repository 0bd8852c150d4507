"""
Conversations that outgrow a window, on each wire: what a user says, and what a model does about it, step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from hypothesis import strategies as st
from palimpsest.domain import Json
from palimpsest.domain.ports import Wire
from palimpsest.wire import chat, messages, responses

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
WIRES: dict[str, Wire] = {CHAT: chat, MESSAGES: messages, RESPONSES: responses}
SYSTEM = "You look after the harbour."


@dataclass(frozen=True)
class Call:
    """One call: its id, the characters of its argument and of its result."""

    id: str
    argument_chars: int = 10
    result_chars: int = 10


@dataclass(frozen=True)
class Exchange:
    """What a user says, the calls of each step of the model, and its last answer."""

    said: str
    steps: tuple[tuple[Call, ...], ...] = ()
    answer: str = "Noted."
    thinks: bool = False


def body_of(path: str, exchanges: Sequence[Exchange], *, is_answered: bool = False) -> Json:
    """A request; without the answer to the newest exchange where that is still to come."""
    native = {CHAT: _chat, MESSAGES: _messages, RESPONSES: _items}[path]
    listed = [message for exchange in exchanges for message in native(exchange)]
    if not is_answered:
        listed.pop()
    if path == RESPONSES:
        return {"model": "m", "instructions": SYSTEM, "input": listed}
    if path == MESSAGES:
        return {"model": "m", "max_tokens": 100, "system": SYSTEM, "messages": listed}
    return {"model": "m", "messages": [{"role": "system", "content": SYSTEM}, *listed]}


def _arguments(call: Call) -> Json:
    return {"path": "x" * call.argument_chars}


def _result(call: Call) -> str:
    return "y" * call.result_chars


def _chat(exchange: Exchange) -> list[Json]:
    found: list[Json] = [{"role": "user", "content": exchange.said}]
    for step in exchange.steps:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": "read", "arguments": orjson.dumps(_arguments(call)).decode()},
            }
            for call in step
        ]
        found.append({"role": "assistant", "content": None, "tool_calls": calls})
        found += ({"role": "tool", "tool_call_id": call.id, "content": _result(call)} for call in step)
    return [*found, {"role": "assistant", "content": exchange.answer}]


def _messages(exchange: Exchange) -> list[Json]:
    found: list[Json] = [{"role": "user", "content": exchange.said}]
    thinking = [{"type": "thinking", "thinking": "hm", "signature": "s"}] if exchange.thinks else []
    for step in exchange.steps:
        calls = [{"type": "tool_use", "id": call.id, "name": "read", "input": _arguments(call)} for call in step]
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": _result(call)} for call in step]
        aside = [{"type": "text", "text": "<reminder>Be brief.</reminder>"}] if exchange.thinks else []
        found += (
            {"role": "assistant", "content": [*thinking, *calls]},
            {"role": "user", "content": [*results, *aside]},
        )
    return [*found, {"role": "assistant", "content": exchange.answer}]


def _items(exchange: Exchange) -> list[Json]:
    found: list[Json] = [{"type": "message", "role": "user", "content": exchange.said}]
    for step in exchange.steps:
        if exchange.thinks:
            found.append({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"})
        found += (
            {
                "type": "function_call",
                "call_id": call.id,
                "name": "read",
                "arguments": orjson.dumps(_arguments(call)).decode(),
            }
            for call in step
        )
        found += ({"type": "function_call_output", "call_id": call.id, "output": _result(call)} for call in step)
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": exchange.answer}]}
    return [*found, answer]


WISH = "From now on, always answer in German and never use tables."
SAYINGS = st.one_of(st.just(WISH), st.integers(3, 900).map(lambda chars: "ab " * (chars // 3)))
SIZES = st.sampled_from([5, 150, 800, 3000])


@st.composite
def talks(draw: st.DrawFn) -> tuple[Exchange, ...]:
    """Conversations of one to twelve exchanges, each with up to six steps; ids may be used again later on."""
    found, number = [], 0
    reuses = draw(st.booleans())
    for _ in range(draw(st.integers(1, 12))):
        steps = []
        for _ in range(draw(st.integers(0, 6))):
            step = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                name = f"call_{len(step)}" if reuses else f"call_{number}"
                step.append(Call(name, draw(SIZES), draw(SIZES)))
            steps.append(tuple(step))
        answer = "cd " * draw(st.integers(1, 200))
        found.append(Exchange(draw(SAYINGS), tuple(steps), answer, draw(st.booleans())))
    return tuple(found)
