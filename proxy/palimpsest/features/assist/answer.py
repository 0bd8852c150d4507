"""
The answer of a language model: read from a chat completion, and checked against the schema of its prompt.
"""

from __future__ import annotations

from typing import Any

import orjson

from palimpsest.domain import Json
from palimpsest.domain.frozen import frozen

CUT_OFF, FILTERED = "length", "content_filter"  # OpenAI's words for answers that ended before their end
MOST_TOKENS = 10_000_000  # that a provider is believed to have counted in one call
FAULT_CHARS = 200  # of what is said about an answer that is no good


class Unusable(Exception):
    """An answer that does not fit the request; the text says why, without quoting it."""


class Refused(Exception):
    """The model says that it will not answer."""


@frozen
class Said:
    """What a provider answered. Tokens are None where it does not count them."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    is_cut_off: bool
    is_refusal: bool


def read(body: bytes) -> Said:
    """Read a chat completion; anything else counts as an empty answer."""
    try:
        completion = orjson.loads(body)
        choice = completion["choices"][0]
        message = choice["message"]
        content, refusal, ending = message.get("content"), message.get("refusal"), choice.get("finish_reason")
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError):
        return Said("", None, None, False, False)
    usage = completion.get("usage")
    return Said(
        _text(content),
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        is_cut_off=ending == CUT_OFF,
        is_refusal=bool(refusal) or ending == FILTERED,
    )


def checked(said: Said, schema: Json) -> Json:
    """
    The JSON object of an answer, checked against its schema.

    Raises:
        Refused: the model will not.
        Unusable: it is not there, or not as the schema says.
    """
    if said.is_refusal:
        raise Refused
    start, stop = said.text.find("{"), said.text.rfind("}")  # some put words or a fence around it
    if start < 0 or stop < start:
        raise Unusable("it was cut off" if said.is_cut_off else "it holds no JSON object")
    try:
        found = orjson.loads(said.text[start : stop + 1])
    except orjson.JSONDecodeError as cause:
        raise Unusable("it was cut off" if said.is_cut_off else "it is not JSON") from cause
    if fault := _fault(found, schema):
        raise Unusable(fault)
    assert isinstance(found, dict)
    return found


def _fault(found: Any, schema: Json) -> str:
    """Where an object violates its schema, and which rule, without quoting it; "": nowhere."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # late: only who has a model needs it

    error = next(Draft202012Validator(schema).iter_errors(found), None)
    if error is None:
        return ""
    where = ".".join(str(part) if isinstance(part, int) else part[:40] for part in error.absolute_path) or "the object"
    return f"{where} violates {error.validator} of the schema"[:FAULT_CHARS]


def _text(content: Any) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 <= value <= MOST_TOKENS else None
