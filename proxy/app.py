"""
Who knows whom? The only place that joins ports to adapters, opens them, and closes them again.

The app starts, and forwards, whatever is wrong with memory: a store that fails is opened again, the model is picked
up when it arrives, and `/readyz` says what is missing.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import structlog
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.core.caller.client_table import read_signals
from proxy.core.caller.proxy_keys import ProxyKeys
from proxy.domain import Turn
from proxy.edge.access import Access
from proxy.edge.admin_routes import Archive, admin_routes
from proxy.edge.forget_routes import ForgetRoutes
from proxy.edge.provider_state import ProviderState
from proxy.edge.proxy_routes import ProxyRoutes
from proxy.edge.self_description import self_description
from proxy.edge.web_pages import PageGuard, WebPages
from proxy.embedding.embedder import MiniLM
from proxy.errors import MemoryFault
from proxy.index.passage_tables import PassageTables
from proxy.memory.archivist import Archivist
from proxy.memory.forgetting import Following, Forgetting
from proxy.memory.recall import Recall
from proxy.memory.supervision import Supervisor
from proxy.metrics import Metrics
from proxy.pipeline import Pipeline
from proxy.settings import load
from proxy.settings.policy import Policy
from proxy.store.database import Database
from proxy.store.derived import Derived
from proxy.store.journal import Journal
from proxy.store.secret import load_secret
from proxy.tokens import counter
from proxy.tokens.counter import TokenCounter
from proxy.tokens.windows import Windows
from proxy.upstream.dispatcher import Upstreams

DATABASE_FILE = "palimpsest.db"
DRAIN_SECONDS = 5.0  # for what was heard last; a store that is slower than that is failing
HEAVY_THREADS = 2  # large bodies are read beside the event loop; more would only wait for one another
REPLACED = "the database file was removed or replaced since the start, and opened anew: what it held then is not there"
LOADING_SHARE = 0.5  # of the deadline that a request waits for a model that is being loaded; the rest is for the search
OWN_PATHS = ("/healthz", "/readyz", "/metrics", "/memory")

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
    keys = load.proxy_keys(policy, environment)
    keyring = ProxyKeys(keys)
    metrics = Metrics()
    database = Database(
        policy.data / DATABASE_FILE, policy.archive.synchronous, lambda: metrics.fault("database_replaced")
    )
    journal = Journal(database, policy.reinforcement)
    derived = Derived(database, time.time)
    embedder = MiniLM(policy.model, metrics)
    counter = TokenCounter(policy.pressure)
    windows = Windows(policy.pressure, time.time)
    recall = Recall(
        database,
        PassageTables(embedder.name),
        embedder,
        policy.recall,
        metrics,
        time.time,
        reinforcement=policy.reinforcement,
        model_loaded=partial(embedder.loaded, LOADING_SHARE * policy.memory.deadline_ms / 1000),
    )

    forgetting = Forgetting(database, secret, time.time)
    following = Following(database, forgetting.finish, [embedder.forget])

    def learn(turn: Turn, prompt_tokens: int) -> None:
        counter.learn(turn.model, turn.tokens, prompt_tokens)
        windows.answered(turn.upstream, turn.model, prompt_tokens)

    archivist = Archivist(journal, derived, embedder, policy.archive, metrics, secret, time.time, learn)
    heavy = ThreadPoolExecutor(HEAVY_THREADS, "heavy")
    upstreams = Upstreams(policy.upstreams, environment, keyring)
    pipeline = Pipeline(
        policy=policy,
        signals=read_signals(load.read_yaml(load.shipped("clients.yaml"))),
        secret=secret,
        journal=journal,
        remembering=recall,
        archivist=archivist,
        tokens=counter,
        windows=windows,
        metrics=metrics,
        keyring=keyring,
        clock=time.time,
        executor=heavy,
    )

    supervisor = Supervisor(metrics)

    uncounted: list[str] = []  # why tokens are not, once that is known

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as opened:
            opened.push(_say_why)
            await opened.enter_async_context(upstreams)
            opened.callback(heavy.shutdown, wait=False, cancel_futures=True)
            opened.push_async_callback(database.close)
            opened.push_async_callback(embedder.close)
            if policy.memory.mode != "off":
                warming = asyncio.get_running_loop().run_in_executor(heavy, _warm_tokens)
                await _open(database)
                uncounted.append(await warming)
                opened.push_async_callback(supervisor.stop)
                for name, work in (
                    ("model", embedder.watch),
                    ("archivist", archivist.write),
                    ("index", archivist.index),
                    ("forgetting", following.follow),
                ):
                    supervisor.start(name, work)  # after the above, as a model takes the machine
                opened.push_async_callback(archivist.drain, DRAIN_SECONDS)
            gc.collect()
            gc.freeze()  # what is loaded by now stays: looking through it again and again stops every request for 50 ms
            yield

    access = Access(
        token=load.admin_token(environment),
        tenants={key: f"key:{opens.name}" for key, opens in keys.items()},
        is_loopback=policy.listen.is_loopback,
    )
    default_tenant = f"static:{policy.tenants.static}" if policy.tenants.static else ""
    own = Starlette(
        routes=admin_routes(
            journal=journal,
            embedder=embedder,
            remembering=recall,
            metrics=metrics,
            access=access,
            default_tenant=default_tenant,
            self_description=self_description(policy, environment),
            archive=lambda: Archive(
                archivist.backlog,
                archivist.is_failing,
                (
                    *supervisor.troubles,
                    *archivist.troubles,
                    *filter(None, [windows.trouble, *uncounted, REPLACED if database.replaced else ""]),
                ),
                is_off=policy.memory.mode == "off",
                is_model_loading=embedder.is_loading,
            ),
            forgetting=ForgetRoutes(forgetting, time.time),
        ),
        lifespan=lifespan,
    )
    is_shared = len(keyring) > 1 and not policy.tenants.share_provider_state
    state = ProviderState(journal, keyring, secret) if is_shared else None
    front = _Front(own, ProxyRoutes(policy, pipeline, upstreams, keyring, state))
    pages = WebPages(policy.listen, has_keys=bool(keyring), hostname=socket.gethostname())
    return PageGuard(front, pages, metrics.refused)


class _Front:
    """Our own endpoints first; everything else passes."""

    def __init__(self, own: ASGIApp, proxied: ASGIApp) -> None:
        self._own = own
        self._proxied = proxied

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_own = scope["type"] == "lifespan" or any(path == own or path.startswith(own + "/") for own in OWN_PATHS)
        await (self._own if is_own else self._proxied)(scope, receive, send)


def _say_why(_kind: object, failure: BaseException | None, _trace: object) -> None:
    """Log what ends the app; of uvicorn's own report only the first line is written, which says nothing."""
    if isinstance(failure, Exception):
        log.error("the proxy cannot start, or cannot stop as it should", exc_info=failure)


async def _open(database: Database) -> None:
    try:
        await database.open()
    except MemoryFault as fault:
        log.error("the store cannot be opened, requests pass without memory until it can", reason=str(fault))


def _warm_tokens() -> str:
    """Why tokens cannot be counted; "" where they can."""
    try:
        counter.warm()
    except MemoryFault as fault:
        log.error("tokens cannot be counted, requests pass without memory", reason=str(fault))
        return f"tokens cannot be counted, requests pass without memory: {fault}"
    return ""
