"""
LiteLLM itself, on a thread of its own.

The only file that imports litellm, and only where an upstream names one of its models: at the start, as that takes
seconds.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from palimpsest.telemetry.logs import silence
from palimpsest.upstream.loop_thread import LoopThread

OFFLINE = (  # what LiteLLM would fetch from the network when it is imported or first used
    *("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "LITELLM_LOCAL_BLOG_POSTS"),
    *("LITELLM_LOCAL_POLICY_TEMPLATES", "LITELLM_LOCAL_AUTOROUTER_PRESETS"),
)
LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")  # their lines quote what passes


class Library(NamedTuple):
    """The parts of LiteLLM that are used."""

    litellm: Any
    adapter: Any  # Messages to chat completions, and back
    timeout: Any  # of httpx


async def _import() -> Library:
    """LiteLLM, imported without output or network access."""
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
        """End the library's connections, which all of its users share, and the thread."""
        if self._library is not None:
            await self.thread.run(self._library.litellm.close_litellm_async_clients())
        await self._opened.aclose()
