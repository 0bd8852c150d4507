"""Prices and providers of language models, from the litellm package's files: importing it takes seconds."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from palimpsest.domain.frozen import frozen
from palimpsest.settings.policy import AssistantPolicy

TABLE_FILE = "model_prices_and_context_window_backup.json"
MILLION = 1_000_000

_ENUM = re.compile(r"^class LlmProviders\(.*?\n(?=\S)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"^    [A-Z0-9_]+ = \"([^\"]+)\"", re.MULTILINE)


@frozen
class Price:
    """US dollars a token."""

    prompt: float
    answer: float

    def of(self, prompt_tokens: int, answer_tokens: int) -> float:
        """The price of so many tokens in US dollars."""
        return prompt_tokens * self.prompt + answer_tokens * self.answer


def price_of(policy: AssistantPolicy) -> Price | None:
    """The price that the policy sets, or else LiteLLM's; None: nobody knows it."""
    if policy.prompt_dollars is not None and policy.answer_dollars is not None:
        return Price(policy.prompt_dollars / MILLION, policy.answer_dollars / MILLION)
    table = _table()
    for name in (policy.model, policy.model.partition("/")[2], policy.model.rpartition("/")[2]):
        row = table.get(name) if name else None
        if not isinstance(row, dict):
            continue
        prompt, answer = row.get("input_cost_per_token"), row.get("output_cost_per_token")
        if isinstance(prompt, int | float) and isinstance(answer, int | float):
            return Price(prompt, answer)
    return None


def _table() -> dict[str, Any]:
    """LiteLLM's prices by model; empty if this version keeps them elsewhere."""
    spec = find_spec("litellm")
    folder = Path(next(iter(spec.submodule_search_locations or ()), "")) if spec else Path()
    try:
        rows = orjson.loads((folder / TABLE_FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return rows if isinstance(rows, dict) else {}


@lru_cache(maxsize=1)
def providers() -> frozenset[str]:
    """The prefixes of model names, before the `/`; empty if this version of LiteLLM keeps them elsewhere."""
    spec = find_spec("litellm")
    folder = Path(next(iter(spec.submodule_search_locations or ()), "")) if spec else Path()
    try:
        enum = _ENUM.search((folder / "types" / "utils.py").read_text(encoding="utf-8"))
    except OSError:
        return frozenset()
    return frozenset(_NAME.findall(enum[0])) if enum else frozenset()
