"""
A running proxy between a client and a provider that writes down what reaches it.

The proxy is `palimpsest serve` as a process of its own, with an empty data folder that is gone afterwards; settings in
the environment count. What it forwards is taken from the provider's socket, so it is what a model would have seen.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import aiohttp
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from palimpsest.domain import BLOCK_CLOSE, BLOCK_OPEN, Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation.scripted import Reply, Script, ScriptedUpstream

LOOK_SECONDS = 0.1
START_SECONDS = 120.0  # a busy machine loads the embedding model in half a minute
INDEX_SECONDS = 900.0  # some thousand passages on one busy core
STOP_SECONDS = 30.0
PATIENT = {  # what is measured is what memory says, not whether this machine is quick
    "PALIMPSEST_MEMORY__DEADLINE_MS": "20000",
    "PALIMPSEST_MODEL__DOWNLOAD": "never",
}
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})

_BLOCK = re.compile(rf"{BLOCK_OPEN}.*?{BLOCK_CLOSE}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What the provider got of one request."""

    messages: list[Json]
    recalled: int  # passages in the newest block: `x-palimpsest-recalled`
    added_tokens: int = 0  # of all blocks: `x-palimpsest-added-tokens`

    @property
    def blocks(self) -> Sequence[str]:
        return _BLOCK.findall("\n".join(str(message["content"]) for message in self.messages))

    @property
    def added(self) -> str:
        """The blocks in it."""
        return "\n".join(self.blocks)


class RunningProxy:
    """Open it with `opened`."""

    python: ClassVar[Callable[[], str]] = lambda: sys.executable  # that runs the proxy

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        upstream: ScriptedUpstream,
        model: str,
        ended: Callable[[], str],
    ) -> None:
        """
        Args:
            ended: how the proxy's process ended; "" while it runs.
        """
        self._http = http
        self._url = url
        self._ended = ended
        self._upstream = upstream
        self._model = model

    async def send(self, messages: Sequence[Json], says: Reply | str | Script, **named: str) -> Forwarded:
        """
        One chat completion.

        Args:
            messages: of the request.
            says: what the provider answers, or a script for that.
            named: headers, with `_` for `-`; `authorization` is the tenant.

        Raises:
            MemoryFault: the proxy or the provider did not answer as they should.
        """
        _, told = await self._post("/v1/chat/completions", {"messages": list(messages)}, says, named)
        recalled, tokens = (int(told.get(f"x-palimpsest-{name}", "0")) for name in ("recalled", "added-tokens"))
        return Forwarded(self._upstream.received[-1].json["messages"], recalled, tokens)

    async def respond(self, items: Sequence[Json], says: Reply | str, **named: str) -> tuple[Json, Json]:
        """
        One request of the Responses API.

        Args:
            items: of its input.
            says, named: as of `send`.

        Returns:
            The answer, and the last request that the provider got.

        Raises:
            MemoryFault: the proxy or the provider did not answer as they should.
        """
        answer, _ = await self._post("/v1/responses", {"input": list(items), "store": False}, says, named)
        return answer, self._upstream.received[-1].json

    async def _post(
        self, path: str, body: Json, says: Reply | str | Script, named: Mapping[str, str]
    ) -> tuple[Json, Mapping[str, str]]:
        """The JSON and the headers of an answer."""
        if isinstance(says, Reply | str):
            self._upstream.play(says)
        else:
            self._upstream.script = says
        headers = {name.replace("_", "-"): value for name, value in named.items()}
        async with self._http.post(path, json={"model": self._model, **body}, headers=headers) as answer:
            if answer.status != 200:
                raise MemoryFault(f"asking {path} of the proxy: it answered with status {answer.status}")
            return await answer.json(), answer.headers

    async def remember(self, facts: Sequence[Json], **named: str) -> None:
        """
        Write facts as an agent does, by the tool remember_fact; `mcp` has to be switched on.

        Args:
            facts: arguments of the tool, each.
            named: as of `send`.

        Raises:
            MemoryFault: one is refused.
        """
        headers = {name.replace("_", "-"): value for name, value in named.items()}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=START_SECONDS) as http,
            Client(streamable_http_client(f"{self._url}/mcp", http_client=http)) as client,
        ):
            for fact in facts:
                answer = await client.call_tool("remember_fact", fact)
                if not isinstance(answer, CallToolResult) or answer.is_error:
                    raise MemoryFault(f"remembering a fact through the proxy: {answer}")

    async def indexed(self) -> None:
        """
        Wait until everything that was sent is found by words and by meaning.

        Raises:
            MemoryFault: it takes too long.
        """
        await self._until(lambda state: state["pending"] == 0, INDEX_SECONDS, "waiting for the index")

    async def started(self) -> None:
        """
        Wait until memory and its embedding model are up.

        Raises:
            MemoryFault: it takes too long.
        """
        doing = "starting the proxy with its embedding model (palimpsest model install)"
        await self._until(lambda state: state["embedder"] == "ready", START_SECONDS, doing)

    async def _until(self, holds: Any, seconds: float, doing: str) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not await self._is(holds):
                    if ended := self._ended():
                        raise MemoryFault(f"{doing}: {ended}")
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError as cause:
            raise MemoryFault(f"{doing}: it took more than {seconds:.0f} seconds") from cause

    async def _is(self, holds: Any) -> bool:
        with suppress(aiohttp.ClientError):
            async with self._http.get("/readyz") as answer:
                return bool(holds(await answer.json()))
        return False


@asynccontextmanager
async def opened(model: str, settings: Mapping[str, str] = NO_SETTINGS) -> AsyncIterator[RunningProxy]:
    """
    A proxy that is up.

    Args:
        model: the name that requests ask for: the proxy sizes blocks by the window of that model.
        settings: for its environment, by their names there.

    Raises:
        MemoryFault: it does not start.
    """
    patience = aiohttp.ClientTimeout(total=INDEX_SECONDS)
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        async with (
            ScriptedUpstream() as upstream,
            _serving(upstream.url, Path(folder), settings) as (url, ended),
            aiohttp.ClientSession(url, timeout=patience) as http,
        ):
            proxy = RunningProxy(http, url, upstream, model, ended)
            await proxy.started()
            yield proxy


@asynccontextmanager
async def _serving(
    upstream: str, folder: Path, settings: Mapping[str, str]
) -> AsyncIterator[tuple[str, Callable[[], str]]]:
    """Its URL, and how it ended."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["-m", "palimpsest", "serve", "--port", str(port), "--upstream", upstream, "--data", str(folder)]
    file = folder / "log"
    with file.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            RunningProxy.python(), *command, env={**PATIENT, **os.environ, **settings}, stdout=log, stderr=log
        )

    def ended() -> str:
        if process.returncode is None:
            return ""
        lines = file.read_text(errors="replace").split("\n")
        return f"it ended with status {process.returncode}: {next((one for one in reversed(lines) if one), '')}"

    try:
        yield f"http://127.0.0.1:{port}", ended
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
