"""The models that help memory, by role: made from the policy, and made anew where it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from palimpsest.domain import AssistRole, RawHeaders
from palimpsest.domain.ports import Assistant, AssistCounts, Body, Clock, UpstreamAnswer
from palimpsest.features.assist.budget import Budget
from palimpsest.features.assist.model import RoleModel
from palimpsest.settings.policy import AssistantPolicy, Policy, UpstreamPolicy
from palimpsest.settings.prices import price_of
from palimpsest.store.engine import Engine
from palimpsest.upstream.dispatcher import Upstreams
from palimpsest.upstream.litellm_library import LiteLLMThread

NO_MEMORY = {"x-palimpsest-memory": "off"}  # to whoever is at `url`: it may be another proxy like this one


class ModelAssistants:
    """Implements `ports.Assistants`. Without a model in the policy it holds nothing. Await `close` in the end."""

    def __init__(
        self,
        database: Engine,
        counts: AssistCounts,
        clock: Clock,
        environment: Mapping[str, str],  # holds the keys that the policy names
        # where LiteLLM runs, shared with the upstreams of clients; None: where it has to
        litellm_thread: Callable[[], LiteLLMThread] | None = None,
    ) -> None:
        self._database = database
        self._counts = counts
        self._clock = clock
        self._environment = environment
        self._litellm_thread = litellm_thread
        self._made_of: object = ({}, ())
        self._models: dict[AssistRole, RoleModel] = {}
        self._senders: list[tuple[_LazyUpstreams, RoleModel]] = []  # of earlier policies, too, while in use

    def of(self, role: AssistRole) -> Assistant | None:
        """The model in a role, as the policy has it; None: none."""
        return self._models.get(role)

    @property
    def trouble(self) -> str:
        """The daily caps that are reached, in words; "": none."""
        return "; ".join(filter(None, (model.trouble for model in self._models.values())))

    async def apply(self, policy: Policy) -> None:
        """Apply another policy, whose keys are in the environment; running calls finish under the old one."""
        made_of = (policy.models, policy.upstreams if any(one.upstream for one in policy.models.values()) else ())
        if made_of == self._made_of:
            return
        upstreams = {upstream.name: upstream for upstream in policy.upstreams}
        models = {}
        for role, assistant in policy.models.items():
            asked = _upstream(role, assistant, upstreams)
            sender = _LazyUpstreams(Upstreams([asked], self._environment, litellm_thread=self._litellm_thread))
            budget = Budget(role, assistant, price_of(assistant), self._database, self._clock)
            models[role] = RoleModel(role, assistant, sender, budget, self._counts)
            self._senders.append((sender, models[role]))
        self._models, self._made_of = models, made_of
        for sender, model in [pair for pair in self._senders if pair[1] not in models.values() and not pair[1].running]:
            self._senders.remove((sender, model))
            await sender.close()

    async def open(self) -> None:
        """Load what models are asked with (LiteLLM, for one), so that the first call need not wait."""
        for sender, _ in [*self._senders]:
            await sender.open()

    async def close(self) -> None:
        self._models, senders, self._senders = {}, self._senders, []
        for sender, _ in senders:
            await sender.close()


class _LazyUpstreams:
    """Upstreams that are opened when they are first asked: LiteLLM takes seconds, for which no start waits."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._opening = asyncio.Lock()
        self._is_open = False

    async def open(self) -> None:
        """Open the connections, unless that is done."""
        async with self._opening:
            if not self._is_open:
                await self._upstreams.__aenter__()
                self._is_open = True

    async def send(self, model: str, method: str, target: str, headers: RawHeaders, body: Body) -> UpstreamAnswer:
        """Ask an upstream; see `Sender`."""
        if not self._is_open:
            await self.open()
        return await self._upstreams.send(model, method, target, headers, body)

    async def close(self) -> None:
        if self._is_open:
            await self._upstreams.__aexit__(None, None, None)


def _upstream(role: str, policy: AssistantPolicy, upstreams: Mapping[str, UpstreamPolicy]) -> UpstreamPolicy:
    """The upstream of a role: one of the policy for any model, or one that LiteLLM asks."""
    if policy.upstream:
        return upstreams[policy.upstream].model_copy(update={"models": ("*",), "wire": "any"})
    # LiteLLM refuses what a model does not take, unless it may leave it out
    settings = {"drop_params": True} | ({"extra_headers": NO_MEMORY} if policy.url else {})
    return UpstreamPolicy(
        name=f"models.{role}",
        litellm=policy.model,
        url=policy.url,
        key_env=policy.key_env,
        settings=settings,
        silence_timeout_seconds=policy.timeout_seconds,
    )
