"""
Routing: the first upstream whose API and model patterns match a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from palimpsest.settings.policy import UpstreamPolicy


def choose(upstreams: Sequence[UpstreamPolicy], model: str, *, is_anthropic: bool = False) -> UpstreamPolicy | None:
    """
    Choose the upstream for requests of a model.

    Args:
        is_anthropic: whether the client speaks to Anthropic's API (`wire.refusal.speaks_anthropic`).

    Returns:
        Of those that serve the client's API, the first upstream with a pattern that matches; the first that is no
        LiteLLM model where no model is named (`""`: a list, an upload); None where nobody serves it.
    """
    those = serving(upstreams, is_anthropic)
    if not model:
        return next((u for u in those if not u.litellm), those[0] if those else None)
    return next((u for u in those if any(fnmatchcase(model, pattern) for pattern in u.models)), None)


def serving(upstreams: Sequence[UpstreamPolicy], is_anthropic: bool) -> list[UpstreamPolicy]:
    """The upstreams for the client's API, in order."""
    wires = ("any", "anthropic" if is_anthropic else "openai")
    return [upstream for upstream in upstreams if upstream.wire in wires]


def needs_model(upstreams: Sequence[UpstreamPolicy]) -> bool:
    """Whether the model of a request decides where it goes; otherwise it need not be read."""
    each = (serving(upstreams, is_anthropic) for is_anthropic in (False, True))
    return any(len(those) > 1 or any(u.models != ("*",) for u in those) for those in each)
