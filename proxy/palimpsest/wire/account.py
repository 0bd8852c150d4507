"""
The account of an answer: its id, its model, why it ended, and the tokens that the provider counted.

Read from what was heard of it, whatever the API: the three that are known name the same things differently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from palimpsest.domain import Json, frozen
from palimpsest.wire.json_body import object_in, token_count

# Of a stream only the first event and those that tell something are parsed: a hundredth of it.
_TELLS = re.compile(rb'"usage"\s*:\s*\{|"(?:finish|stop)_reason"\s*:\s*"|"type"\s*:\s*"response\.(?:comp|inc|fail)')
_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens")  # Anthropic counts them beside `input_tokens`


@frozen
class Account:
    """What a provider tells of an answer beside its text; None where it does not count, "" where it does not say."""

    id: str = ""
    model: str = ""
    finish_reasons: tuple[str, ...] = ()
    input_tokens: int | None = None  # all of the prompt, cached ones included
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


def account_of(payloads: Sequence[bytes], streamed: bool) -> Account:
    """Read the account of one answer, from the payloads of `Wire.reply`; never raises."""
    telling = [p for at, p in enumerate(payloads) if not at or _TELLS.search(p)] if streamed else [b"".join(payloads)]
    named: dict[str, str] = {}
    reasons: dict[str, None] = {}
    usage: Json = {}
    for payload in telling:
        said = object_in(payload)
        for part in (said, said.get("message"), said.get("response"), said.get("delta")):
            if not isinstance(part, dict):
                continue
            named |= {name: text for name in ("id", "model") if isinstance(text := part.get(name), str) and text}
            reasons |= dict.fromkeys(_reasons(part))
            if isinstance(counts := part.get("usage"), dict):
                usage |= {name: value for name, value in counts.items() if value is not None}
    return Account(named.get("id", ""), named.get("model", ""), tuple(reasons), **_tokens(usage))


def _reasons(part: Json) -> list[str]:
    """The reasons why an answer ended, of whichever wire."""
    choices = part.get("choices")
    said = [c.get("finish_reason") for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
    said.append(part.get("stop_reason"))
    if part.get("object") == "response":
        said.append(part.get("status"))
    return [reason for reason in said if isinstance(reason, str) and reason not in ("", "in_progress", "queued")]


def _tokens(usage: Json) -> Mapping[str, int | None]:
    """Token counts of an answer under one name each, of whichever wire; None: not told."""
    sent = _count(usage, "prompt_tokens", "input_tokens")
    cached = _count(usage, "cache_read_input_tokens")
    if sent is not None and "prompt_tokens" not in usage:
        sent += sum(_count(usage, name) or 0 for name in _CACHE)
    details = _first_object(usage, "prompt_tokens_details", "input_tokens_details")
    made = _first_object(usage, "completion_tokens_details", "output_tokens_details")
    return {
        "input_tokens": sent,
        "output_tokens": _count(usage, "completion_tokens", "output_tokens"),
        "cache_read_tokens": _count(details, "cached_tokens") if cached is None else cached,
        "cache_write_tokens": _count(usage, "cache_creation_input_tokens"),
        "reasoning_tokens": _count(made, "reasoning_tokens"),
    }


def _first_object(usage: Json, *names: str) -> Json:
    found: Any = next((usage[name] for name in names if isinstance(usage.get(name), dict)), {})
    whole: Json = found
    return whole


def _count(usage: Json, *names: str) -> int | None:
    return next((count for name in names if (count := token_count(usage.get(name))) is not None), None)
