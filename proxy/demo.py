"""
What does it do? A conversation that is compacted, asked without memory and with, side by side. No key, no network.

Only the model is a script, and it can only repeat what it is shown; proxy, store, detection and search are the real ones.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from proxy.domain import Json
from proxy.policy import ListenPolicy, LogPolicy, ModelPolicy, Policy, UpstreamPolicy
from proxy.scripted import ScriptedUpstream
from proxy.settings import read_yaml, shipped

KEY = "sk-demo"
MODEL = "gpt-4o"
INDEX_WAIT_SECONDS = 30.0  # two dozen messages take one; a busy machine more
LOOK_SECONDS = 0.05
WIDTH_COLUMNS = 100  # where there is no terminal to ask
BLOCK = re.compile(r"(<palimpsest-memory\b.*?</palimpsest-memory>)", re.S)


@dataclass(frozen=True, slots=True)
class Seen:
    """One way the question went: the messages that reached the model, its answer, and what the proxy said of it."""

    messages: list[Json]
    answer: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Played:
    """Everything the demo has to show."""

    talk: Json
    characters: int
    without: Seen
    with_memory: Seen
    ready: Json
    why: Json


def main() -> int:
    """Play it and show it; the exit status is 0 when the lost facts came back."""
    played = asyncio.run(play())
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH_COLUMNS)
    console.print(picture(played))
    return 0 if played.with_memory.answer != played.talk["no_answer"] else 1


async def play() -> Played:
    """Run the conversation through a proxy of its own, on loopback, with a store that is gone afterwards."""
    talk = read_yaml(shipped("demo.yaml"))
    history: list[Json] = [{"role": "system", "content": talk["system"]}]
    with tempfile.TemporaryDirectory(prefix="palimpsest-demo-") as folder:
        async with (
            ScriptedUpstream(lambda body: _model(talk, body)) as upstream,
            _proxy(upstream.url, Path(folder)) as url,
            aiohttp.ClientSession(url, headers={"authorization": f"Bearer {KEY}"}) as http,
        ):
            for turn in talk["turns"]:
                history.append({"role": "user", "content": turn["user"]})
                history.append({"role": "assistant", "content": (await _ask(http, upstream, history)).answer})
            characters = sum(len(message["content"]) for message in history)
            ready = await _indexed(http)
            compacted = [
                history[0],
                {"role": "user", "content": f"Summary of the conversation so far:\n{talk['summary'].strip()}"},
                *history[-talk["keep_messages"] :],
                {"role": "user", "content": talk["question"]},
            ]
            without = await _ask(http, upstream, compacted, memory="off")
            with_memory = await _ask(http, upstream, compacted)
            conversation = with_memory.headers["x-palimpsest-conversation"]
            async with http.get(f"/memory/v1/conversations/{conversation}/turns/{len(talk['turns']) + 1}") as response:
                why: Json = await response.json()
    return Played(talk, characters, without, with_memory, ready, why)


def _model(talk: Json, body: Json) -> str:
    """The scripted model: the next line of the talk, or what its patterns find in the text that it is shown."""
    shown = "\n".join(message["content"] for message in body["messages"])
    asked = BLOCK.sub("", body["messages"][-1]["content"]).strip()
    for turn in talk["turns"]:
        if turn["user"] == asked:
            return str(turn["assistant"])
    found = {name: re.search(pattern, shown) for name, pattern in talk["patterns"].items()}
    facts = {name: match[1] for name, match in found.items() if match}
    return str(talk["answer"].format(**facts) if len(facts) == len(found) else talk["no_answer"])


@asynccontextmanager
async def _proxy(upstream_url: str, folder: Path) -> AsyncIterator[str]:
    """The real app on a free port of loopback; its base URL."""
    from proxy.app import create_app  # late: `--help` must not wait for it

    policy = Policy(
        data=folder,
        listen=ListenPolicy(port=0),
        upstreams=(UpstreamPolicy(url=upstream_url),),
        model=ModelPolicy(download="never"),
        log=LogPolicy(level="error"),
    )
    server = uvicorn.Server(uvicorn.Config(create_app(policy), host="127.0.0.1", port=0, log_level="error"))
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(LOOK_SECONDS)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True


async def _ask(http: aiohttp.ClientSession, upstream: ScriptedUpstream, messages: list[Json], memory: str = "on") -> Seen:
    body = {"model": MODEL, "messages": messages}
    async with http.post("/v1/chat/completions", json=body, headers={"x-palimpsest-memory": memory}) as response:
        answer = await response.json()
        reached = upstream.received[-1].json["messages"]
        return Seen(reached, answer["choices"][0]["message"]["content"], dict(response.headers))


async def _indexed(http: aiohttp.ClientSession) -> Json:
    """Wait until everything is findable; what `/readyz` says then."""
    ready: Json = {}
    async with asyncio.timeout(INDEX_WAIT_SECONDS):
        while ready.get("pending") != 0:
            async with http.get("/readyz") as response:
                ready = await response.json()
            await asyncio.sleep(LOOK_SECONDS)
    return ready
