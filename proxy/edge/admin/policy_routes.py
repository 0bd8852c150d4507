"""
The policy in force over HTTP: every setting as this process follows it, without secrets.

The policy itself holds none: keys are named by environment variables. What is passed on to LiteLLM may, under names
that nobody here knows, so of its texts only references to the environment are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from proxy.edge.admin.operation import Call, Nothing, Operation
from proxy.settings.policy import ENVIRON, Policy

WITHHELD = "[withheld]"


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The settings that requests follow now."""

    generation: Annotated[int, Field(description="How many policies were in force before it, and itself; from 1.")]
    policy: Annotated[dict[str, Any], Field(description="All settings by section, as in a configuration file.")]


class PolicyRoutes:
    """The operation that shows the policy."""

    def __init__(self, in_force: Callable[[], tuple[Policy, int]]) -> None:
        """
        Args:
            in_force: the policy, and its generation.
        """
        self._in_force = in_force

    def operations(self) -> tuple[Operation[Any], ...]:
        return (
            Operation(
                *("GET", "/policy", "Show the policy in force", self.show, Nothing, PolicyInForce),
                for_operator=True,
                in_turn=False,
            ),
        )

    async def show(self, _call: Call[Nothing]) -> PolicyInForce:
        policy, generation = self._in_force()
        told = policy.model_dump(mode="json")
        for upstream in told["upstreams"]:
            upstream["settings"] = _without_words(upstream["settings"])
        return PolicyInForce(generation, told)


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_words(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_words(inner) for inner in value]
    return WITHHELD if isinstance(value, str) and not value.startswith(ENVIRON) else value
