"""
The app: the only place that joins ports to adapters, opens them, and closes them again.

Forwarding (`Upstreams`) and memory (`MemoryService`) meet in the pipeline alone: the app starts, and forwards, whatever
is wrong with memory.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING

import structlog
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from palimpsest.core.caller.client_table import read_signals
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.redaction.redaction import stored_name
from palimpsest.domain.ports import Tracer
from palimpsest.edge.access import Access
from palimpsest.edge.admin.late import LazyApplication
from palimpsest.edge.admin.probe_routes import ProbeRoutes, ReadinessProbe
from palimpsest.edge.draining import ClosingAnswers, Draining
from palimpsest.edge.generations import Generation, Generations
from palimpsest.edge.hangup import on_hangup
from palimpsest.edge.key_limits import refuse_others
from palimpsest.edge.project_path import ProjectPaths
from palimpsest.edge.proxy_routes import ProxyRoutes
from palimpsest.edge.request_id import LabelledAnswers
from palimpsest.edge.self_description import self_description
from palimpsest.edge.web_pages import PageGuard, WebPages
from palimpsest.features.mcp import PATH as MCP_PATH
from palimpsest.features.registry import FEATURES, OPERATIONS
from palimpsest.memory.operation.policy_reload import PolicyReload
from palimpsest.memory.operation.proxy_keys import KnownKeys
from palimpsest.memory.operation.switches import KnownSwitches
from palimpsest.memory.service import MemoryService, MemoryState
from palimpsest.pipeline import Pipeline
from palimpsest.settings import load
from palimpsest.settings.policy import Policy
from palimpsest.settings.source import Source
from palimpsest.settings.source import handed_over as handed_over_source
from palimpsest.store.operation import changes
from palimpsest.store.operation.secret import load_secret
from palimpsest.store.operation.switches import EVERYBODY
from palimpsest.telemetry import logs
from palimpsest.telemetry.metrics import Metrics
from palimpsest.telemetry.tracing import tracer_of
from palimpsest.upstream.dispatcher import Upstreams

if TYPE_CHECKING:
    from palimpsest.domain.ports import Preparer
    from palimpsest.edge.open_turns import OpenTurns
    from palimpsest.edge.provider_state import ProviderState
    from palimpsest.features.mcp.endpoint import McpEndpoint
    from palimpsest.remote.keeping import KeptMemory
    from palimpsest.remote.memory import RemoteMemory
    from palimpsest.upstream.litellm_library import LiteLLMThread

PAGE_SECONDS = 2.0  # without a request: loading takes half a second of a processor, for which a request would wait
EXPIRY_SECONDS = 0.5  # between looks whether a key has expired
OWN_PATHS = ("/livez", "/healthz", "/readyz", "/metrics", "/memory")

# After this a thread that reads long texts for the archive gives way to requests. At Python's own 5 ms deciding on one
# took 17 ms beside such a thread, now 7; what many threads cost together stays the same.
SWITCH_SECONDS = 0.0005

GC_OBJECTS = 10_000  # made since the last look for garbage: a turn makes a thousand, nearly all of them free themselves

log = structlog.get_logger()


def create_app(
    policy: Policy | None = None,
    environment: Mapping[str, str] = os.environ,
    tracer: Tracer | None = None,
    archives_apart: bool = False,
) -> ASGIApp:
    """
    The whole proxy as one ASGI application.

    Args:
        policy: None: what file and environment say.
        environment: holds the keys and tokens that the policy names.
        tracer: None: the one that the environment asks for, if it does.
        archives_apart: whether turns are written and indexed by a process of its own, which requests do not feel.

    Raises:
        PolicyError: a setting is wrong, or a secret that it names is not there.
    """
    return _Proxy(
        policy or load.handed_over(environment),
        environment,
        handed_over_source(environment),
        tracer or tracer_of(environment),
        archives_apart,
    ).application()


class _SharedUpstreams:
    """Upstreams that several generations use; closed behind the last of them."""

    def __init__(self, upstreams: Upstreams) -> None:
        self.upstreams = upstreams
        self.users = 0

    async def release(self) -> None:
        self.users -= 1
        if not self.users:
            await self.upstreams.__aexit__(None, None, None)


class _Proxy:
    """What lives as long as the process, and the making of what is built anew with each policy."""

    def __init__(
        self, policy: Policy, environment: Mapping[str, str], source: Source, tracer: Tracer, archives_apart: bool
    ) -> None:
        self._environment = environment
        self._tracer = tracer
        self._secret = load_secret(policy.data, environment)
        self._signals = read_signals(load.read_yaml(load.shipped("clients.yaml")))
        self._metrics = Metrics()
        self._litellm: LiteLLMThread | None = None
        self._remote = self._remote_memory(policy) if policy.server.url else None
        self._kept: KeptMemory | None = None
        self._pipeline: Pipeline | None = None  # of the policy in force
        self._memory = MemoryService(
            *(self._own(policy), self._secret, self._metrics),
            tracer=tracer,
            environment=environment,
            litellm_thread=self._litellm_thread,
            archives_apart=archives_apart,
            sources=FEATURES,
        )
        if policy.store.url and self._remote is None:
            from palimpsest.remote.keeping import KeptMemory

            self._kept = kept = KeptMemory(policy, self._secret, self._memory, self._newest)
            self._memory.concerns.append(lambda: kept.concern)
        self._draining = Draining(policy.listen.drain_seconds)
        self._upstreams = self._upstreams_of(policy)
        self._keys = KnownKeys(self._memory.database, time.time)
        self._switches = KnownSwitches(self._memory.database)
        self._reload = PolicyReload(
            *(source, environment, policy, self._apply, self._memory.database, self._metrics, time.time)
        )
        self._generations = Generations(self._generation(policy, 0))
        self._memory.concerns.append(lambda: self._reload.trouble)
        self._memory.concerns.append(lambda: self._switches.trouble)
        for counter, listen in (
            (changes.KEYS, self._learn_keys),
            (changes.SWITCHES, self._learn_switches),
            (changes.POLICY, self._reload.agree),
        ):
            self._memory.follower.listen(counter, counter, listen)

    @cached_property
    def _open_turns(self) -> OpenTurns:
        from palimpsest.edge.open_turns import OpenTurns  # late: only the API has any

        return OpenTurns()

    def _own(self, policy: Policy) -> Policy:
        """The policy of the memory in this process: off, where another machine keeps it."""
        return policy if self._remote is None else load.without_memory(policy)

    def _remote_memory(self, policy: Policy) -> RemoteMemory:
        from palimpsest.remote.memory import RemoteMemory

        return RemoteMemory(policy, self._secret, self._environment, self._metrics)

    def _newest(self) -> Pipeline:
        assert self._pipeline is not None
        return self._pipeline

    def _preparer(self, policy: Policy, pipeline: Pipeline, keyring: ProxyKeys) -> Preparer:
        """What prepares requests, wherever memory is kept."""
        if self._kept is not None:
            from palimpsest.remote.keeping import KeepingPreparer

            parts = (policy, self._signals, keyring, self._kept, pipeline, pipeline.tenant_of, time.time)
            return KeepingPreparer(*parts)
        if self._remote is None:
            return pipeline
        from palimpsest.remote.preparer import RemotePreparer

        return RemotePreparer(policy, self._signals, self._remote, self._metrics, time.time)

    def application(self) -> ASGIApp:
        """The newest generation, and the life of all of them."""
        answers = ProjectPaths(ClosingAnswers(self._generations, self._draining))
        return _Front(("lifespan",), Starlette(lifespan=lambda _app: self._life()), answers)

    @asynccontextmanager
    async def _life(self) -> AsyncIterator[None]:
        """Open and close what lives as long as the app: upstreams, memory, link, watchers and generations."""
        memory = self._memory
        async with AsyncExitStack() as opened:
            opened.push(_say_why)
            opened.push_async_callback(self._tracer.close)
            opened.push_async_callback(self._close_litellm)
            await self._upstreams.upstreams.__aenter__()
            opened.push_async_callback(self._generations.close)
            if self._remote is not None:
                await self._remote.open()
                opened.push_async_callback(self._remote.close)
                memory.supervisor.start("link", self._remote.courier.run)
            if self._kept is not None:
                opened.push_async_callback(self._kept.courier.close)  # once nothing is brought any more
            opened.push_async_callback(memory.close)
            await memory.open()
            if self._kept is not None:
                await self._kept.courier.open()
                memory.supervisor.start("kept", self._kept.courier.run)
            memory.supervisor.start("reload", self._reload.watch)
            memory.supervisor.start("expiry", self._watch_expiry)
            memory.supervisor.start("page", self._prepare_page)
            gc.collect()
            sys.setswitchinterval(SWITCH_SECONDS)
            gc.set_threshold(GC_OBJECTS)
            gc.freeze()  # what is loaded by now stays: looking through it again and again stops every request for 50 ms
            opened.enter_context(self._draining.before_stop())
            opened.enter_context(on_hangup(self._reload.reload))
            yield

    def _litellm_thread(self) -> LiteLLMThread:
        """The thread on which LiteLLM runs, started when an upstream or model first needs it."""
        if self._litellm is None:
            from palimpsest.upstream.litellm_library import LiteLLMThread

            self._litellm = LiteLLMThread()
        return self._litellm

    async def _close_litellm(self) -> None:
        if self._litellm is not None:
            await self._litellm.close()

    async def _learn_keys(self) -> None:
        await self._keys.learn()
        self._renew()

    async def _learn_switches(self) -> None:
        """Read the switches from the database, and renew the generation where they changed."""
        before = self._switches.off_for
        await self._switches.learn()
        self._metrics.gauge("memory_switched_off", EVERYBODY in self._switches.off_for)
        self._metrics.gauge("tenants_switched_off", len(self._switches.off_for - {EVERYBODY}))
        if self._switches.off_for != before:
            log.info("memory was switched", reason=self._switches.trouble or "on for everybody")
            self._renew()

    async def _watch_expiry(self) -> None:
        """Take keys out of use when their time is over; forever."""
        while True:
            if self._keys.active().keys() != self._active_keys:
                self._renew()
            await asyncio.sleep(EXPIRY_SECONDS)

    async def _prepare_page(self) -> None:
        """Load the page when no request comes, so that whoever opens it first need not wait for that."""
        if self._reload.policy.page.enabled:
            await self._memory.traffic.pause(PAGE_SECONDS)
            await self._api.prepare()

    def _renew(self) -> None:
        """Make a new generation by the keys and switches that are known now."""
        self._generations.replace(self._generation(self._reload.policy, self._reload.number))

    async def _apply(self, policy: Policy, number: int) -> None:
        """Put a policy into force for requests that begin from now on."""
        before, upstreams = self._reload.policy, self._upstreams
        load.admin_token(self._environment)  # refused before anything has changed
        async with AsyncExitStack() as undone:
            if (policy.upstreams, policy.tenants.keys) != (before.upstreams, before.tenants.keys):
                upstreams = self._upstreams_of(policy)
                await undone.enter_async_context(upstreams.upstreams)
            await self._memory.apply(self._own(policy))
            undone.pop_all()
        if policy.log != before.log:
            logs.configure(policy.log)
        self._upstreams = upstreams
        self._generations.replace(self._generation(policy, number))

    def _upstreams_of(self, policy: Policy) -> _SharedUpstreams:
        keyring = ProxyKeys(load.proxy_keys(policy, self._environment))
        return _SharedUpstreams(
            Upstreams(policy.upstreams, self._environment, keyring, self._litellm_thread, self._tracer)
        )

    def _generation(self, policy: Policy, number: int) -> Generation:
        """Make all that a request needs and that a policy may change."""
        memory, metrics, shared = self._memory, self._metrics, self._upstreams
        made = self._keys.active()
        self._active_keys = made.keys()
        keyring = ProxyKeys(
            load.proxy_keys(policy, self._environment),
            made,
            is_required=policy.tenants.require_key,
            is_complete=self._keys.are_read,
        )
        access = Access(load.admin_token(self._environment), keyring, policy.listen.is_loopback)
        pipeline = Pipeline(
            *(self._own(policy), self._signals, self._secret, keyring, memory, metrics, time.time, number),
            off_for=self._switches.off_for,
            tracer=self._tracer,
            trusts_machine=access.trusts_machine,
            keeps_unlinked=self._kept is not None,
        )
        self._pipeline = pipeline
        is_shared = _share_an_account(policy, keyring) and not policy.tenants.share_provider_state
        stored = partial(stored_name, key=self._secret, redacts=policy.archive.redact)
        state: ProviderState | None = None
        if is_shared:
            from palimpsest.edge.provider_state import ProviderState

            state = ProviderState(memory.journal, self._secret, self._signals, stored)
        proxied = ProxyRoutes(
            *(policy, self._preparer(policy, pipeline, keyring), shared.upstreams, keyring, state, metrics.response),
            tracer=self._tracer,
            limits=partial(refuse_others, signals=self._signals),
        )
        pages = WebPages(policy.listen, has_keys=keyring.is_required, hostname=socket.gethostname())
        own = LabelledAnswers(Router(self._own_routes(policy, access, pipeline)))
        mcp = self._mcp(policy, access) if policy.mcp.enabled else None
        shared.users += 1

        async def close() -> None:
            if mcp is not None:
                await mcp.close()
            await pipeline.settle()
            await shared.release()

        front = _Front(OWN_PATHS, own, proxied if mcp is None else _Front((MCP_PATH,), mcp, proxied))
        app = PageGuard(front, pages, metrics.refused)
        return Generation(app, pipeline.close, close)

    async def _state(self) -> MemoryState:
        """How memory is, wherever it is kept."""
        return self._remote.state if self._remote is not None else await self._memory.state()

    def _mcp(self, policy: Policy, access: Access) -> McpEndpoint:
        from palimpsest.features.mcp.endpoint import McpEndpoint
        from palimpsest.features.mcp.speakers import Speakers
        from palimpsest.features.mcp.tools import MemoryTools

        memory = self._memory
        parts = (memory.database, memory.assisted, memory.archive.forgetting, policy, self._secret, time.time)
        speakers = Speakers(policy, self._signals, access.keys, self._secret, access.trusts_machine)
        wanted = [feature for feature in FEATURES if feature.tools and feature.extends(policy)]
        off = {name for feature in FEATURES if feature not in wanted for name in feature.tools}
        names = [name for name in policy.mcp.tools if name not in off]
        given = (memory.archive, policy, self._switches.off_for)
        return McpEndpoint(
            MemoryTools(*parts), lambda: [feature.toolset(*given) for feature in wanted], names, speakers.of
        )

    def _own_routes(self, policy: Policy, access: Access, pipeline: Pipeline) -> list[BaseRoute]:
        readiness_probe = ReadinessProbe(self._state, lambda: self._draining.has_begun)
        probes = ProbeRoutes(readiness_probe, self._metrics, access, self_description(policy, self._environment))
        self._api = LazyApplication(partial(self._admin_api, policy, access, readiness_probe, pipeline))
        return [*probes.routes(), Route("/memory{rest:anything}", self._api)]

    def _admin_api(
        self, policy: Policy, access: Access, readiness_probe: ReadinessProbe, pipeline: Pipeline
    ) -> ASGIApp:
        from palimpsest.edge.admin.operation import Parts  # late: a start need not wait for it
        from palimpsest.edge.admin.routes import admin_api

        memory = self._memory
        parts = Parts(
            archive=memory.archive,
            retriever=memory.assisted,
            readiness_probe=readiness_probe,
            policies=self._reload,
            preparer=pipeline,
            keyring=access.keys,
            open_turns=self._open_turns,
            key_of=partial(tenant_key, self._secret),
            default_tenant=f"static:{policy.tenants.static}" if policy.tenants.static else "",
        )
        if not policy.page.enabled:
            return admin_api(parts, access, OPERATIONS)
        from palimpsest.features.page.application import application

        return admin_api(parts, access, OPERATIONS, application)


def _share_an_account(policy: Policy, keyring: ProxyKeys) -> bool:
    """Whether several keys, of one tenant or of several, use a credential of ours; callers without one are one more."""
    is_held = any(upstream.auth == "held" for upstream in policy.upstreams)
    anonymous = 0 if keyring.is_required or not keyring else 1
    return is_held and len(keyring) + anonymous > 1


class _Front:
    """An ASGI application that serves some paths, or kinds of connection, and hands everything else on."""

    def __init__(self, own: tuple[str, ...], served: ASGIApp, others: ASGIApp) -> None:
        self._own = own
        self._served = served
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", scope["type"])
        # most are for nobody here, and that is said by one comparison
        is_own = path.startswith(self._own) and any(path == own or path.startswith(own + "/") for own in self._own)
        await (self._served if is_own else self._others)(scope, receive, send)


def _say_why(_kind: object, failure: BaseException | None, _trace: object) -> None:
    """Log what ends the app: the log keeps only the first line of uvicorn's own report, which says nothing."""
    if isinstance(failure, Exception):
        log.error("the proxy cannot start, or cannot stop as it should", exc_info=failure)
