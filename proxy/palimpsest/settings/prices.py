"""Prices and providers of language models, from the litellm package's files: importing it takes seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from palimpsest.domain.frozen import frozen
from palimpsest.settings.policy import AssistantPolicy, Location, Policy

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


def mistakes(policy: Policy) -> Iterator[tuple[Location, str]]:
    """The models of a policy with an unknown provider, so that each request would fail; caps that are never reached."""
    named: list[tuple[Location, str]] = [
        (("upstreams", i, "litellm"), u.litellm) for i, u in enumerate(policy.upstreams)
    ]
    named += [(("models", role, "model"), one.model) for role, one in policy.models.items() if not one.upstream]
    for location, model in named:
        provider = model.partition("/")[0]
        if provider and (known := providers()) and provider not in known:
            near = get_close_matches(provider, known, 1)
            hint = f"did you mean {near[0]}?" if near else "docs.litellm.ai/docs/providers lists them"
            yield location, f"{model!r} is not allowed; LiteLLM has no provider {provider}; {hint}"
    for role, assistant in policy.models.items():
        if assistant.dollars_a_day is not None and price_of(assistant) is None:
            yield (
                ("models", role, "dollars_a_day"),
                f"the price of {assistant.model} is not known; set prompt_dollars and answer_dollars, or tokens_a_day "
                "alone",
            )


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
    try:
        rows = orjson.loads((_litellm_folder() / TABLE_FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return rows if isinstance(rows, dict) else {}


@lru_cache(maxsize=1)
def providers() -> frozenset[str]:
    """The prefixes of model names, before the `/`; empty if this version of LiteLLM keeps them elsewhere."""
    try:
        enum = _ENUM.search((_litellm_folder() / "types" / "utils.py").read_text(encoding="utf-8"))
    except OSError:
        return frozenset()
    return frozenset(_NAME.findall(enum[0])) if enum else frozenset()


def _litellm_folder() -> Path:
    spec = find_spec("litellm")
    return Path(next(iter(spec.submodule_search_locations or ()), "")) if spec else Path()
