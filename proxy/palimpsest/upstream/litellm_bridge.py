"""
The bridge between a client's API and LiteLLM: the fields that are handed over, and the events that come back.

A request becomes keyword arguments of LiteLLM, and many of its keywords say where a request goes, with which key, and
what is read from this machine. So only what is named here is handed over; other fields of a request are left out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson

from palimpsest.domain import Json, frozen

CHAT_FIELDS = frozenset(
    {
        *("messages", "stream", "stream_options", "temperature", "top_p", "top_k", "min_p", "n", "stop"),
        *("seed", "user"),
        *("max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "repetition_penalty"),
        *("logit_bias", "logprobs", "top_logprobs", "response_format", "modalities", "audio", "prediction"),
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "web_search_options"),
        *("reasoning_effort", "thinking", "verbosity", "service_tier", "store", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_retention"),
    }
)
RESPONSES_FIELDS = frozenset(
    {
        *("input", "instructions", "stream", "temperature", "top_p", "max_output_tokens", "text", "truncation", "user"),
        *("tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "include", "reasoning", "store", "prompt"),
        *("previous_response_id", "service_tier", "safety_identifier", "prompt_cache_key", "top_logprobs"),
    }
)
MESSAGES_FIELDS = frozenset(
    {
        *("messages", "system", "stream", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "metadata"),
        *("tools", "tool_choice", "thinking", "output_config", "output_format"),
    }
)
HINTS = frozenset(
    {  # what changes no answer is left out for providers that do not know it; without the others LiteLLM says no
        *("user", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
        *("parallel_tool_calls", "verbosity"),
    }
)

BEFORE_THE_PROVIDER = ("response.created", "response.in_progress")

Frames = AsyncGenerator[bytes, None]


@frozen
class Bridge:
    """
    One wire: `fields` go in, with what was `said` among them; `ask` calls a router of LiteLLM's with them and returns a
    whole body or events.

    `broken` is the event, if the wire has one, that says that a stream is not whole.
    """

    said: str
    fields: frozenset[str]
    ask: Callable[[Any, Json], Awaitable[bytes | Frames]]
    broken: Callable[[str], bytes] = lambda text: b""


async def ask_chat(router: Any, asked: Json) -> bytes | Frames:
    """Ask by Chat Completions, LiteLLM's own format."""
    result = await router.acompletion(**asked)
    return chat_events(result) if asked.get("stream") else orjson.dumps(result.model_dump(warnings=False))


async def chat_events(stream: Any) -> Frames:
    """Yield an event for each chunk, all with the first one's id, then the final one."""
    async with closed(stream):
        name: Json = {}
        async for chunk in stream:
            said = chunk.model_dump(exclude_none=True, exclude_unset=True, warnings=False)
            name = name or {"id": said.get("id")}  # for some providers LiteLLM invents another one each time
            yield b"data: " + orjson.dumps(said | name) + b"\n\n"
        yield b"data: [DONE]\n\n"


async def ask_responses(router: Any, asked: Json) -> bytes | Frames:
    """Ask by Responses. LiteLLM stores nothing: ids lead to no history, and no answer can be fetched later."""
    timeout = {"timeout": asked["timeout"].read} if "timeout" in asked else {}  # here LiteLLM takes seconds alone
    result = await router.aresponses(**asked | timeout)
    return (
        responses_events(result)
        if asked.get("stream")
        else orjson.dumps(result.model_dump(mode="json", warnings=False))
    )


async def responses_events(stream: Any) -> Frames:
    """Yield named and numbered events; those that precede the provider's first output wait for it."""
    async with closed(stream):
        number, waiting = 0, b""
        async for event in stream:
            said = event.model_dump(mode="json", exclude_none=True, warnings=False) | {"sequence_number": number}
            number += 1
            waiting += b"event: %s\ndata: %s\n\n" % (str(said["type"]).encode(), orjson.dumps(said))
            if said["type"] not in BEFORE_THE_PROVIDER:
                yield waiting
                waiting = b""


def responses_broken(text: str) -> bytes:
    """The event that says that a stream is not whole."""
    said = {"type": "error", "code": "upstream_unreachable", "message": text, "param": None}
    return b"event: error\ndata: %s\n\n" % orjson.dumps(said)


async def ask_messages(adapter: Any, supported: Callable[[Json], Json], router: Any, asked: Json) -> bytes | Frames:
    """Ask by Messages, translated to Chat Completions and back: LiteLLM's own way to stream needs its whole proxy."""
    access = {name: asked[name] for name in ("model", "api_key", "timeout") if name in asked}
    given = {name: value for name, value in asked.items() if name not in ("api_key", "timeout")}
    translated, names = adapter.translate_completion_input_params_with_tool_mapping(given)
    chat = supported({name: value for name, value in translated.items() if name in CHAT_FIELDS} | access)
    if not asked.get("stream"):
        return orjson.dumps(adapter.translate_completion_output_params(await router.acompletion(**chat), names))
    stream = await router.acompletion(**chat, stream_options={"include_usage": True})  # here it is always told
    return messages_events(adapter, stream, asked["model"].partition("/")[2], names)


async def messages_events(adapter: Any, stream: Any, model: str, names: Any) -> Frames:
    """Yield the translation's events; raise ConnectionError where one of them reports a broken stream."""
    async with closed(stream):
        whole = await after_first_chunk(stream)
        events = adapter.translate_completion_output_params_streaming(whole, model, names)
        async with closed(events):
            async for event in events:
                yield event
                if event.startswith(b"event: error"):
                    raise ConnectionError


async def after_first_chunk(stream: Any) -> Any:
    """
    Wait for a stream's first chunk, before which LiteLLM may not have asked. Raises `ConnectionError`: it had none.
    """
    try:
        first = await anext(aiter(stream))
    except StopAsyncIteration:  # out of an async generator it would be a RuntimeError
        raise ConnectionError("the stream ended before its first chunk") from None

    async def again() -> AsyncIterator[Any]:
        yield first
        async for chunk in stream:
            yield chunk

    return again()


@asynccontextmanager
async def closed(stream: Any) -> AsyncIterator[None]:
    """Close a stream of LiteLLM's, if it can be closed."""
    try:
        yield
    finally:
        if (aclose := getattr(stream, "aclose", None)) is not None:
            await aclose()
