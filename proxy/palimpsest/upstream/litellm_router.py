"""
The set-up of a LiteLLM model: as the policy says, with LiteLLM's own settings and nothing else of its router.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from palimpsest.domain.errors import NotServed
from palimpsest.settings.policy import ENVIRON, UpstreamPolicy

OF_THE_ROUTER = ("num_retries", "retry_after", "retry_policy")  # its other settings are those of a model
_MODEL_NAME = re.compile(r"[\w.:@+-]+(/[\w.:@+-]+)*")  # no URL: some providers of LiteLLM's would go there


def router(litellm: Any, upstream: UpstreamPolicy, environment: Mapping[str, str]) -> Any:
    """
    A router of LiteLLM's for one model and its fallbacks.

    Args:
        litellm: the library.
        environment: holds the key and the variables that the settings name.
    """
    settings = _resolved(upstream.settings, environment)
    routing = {"num_retries": 0} | {name: settings.pop(name) for name in OF_THE_ROUTER if name in settings}
    fallbacks = [{"model": one} if isinstance(one, str) else one for one in settings.pop("fallbacks", ())]
    access = {"api_key": environment.get(upstream.key_env, ""), "api_base": upstream.url}
    main = {"model": upstream.litellm} | {name: value for name, value in access.items() if value} | settings
    models = {upstream.litellm: main} | {f"fallback {number}": one for number, one in enumerate(fallbacks)}
    return litellm.Router(
        model_list=[{"model_name": name, "litellm_params": {"max_retries": 0} | one} for name, one in models.items()],
        default_fallbacks=[name for name in models if name != upstream.litellm],
        disable_cooldowns=True,
        **routing,
    )


def _resolved(value: Any, environment: Mapping[str, str]) -> Any:
    """A copy of the settings with every environment variable replaced by its value."""
    if isinstance(value, dict):
        return {name: _resolved(inner, environment) for name, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, environment) for inner in value]
    if isinstance(value, str) and value.startswith(ENVIRON):
        return environment[value.removeprefix(ENVIRON)]
    return value


def filled(upstream: UpstreamPolicy, model: Any) -> str:
    """
    LiteLLM's name of the model that a client asks for.

    Raises:
        NotServed: the client does not name a model.
    """
    start, star, _ = upstream.litellm.partition("*")
    if not star:
        return upstream.litellm
    if not isinstance(model, str) or not _MODEL_NAME.fullmatch(model):
        raise NotServed(f"upstream {upstream.name!r} needs a model name, and {model!r} is not one")
    return start + model.removeprefix(start)


def start_timeout_seconds(upstream: UpstreamPolicy) -> float | None:
    """Timeout for the start of an answer, in seconds; None: LiteLLM's own settings decide."""
    if {"timeout", *OF_THE_ROUTER, "fallbacks"} & upstream.settings.keys():
        return None
    return upstream.silence_timeout_seconds
