"""
The app: the only place that joins ports to adapters, opens them, and closes them again.

Forwarding (`Upstreams`) and memory (`MemoryService`) meet in the pipeline alone: the app starts, and forwards, whatever
is wrong with memory.
"""

from __future__ import annotations

import gc
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial

import structlog
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.core.caller.client_table import read_signals
from proxy.core.caller.proxy_keys import ProxyKeys
from proxy.edge.access import Access
from proxy.edge.admin.health_routes import Readying
from proxy.edge.admin.routes import Parts, admin_routes
from proxy.edge.draining import Draining
from proxy.edge.provider_state import ProviderState
from proxy.edge.proxy_routes import ProxyRoutes
from proxy.edge.request_id import LabelledAnswers
from proxy.edge.self_description import self_description
from proxy.edge.web_pages import PageGuard, WebPages
from proxy.memory.service import MemoryService
from proxy.metrics import Metrics
from proxy.pipeline import Pipeline
from proxy.settings import load
from proxy.settings.policy import Policy
from proxy.store.secret import load_secret
from proxy.upstream.dispatcher import Upstreams

OWN_PATHS = ("/livez", "/healthz", "/readyz", "/metrics", "/memory")

log = structlog.get_logger()


def create_app(policy: Policy | None = None, environment: Mapping[str, str] = os.environ) -> ASGIApp:
    """
    The whole proxy as one ASGI application.

    Args:
        policy: None: what file and environment say.
        environment: holds the keys and tokens that the policy names.

    Raises:
        PolicyError: a setting is wrong, or a secret that it names is not there.
    """
    policy = policy or load.handed_over(environment)
    secret = load_secret(policy.data, environment)
    keyring, metrics = ProxyKeys(load.proxy_keys(policy, environment)), Metrics()
    memory = MemoryService(policy, secret, metrics)
    upstreams = Upstreams(policy.upstreams, environment, keyring)
    signals = read_signals(load.read_yaml(load.shipped("clients.yaml")))
    pipeline = Pipeline(policy, signals, secret, keyring, memory, metrics, time.time)
    is_shared = len(keyring) > 1 and not policy.tenants.share_provider_state
    state = ProviderState(memory.journal, keyring, secret) if is_shared else None
    proxied = ProxyRoutes(policy, pipeline, upstreams, keyring, state, metrics.response)
    pages = WebPages(policy.listen, has_keys=bool(keyring), hostname=socket.gethostname())
    draining = Draining(policy.listen.drain_seconds)
    own = _own(policy, environment, memory, metrics, draining, partial(_life, upstreams, memory, pipeline, draining))
    return PageGuard(_Front(LabelledAnswers(own), proxied), pages, metrics.refused)


def _own(
    policy: Policy,
    environment: Mapping[str, str],
    memory: MemoryService,
    metrics: Metrics,
    draining: Draining,
    life: Callable[[], AbstractAsyncContextManager[None]],
) -> Starlette:
    """The proxy's own endpoints, and the lifespan of what they share with the proxied ones."""
    keys = load.proxy_keys(policy, environment)
    parts = Parts(
        database=memory.database,
        journal=memory.journal,
        remembering=memory.recall,
        forgetting=memory.forgetting,
        readying=Readying(memory.state, lambda: draining.has_begun),
        policy_in_force=lambda: (policy, 1),
        clock=time.time,
        default_tenant=f"static:{policy.tenants.static}" if policy.tenants.static else "",
    )
    access = Access(
        token=load.admin_token(environment),
        tenants={key: f"key:{opens.name}" for key, opens in keys.items()},
        is_loopback=policy.listen.is_loopback,
    )
    description = self_description(policy, environment)
    routes = admin_routes(parts, metrics=metrics, access=access, self_description=description)
    return Starlette(routes=routes, lifespan=lambda _app: life())


@asynccontextmanager
async def _life(
    upstreams: AbstractAsyncContextManager[object], memory: MemoryService, pipeline: Pipeline, draining: Draining
) -> AsyncIterator[None]:
    async with AsyncExitStack() as opened:
        opened.push(_say_why)
        await opened.enter_async_context(upstreams)
        opened.push_async_callback(pipeline.close)
        opened.push_async_callback(memory.close)
        await memory.open()
        gc.collect()
        gc.freeze()  # what is loaded by now stays: looking through it again and again stops every request for 50 ms
        opened.enter_context(draining.before_stop())
        yield


class _Front:
    """An ASGI application that serves the proxy's own endpoints, and proxies everything else."""

    def __init__(self, own: ASGIApp, proxied: ASGIApp) -> None:
        self._own = own
        self._proxied = proxied

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_own = scope["type"] == "lifespan" or any(path == own or path.startswith(own + "/") for own in OWN_PATHS)
        await (self._own if is_own else self._proxied)(scope, receive, send)


def _say_why(_kind: object, failure: BaseException | None, _trace: object) -> None:
    """Log what ends the app: the log keeps only the first line of uvicorn's own report, which says nothing."""
    if isinstance(failure, Exception):
        log.error("the proxy cannot start, or cannot stop as it should", exc_info=failure)
