"""
Whether an error says that a prompt is longer than the model takes, and the window that it names.

Providers agree on no code and no status for it. The words here are those of `tests/refusals.py`, where each has
its source. A wrong yes costs one more request that fails the same way; a wrong no fails a request that would have been
answered without memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from palimpsest.domain import TooLong
from palimpsest.wire.json_body import object_in

STATUSES = frozenset({400, 413, 422, 429, 500, 502, 503})  # gateways turn the provider's own into one of theirs
TOO_LARGE_STATUS = 413
TEXT_BYTES = 64 * 1024  # errors take a kilobyte; one that quotes the request says why before or behind it, near either
SMALLEST_WINDOW_TOKENS = 256  # what is less is no window: GPT-2's was 1,024

_REFUSES = re.compile(
    r"""
      context_length_exceeded | ContextWindowExceeded | exceed_context_size | prompt_tokens_exceeded
    | maximum\ (?:context|prompt|model|input)\ length
    | (?:prompt|input|request|message|conversation)s?\ (?:is|are)\ too\ (?:long|large)
    | prompt\ too\ long | too\ many\ (?:input\ )?tokens
    | exceeds?\ (?:the\ |this\ |a\ )?(?:model'?s?\ )?(?:available\ |maximum\ |max\ )?context
    | longer\ than\ the\ (?:model's|maximum)\ (?:context|model)\ length
    | greater\ than\ the\ context\ length | context\ the\ overflows | with\ context\ length\ of\ only
    | input\ token\ count.{0,40}\ exceeds | input\ tokens\ exceed | prompt\ token\ count.{0,40}\ exceeds
    | too\ large\ for\ model
    | `inputs`\ (?:tokens\ \+\ `max_new_tokens`\ )?must
    | max_tokens\ must\ be\ at\ least\ 1,\ got\ -
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = r"(\d[\d,_]{2,12})(?!,?[\d_]|\s*(?:bytes|char))"  # of tokens
# A limit of a web server or an API, and no model's window
_SIZE = re.compile(r"(?:limit|maximum|max)\D{0,20}\d[\d,_]*\s*(?:bytes|char)", re.IGNORECASE)


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern.replace("#", _NUMBER), re.IGNORECASE) for pattern in patterns)


_WINDOWS = _compiled(
    r"\bn_ctx\W{1,6}#",
    r"maximum (?:context|prompt|model|input) length (?:is|of) #",
    r"tokens > # maximum",
    r"> #, decrease input length",
    r"(?:model's|maximum) (?:context|model) length \(?(?:of )?#",
    r"context length of only #",
    r"tokens allowed \(#\)",
    r"model with # maximum context",
    r"context window of #",
    r"(?:configured )?limit of #",
    r"must have less than # tokens",
    r"must be <= #",
    r"context size \(# tokens",
    r"\bLimit #, Requested",
)
_PROMPTS = _compiled(  # without the answer; vLLM's "at least" is no count: it stops counting at the window
    r"\(((?:\d[\d,_]* (?:in the messages|in the functions|in your prompt|of \w+ input)(?:, (?:and )?)?)+)",  # the sum
    r"context limit: # \+ \d",
    r"(?:messages resulted in|(?:request|prompt) contains|too long:|given:|token count of) #",
    r"(?:n_prompt_tokens\W{1,6}|token count \(|(?:request|input|prompt) \((?:length )?)#",
)


def too_long(status: int, body: bytes) -> TooLong | None:
    """What an error answer (decoded, or its first `TEXT_BYTES`) says of the prompt's length, or None."""
    if status not in STATUSES:
        return None
    refusal = _parse_refusal(body)
    if refusal is None and status == TOO_LARGE_STATUS:  # of bytes: no model's window follows from it
        return TooLong(is_of_model=False)
    return refusal


def too_long_event(payload: bytes) -> TooLong | None:
    """What an event or a body under a status of success says of the prompt's length; None: nothing."""
    heard = object_in(payload)
    is_error = heard.get("error") or heard.get("type") in ("error", "response.failed")
    return _parse_refusal(payload) if is_error else None


def _parse_refusal(body: bytes) -> TooLong | None:
    """Parse a refusal for length, and the tokens that it states; None: it refuses for something else."""
    text = body[:TEXT_BYTES].decode("utf-8", "replace")
    if not _REFUSES.search(text):
        return None
    window = _number(_WINDOWS, text)
    if window < SMALLEST_WINDOW_TOKENS:
        return TooLong(None, not _SIZE.search(text), _number(_PROMPTS, text) or None)
    return TooLong(window, prompt_tokens=_number(_PROMPTS, text) or None)


def _number(patterns: Iterable[re.Pattern[str]], text: str) -> int:
    """The number, or the sum of the numbers, in the first of these patterns that a text has; 0: it has none."""
    found = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return sum(int(re.sub(r"\D", "", one)) for one in re.findall(r"\d[\d,_]*", found[1])) if found else 0
