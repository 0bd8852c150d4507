"""
Policy and switches over HTTP: every setting as this process follows it, without secrets; the reload; memory off and on.

The policy itself holds none: keys are named by environment variables. What is passed on to LiteLLM may, under names
that nobody here knows, so of its texts only references to the environment are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, Routes, operation
from palimpsest.edge.replies import json_reply
from palimpsest.memory.operation.policy_reload import Reload
from palimpsest.memory.operation.switch_service import SwitchService
from palimpsest.settings.policy import ENVIRON, Policy
from palimpsest.wire.values import changed

WITHHELD = "[withheld]"
UNUSABLE = 422  # the request is right, and what the file says is not

Whose = Annotated[str, Field(description="The tenant; empty: all tenants.")]


@dataclass(frozen=True)
class ReloadReply:
    """The result of a reload."""

    accepted: Annotated[bool, Field(description="Whether the configuration could be used.")]
    reason: Annotated[str, Field(description="If not, the reason: file, setting, value and what is allowed.")]
    at: Annotated[float, Field(description="Unix seconds.")]
    changed: Annotated[list[str], Field(description="Settings that took effect.")]
    at_restart: Annotated[list[str], Field(description="Settings that differ and take effect at the next start.")]
    generation: Annotated[int, Field(description="Number of the policy in force.")]
    digest: Annotated[str, Field(description="A short hash of the policy in force, equal in all workers.")]


@dataclass(frozen=True)
class PolicyInForce:
    """The settings in force."""

    generation: Annotated[int, Field(description="Number of the policy; rises with each policy that comes into force.")]
    digest: Annotated[str, Field(description="A short hash of it, equal in all workers.")]
    since: Annotated[float, Field(description="Unix seconds.")]
    files: Annotated[list[str], Field(description="Configuration files; later ones win.")]
    policy: Annotated[dict[str, Any], Field(description="All settings by section, as in a configuration file.")]
    last_reload: Annotated[ReloadReply, Field(description="Result of the last reload.")]


class PolicyRoutes(Routes):
    @operation("GET /policy", "Show the policy in force", for_operator=True)
    async def show(self, _call: Call[Nothing]) -> PolicyInForce:
        now = self._parts.policies
        return PolicyInForce(
            generation=now.number,
            digest=now.digest,
            since=now.since,
            files=[str(file) for file in now.source.files],
            policy=_without_secrets(now.policy),
            last_reload=self._reload_reply(now.last),
        )

    @operation(
        "POST /reload",
        "Reload the configuration",
        replies=ReloadReply,
        statuses={UNUSABLE: "the configuration was refused, and the policy before it stays in force"},
        other_replies={UNUSABLE: ReloadReply},
        for_operator=True,
        in_turn=False,
    )
    async def reload(self, _call: Call[Nothing]) -> Response:
        """Reload in this worker; the others follow within a second."""
        reply = self._reload_reply(await self._parts.policies.reload())
        return json_reply(reply, 200 if reply.accepted else UNUSABLE)

    def _reload_reply(self, last: Reload) -> ReloadReply:
        now = self._parts.policies
        return ReloadReply(
            accepted=not last.refused,
            reason=last.refused,
            at=last.at,
            changed=list(last.changed),
            at_restart=list(last.waiting),
            generation=now.number,
            digest=now.digest,
        )


def _without_secrets(policy: Policy) -> dict[str, Any]:
    settings = policy.model_dump(mode="json")
    for upstream in settings["upstreams"]:
        upstream["settings"] = changed(
            upstream["settings"], lambda text, _name, _owner: text if text.startswith(ENVIRON) else WITHHELD
        )
    return settings


@dataclass(frozen=True, kw_only=True)
class Enable:
    tenant: Whose = ""


@dataclass(frozen=True, kw_only=True)
class Disable:
    tenant: Whose = ""
    reason: Annotated[str, Field(description="The reason, shown to whoever finds memory off.", max_length=500)] = ""


@frozen
class Off:
    """A switch that is off."""

    tenant: Whose
    reason: Annotated[str, Field(description="Why.")]
    at: Annotated[float, Field(description="When it was switched off, Unix seconds.")]


@frozen
class Switches:
    """For whom memory is switched off now."""

    switched_off: Annotated[list[Off], Field(description="The switches that are off; that for all tenants first.")]


class SwitchRoutes(Routes):
    @property
    def _switches(self) -> SwitchService:
        return SwitchService(self._database, self._clock)

    @operation("POST /disable", "Switch memory off", for_operator=True)
    async def disable(self, call: Call[Disable]) -> Switches:
        await self._switches.disable(call.asked.tenant, call.asked.reason)
        return await self._now()

    @operation("POST /enable", "Switch memory on", for_operator=True)
    async def enable(self, call: Call[Enable]) -> Switches:
        await self._switches.enable(call.asked.tenant)
        return await self._now()

    async def _now(self) -> Switches:
        return Switches([Off(off.tenant, off.reason, off.at) for off in await self._switches.off()])
