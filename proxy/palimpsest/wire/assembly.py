"""The assembly of a chat answer: the message of its first choice, from a body or from stream chunks."""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.domain import Json
from palimpsest.wire.json_body import object_in, token_count

SAID_ONCE = frozenset({"role", "id", "type", "name"})  # some providers repeat them in every chunk


def assemble(payloads: Iterable[bytes]) -> tuple[Json | None, int | None]:
    """
    Put together what was heard; what is no JSON, or no chat answer, is left out.

    Args:
        payloads: chunks of a stream in order, or one whole body; both name their message in `choices`.

    Returns:
        The first choice's message as JSON (None: no choice was heard), and `usage.prompt_tokens`.
    """
    message: Json | None = None
    prompt_tokens: int | None = None
    for payload in payloads:
        heard = object_in(payload)
        usage = heard.get("usage")
        if isinstance(usage, dict) and (count := token_count(usage.get("prompt_tokens"))) is not None:
            prompt_tokens = count
        choices = heard.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                said = choice.get("delta", choice.get("message"))
                message = message or {}
                if isinstance(said, dict):
                    grow(message, said)
    return (None if message is None else settled(message)), prompt_tokens


class _Fragments(list[str]):
    """A text that is still growing: joined once, at the end."""


def grow(message: Json, delta: Json) -> None:
    """Merge a delta into a message: texts and objects grow, calls by `index`, anything else is replaced."""
    for key, value in delta.items():
        before = message.get(key)
        if key == "tool_calls" and isinstance(value, list):
            calls = message[key] = before if isinstance(before, _Calls) else _Calls()
            for fragment in value:
                if isinstance(fragment, dict):
                    index = fragment.get("index")
                    grow(calls.setdefault(index if type(index) is int else len(calls), {}), fragment)
        elif key in SAID_ONCE:
            message[key] = before or value
        elif isinstance(value, str):
            if not isinstance(before, _Fragments):
                before = message[key] = _Fragments()
            before.append(value)
        elif isinstance(value, dict):
            if not isinstance(before, dict) or isinstance(before, _Calls):
                before = message[key] = {}
            grow(before, value)
        elif value is not None or key not in message:
            message[key] = value


class _Calls(dict[int, Json]):
    """Tool calls by their index."""


def settled(message: Json) -> Json:
    """A grown message as plain JSON."""
    whole: Json = {}
    for key, value in message.items():
        if isinstance(value, _Calls):
            calls = (settled(value[index]) for index in sorted(value))
            whole[key] = [{k: v for k, v in call.items() if k != "index"} for call in calls]
        elif isinstance(value, _Fragments):
            whole[key] = "".join(value)
        elif isinstance(value, dict):
            whole[key] = settled(value)
        else:
            whole[key] = value
    return whole
