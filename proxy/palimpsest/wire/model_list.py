"""The windows that a list of models names, in any of the forms that servers give it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from palimpsest.domain import Json
from palimpsest.wire.json_body import object_in, positive

# Best first: what is loaded before what the model could take. vLLM has max_model_len; LM Studio loaded_context_length
# and max_context_length; llama.cpp n_ctx and n_ctx_train under meta; Groq context_window; OpenRouter context_length,
# which is the largest of all its providers, and top_provider; Mistral max_context_length; Anthropic max_input_tokens.
_FIELDS = (
    *("loaded_context_length", "max_model_len", "meta.n_ctx", "n_ctx", "top_provider.context_length"),
    *("max_input_tokens", "context_window", "context_length", "max_context_length", "meta.n_ctx_train"),
)


def windows_in(body: bytes) -> Mapping[str, int]:
    """Model to window in tokens, of those entries of a list that name one."""
    found = {}
    for entry in _entries(object_in(body)):
        window = next((w for name in _FIELDS if (w := positive(_field(entry, name)))), None)
        if window is not None and isinstance(entry.get("id"), str):
            found[entry["id"]] = window
    return found


def _entries(told: Json) -> Iterable[Json]:
    data = told.get("data")
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else [told]


def _field(entry: Json, name: str) -> Any:
    """The value of a field, or of a field inside it ("outer.inner"); None: there is none."""
    outer, _, inner = name.partition(".")
    value = entry.get(outer)
    if not inner:
        return value
    return value.get(inner) if isinstance(value, dict) else None
