"""
LiteLLM itself, on an event loop and a thread of its own.

The only file that imports litellm, and only where an upstream names one of its models: at the start, as that takes
seconds.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, NamedTuple, Self, TypeVar

from palimpsest.telemetry.logs import silence

OFFLINE = (  # what LiteLLM would fetch from the network when it is imported or first used
    *("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "LITELLM_LOCAL_BLOG_POSTS"),
    *("LITELLM_LOCAL_POLICY_TEMPLATES", "LITELLM_LOCAL_AUTOROUTER_PRESETS"),
)
LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")  # their lines quote what passes

LOOK_SECONDS = 0.001  # between looks whether a cancelled step has ended; it takes a turn or two of the loop
JOIN_SECONDS = 5.0  # longest that a stop waits for what blocks; the thread ends with the process

T = TypeVar("T")


class Library(NamedTuple):
    """The parts of LiteLLM that are used."""

    litellm: Any
    adapter: Any  # Messages to chat completions, and back
    timeout: Any  # of httpx


async def _import() -> Library:
    """Import LiteLLM without output or network access."""
    os.environ.update(dict.fromkeys(OFFLINE, "True"))
    import httpx
    import litellm
    from litellm.llms.anthropic.pass_through.adapters.transformation import AnthropicAdapter

    litellm.suppress_debug_info = True  # else it prints hints
    litellm.expose_router_debug_in_errors = False  # clients know nothing of its routers
    litellm.telemetry = False
    silence(*LOGGERS)
    return Library(litellm, AnthropicAdapter(), httpx.Timeout)


class LiteLLMThread:
    """LiteLLM on a thread of its own, imported when it is first needed. Await `close` in the end."""

    def __init__(self) -> None:
        self.thread = LoopThread("litellm")
        self._library: Library | None = None
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()

    async def open(self) -> Library:
        """Start the thread and import the library, unless that is done."""
        async with self._opening:
            if self._library is None:
                async with AsyncExitStack() as opened:
                    await opened.enter_async_context(self.thread)
                    self._library = await self.thread.run(_import())
                    self._opened = opened.pop_all()
            return self._library

    async def close(self) -> None:
        """Close the library's connections, which all users share, and end the thread."""
        if self._library is not None:
            await self.thread.run(self._library.litellm.close_litellm_async_clients())
        await self._opened.aclose()


class LoopThread:
    """An event loop on a thread of its own. An async context manager."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None

    async def __aenter__(self) -> Self:
        self._loop = type(asyncio.get_running_loop())()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._thread is not None
        ended = asyncio.run_coroutine_threadsafe(_end_all(), self._loop)
        await asyncio.wait([asyncio.wrap_future(ended)], timeout=JOIN_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, JOIN_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something on the thread; cancelling this cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def step(self, source: AsyncGenerator[T, None]) -> T | None:
        """The next item of a generator that lives on the thread; None: it has ended."""
        return await self.run(_next(source))

    async def close(self, source: AsyncGenerator[Any, None]) -> None:
        """Close a generator of the thread, even one whose step has just been cancelled."""
        await self.run(_close(source))


async def _next(source: AsyncGenerator[T, None]) -> T | None:
    return await anext(source, None)


async def _close(source: AsyncGenerator[Any, None]) -> None:
    """Stop a generator while it waits: closed between items, it may leave its connection to the garbage collector."""
    while source.ag_running:  # type: ignore[attr-defined]  # noqa: ASYNC110  # a generator tells nobody when it stops
        await asyncio.sleep(LOOK_SECONDS)
    with suppress(Exception):
        async with asyncio.timeout(0):
            async for _ in source:
                pass
    await source.aclose()


async def _end_all() -> None:
    """Cancel every other task of this loop, and wait for them."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
