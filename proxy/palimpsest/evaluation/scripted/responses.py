"""A scripted reply as a response of OpenAI's Responses API, whole or streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from palimpsest.domain import Json
from palimpsest.evaluation.scripted.chat import refused
from palimpsest.evaluation.scripted.reply import Received, Reply, opaque, pieces

__all__ = ["compaction", "events", "refused", "usage", "whole"]

ECHOED: Json = {  # what a response repeats of its request, and what it says where the request says nothing
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


def whole(got: Received, reply: Reply, number: int) -> Json:
    """The reply as one response: thoughts, text and calls as items, or the item of a compaction."""
    asked = got.json
    conversation = asked.get("conversation")
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": got.model,
        "output": _output(asked, reply, number),
        "conversation": {"id": conversation} if isinstance(conversation, str) else conversation,
        "usage": usage(
            got.tokens if reply.prompt_tokens is None else reply.prompt_tokens,
            reply.completion_tokens,
            reply.cache_read_tokens or 0,
        ),
    } | {name: missing if asked.get(name) is None else asked[name] for name, missing in ECHOED.items()}


def usage(prompt_tokens: int, output_tokens: int, cached_tokens: int = 0) -> Json:
    """The token usage."""
    return {
        "input_tokens": prompt_tokens,
        "input_tokens_details": {"cached_tokens": cached_tokens},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt_tokens + output_tokens,
    }


def compaction(window: Sequence[Json], number: int) -> Json:
    """The item in place of these messages, which only the provider can read."""
    return {"id": f"cmp_{number}", "type": "compaction", "encrypted_content": opaque(number, window)}


def events(response: Json, got: Received) -> Iterator[bytes]:
    """The response as a stream of events."""
    opening = response | {"status": "in_progress", "output": [], "usage": None}
    said: list[tuple[str, Json]] = [
        ("response.created", {"response": opening}),
        ("response.in_progress", {"response": opening}),
    ]
    for index, item in enumerate(response["output"]):
        said += [(kind, {"output_index": index} | more) for kind, more in _item(item)]
    said.append(("response.completed", {"response": response}))
    for number, (kind, more) in enumerate(said):
        data = orjson.dumps({"type": kind, "sequence_number": number} | more)
        yield b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _item(item: Json) -> Iterator[tuple[str, Json]]:
    kind = item["type"]
    opening: Json = {"message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""}}
    begun = {"status": "in_progress"} if "status" in item else {}
    yield "response.output_item.added", {"item": item | opening.get(kind, {}) | begun}
    where = {"item_id": item["id"]}
    if kind == "message":
        yield from _part_events(
            "response.content_part",
            "response.output_text",
            item["content"][0],
            where | {"content_index": 0},
            {"logprobs": []},
        )
    elif kind == "reasoning":
        part = "response.reasoning_summary"
        yield from _part_events(f"{part}_part", f"{part}_text", item["summary"][0], where | {"summary_index": 0}, {})
    elif kind == "function_call":
        for piece in pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", where | {"delta": piece}
        said = {"name": item["name"], "arguments": item["arguments"]}
        yield "response.function_call_arguments.done", where | said
    yield "response.output_item.done", {"item": item}


def _part_events(part_kind: str, text_kind: str, part: Json, where: Json, beside: Json) -> Iterator[tuple[str, Json]]:
    yield f"{part_kind}.added", where | {"part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield f"{text_kind}.delta", where | {"delta": piece} | beside
    yield f"{text_kind}.done", where | {"text": part["text"]} | beside
    yield f"{part_kind}.done", where | {"part": part}


def _output(asked: Json, reply: Reply, number: int) -> list[Json]:
    given = asked.get("input")
    if isinstance(given, list) and given and given[-1].get("type") == "compaction_trigger":
        return [compaction(given[:-1], number)]
    output: list[Json] = []
    if reply.reasoning:
        thought: Json = {"id": f"rs_{number}", "type": "reasoning"}
        thought["summary"] = [{"type": "summary_text", "text": reply.reasoning}]
        if "reasoning.encrypted_content" in (asked.get("include") or ()):
            thought["encrypted_content"] = opaque(number, reply.reasoning)
        output.append(thought)
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        output.append(
            {"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
        )
    output += [
        {
            "id": f"fc_{number}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        | _namespace(asked, call.name)
        for index, call in enumerate(reply.calls)
    ]
    return output


def _namespace(asked: Json, name: str) -> Json:
    """The namespace of a tool that was offered in one; its calls name it."""
    spaces = [tool for tool in asked.get("tools") or () if tool.get("type") == "namespace"]
    holds = (space["name"] for space in spaces if name in (tool.get("name") for tool in space["tools"]))
    return {"namespace": found} if (found := next(holds, "")) else {}
