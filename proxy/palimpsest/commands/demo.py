"""
The demonstration: a compacted conversation, asked without memory and with it. It needs no key and no network.

Only the model is a script, and it can only repeat what it is shown; proxy, store, detection and search are real.
"""

from __future__ import annotations

import asyncio
import re
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
from aiohttp import web
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from palimpsest.console import terminal
from palimpsest.domain import Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.model import locate
from palimpsest.settings.load import read_yaml, shipped
from palimpsest.settings.policy import (
    ListenPolicy,
    LogPolicy,
    MemoryPolicy,
    ModelPolicy,
    Policy,
    TenantPolicy,
    UpstreamPolicy,
)
from palimpsest.telemetry import logs

TENANT = "demo"
CHARS_PER_TOKEN = 4  # of a request, for the usage that the scripted model reports
MODEL = "gpt-4o"
INDEX_WAIT_SECONDS = 30.0  # two dozen messages take one; a busy machine more
LOOK_SECONDS = 0.05
DEADLINE_MS = 10_000.0  # a demo on a busy machine shows what memory does, not that requests do not wait for it
WIDTH_COLUMNS = 100  # where there is no terminal to ask, and the most that reads well
SHOWN_CHARS = 150  # of a message: three lines of a column
SHOWN_CANDIDATES = 3
SIGNALS = ("meaning", "words")  # the two that a newcomer understands at once; `explain` shows all
BLOCK = re.compile(r"(<palimpsest-memory\b.*?</palimpsest-memory>)", re.S)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of the question: the messages that reached the model, its answer, and the proxy's headers."""

    messages: list[Json]
    answer: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DemoRun:
    """The results that the demo shows."""

    talk: Json
    characters: int
    conversation: str
    without: Outcome
    with_memory: Outcome
    why: Json
    texts: Mapping[int, str]  # of the candidates, by memory id


def main(in_browser: bool = False) -> int:
    """Run the demo and show it, or with `in_browser` on the proxy's page; status 0 if what was lost came back."""
    if in_browser:
        asyncio.run(_serve())
        return 0
    played = asyncio.run(play())
    out = terminal.console()
    out.width = min(out.width, WIDTH_COLUMNS) if out.is_terminal else WIDTH_COLUMNS
    out.print(picture(played))
    return 0 if played.with_memory.answer != played.talk["no_answer"] else 1


async def play() -> DemoRun:
    """Run the conversation, and stop the proxy."""
    async with running_demo() as (_, _, run):
        return run


async def _serve() -> None:
    async with running_demo() as (url, serving, run):
        out = terminal.console()
        out.print(f"The demonstration's conversation: {url}/memory/conversations/{run.conversation}")
        out.print("Ctrl-C stops the proxy and deletes it.")
        with suppress(asyncio.CancelledError):
            await asyncio.wait([serving])  # a signal ends it


@asynccontextmanager
async def running_demo() -> AsyncIterator[tuple[str, asyncio.Task[None], DemoRun]]:
    """Run the conversation through a proxy that still runs meanwhile: base URL, task, results. Its store is deleted."""
    talk = read_yaml(shipped("demo.yaml"))
    received: list[Json] = []
    history: list[Json] = [{"role": "system", "content": talk["system"]}]
    with tempfile.TemporaryDirectory(prefix="palimpsest-demo-") as folder:
        async with (
            _provider(talk, received) as upstream_url,
            _proxy(upstream_url, Path(folder)) as (url, serving),
            aiohttp.ClientSession(url) as http,
        ):
            for turn in talk["turns"]:
                history.append({"role": "user", "content": turn["user"]})
                history.append({"role": "assistant", "content": (await _ask(http, received, history)).answer})
            characters = sum(len(message["content"]) for message in history)
            if locate(ModelPolicy()) is not None:  # without a model nothing more will be indexed
                await _indexed(http)
            compacted = [
                history[0],
                {"role": "user", "content": f"Summary of the conversation so far:\n{talk['summary'].strip()}"},
                *history[-talk["keep_messages"] :],
                {"role": "user", "content": talk["question"]},
            ]
            without = await _ask(http, received, compacted, memory="off")
            with_memory = await _ask(http, received, compacted)
            if with_memory.headers.get("x-palimpsest-recalled", "0") == "0":
                note = with_memory.headers.get("x-palimpsest-note", "no reason given")
                raise MemoryFault(f"playing the demo: nothing came back ({note}); any failure is in the lines above")
            home = with_memory.headers["x-palimpsest-conversation"]
            why = await _get(http, f"/memory/v1/conversations/{home}/turns/{len(talk['turns']) + 1}")
            found = await _get(http, "/memory/v1/search", q=talk["question"])
            texts = {result["memory"]: result["text"] for result in found["results"]}
            yield url, serving, DemoRun(talk, characters, home, without, with_memory, why["explain"], texts)


def _model(talk: Json, body: Json) -> str:
    """The answer of the scripted model: the next line of the script, filled in from the text that it is shown."""
    shown = "\n".join(message["content"] for message in body["messages"])
    asked = BLOCK.sub("", body["messages"][-1]["content"]).strip()
    for turn in talk["turns"]:
        if turn["user"] == asked:
            return str(turn["assistant"])
    found = {name: re.search(pattern, shown) for name, pattern in talk["patterns"].items()}
    facts = {name: match[1] for name, match in found.items() if match}
    return str(talk["answer"].format(**facts) if len(facts) == len(found) else talk["no_answer"])


@asynccontextmanager
async def _provider(talk: Json, received: list[Json]) -> AsyncIterator[str]:
    """The base URL of a provider that answers by the script, and keeps the bodies that it receives."""

    async def answer(request: web.Request) -> web.Response:
        received.append(body := await request.json())
        said = {"index": 0, "message": {"role": "assistant", "content": _model(talk, body)}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(await request.read()) // CHARS_PER_TOKEN, "completion_tokens": 1}
        return web.json_response(
            {"object": "chat.completion", "model": body["model"], "choices": [said], "usage": usage}
        )

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _proxy(upstream_url: str, folder: Path) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """The real app on a free port of loopback: its base URL and its task."""
    from palimpsest.app import create_app  # late: `--help` must not wait for it

    policy = Policy(
        data=folder,
        listen=ListenPolicy(port=0),
        upstreams=(UpstreamPolicy(url=upstream_url),),
        tenants=TenantPolicy(static=TENANT),
        memory=MemoryPolicy(deadline_ms=DEADLINE_MS),
        model=ModelPolicy(download="never"),
        log=LogPolicy(level="error"),
    )
    logs.configure(policy.log)
    config = uvicorn.Config(
        create_app(policy), http="palimpsest.edge.http:Connection", log_config=None, access_log=False, ws="none"
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:  # whoever connects before uvicorn is up waits here
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", serving
        finally:
            server.should_exit = True
            await serving


async def _ask(http: aiohttp.ClientSession, received: list[Json], messages: list[Json], memory: str = "on") -> Outcome:
    """Send messages through the proxy: what reached the model, the answer, and the headers."""
    body = {"model": MODEL, "messages": messages}
    async with http.post("/v1/chat/completions", json=body, headers={"x-palimpsest-memory": memory}) as response:
        answer = await response.json()
        reached = received[-1]["messages"]
        return Outcome(reached, answer["choices"][0]["message"]["content"], dict(response.headers))


async def _get(http: aiohttp.ClientSession, path: str, **query: str) -> Json:
    async with http.get(path, params=query) as response:
        answer: Json = await response.json()
        return answer


async def _indexed(http: aiohttp.ClientSession) -> None:
    """Wait until all passages have vectors, unless the model turns out to be broken."""
    with suppress(TimeoutError):
        async with asyncio.timeout(INDEX_WAIT_SECONDS):
            while (await _get(http, "/readyz"))["pending"] != 0:  # noqa: ASYNC110 (all there is)
                await asyncio.sleep(LOOK_SECONDS)


def picture(played: DemoRun) -> RenderableType:
    """The results as one page on a terminal."""
    talk = played.talk
    facts = [re.compile(pattern) for pattern in talk["patterns"].values()]
    sides = Table.grid(expand=True, padding=(0, 0))
    sides.add_column(ratio=2)
    sides.add_column(ratio=3)
    sides.add_row(
        _side("without memory", played.without, facts, "red"),
        _side("with palimpsest", played.with_memory, facts, "green"),
    )
    return Group(
        Text(f"1. A coding session of {len(talk['turns'])} turns, {played.characters:,} characters, passes through."),
        Text("2. The window is full, and the client replaces the session by two sentences of summary."),
        Text(f"3. The user asks: {talk['question']}"),
        sides,
        _why(played),
        Rule("for real", align="left", style="dim"),
        Text("palimpsest serve", style="bold"),
        Text("export OPENAI_BASE_URL=http://127.0.0.1:8484/v1", style="bold"),
        Text("The model of this demo is a script that repeats what it is shown; all the rest was real.", style="dim"),
    )


def _side(title: str, seen: Outcome, facts: list[re.Pattern[str]], colour: str) -> RenderableType:
    """A panel with the request as the model saw it, and the answer."""
    lines: list[RenderableType] = []
    for message in seen.messages:
        for piece in BLOCK.split(message["content"]):
            if BLOCK.match(piece):
                lines += _block(piece, facts)
            elif piece.strip():
                lines.append(Text.assemble((message["role"], "dim"), " ", terminal.excerpt(piece, SHOWN_CHARS)))
    answer = Text.assemble(("it answers: ", "dim"), (seen.answer, f"bold {colour}"))
    return Panel(Group(*lines, Text(), answer), title=f"what the model saw {title}", border_style=colour)


def _block(block: str, facts: list[re.Pattern[str]]) -> Iterator[RenderableType]:
    """The restored block: its frame, the lines with what was asked for, and the number of the others."""
    lines = [line for line in block.splitlines() if line.strip()]
    telling = [line for line in lines[1:-1] if any(fact.search(line) for fact in facts)]
    shown = [lines[0], *telling, f"… {len(lines) - 2 - len(telling)} more lines", lines[-1]]
    for line in shown:
        text = terminal.safe(" ".join(line.split()))
        for fact in facts:
            text.highlight_regex(fact, style="bold black on yellow")
        yield Padding(text, (0, 0, 0, 2), style="yellow")


def _why(played: DemoRun) -> RenderableType:
    """A table of event, gate, budget, and the best candidates with their signals."""
    why, block = played.why, played.why["block"]
    rows = [("event", f"{why['event']}: {'; '.join(why['evidence'])}")]
    rows.append(("gate", f"open: {why['gate']['reason']}"))
    rows.append(("block", f"{block['chars']:,} of {why['budget']['chars']:,} characters, {block['tokens']:,} tokens"))
    if why["lexical_only"]:
        rows.append(("model", "missing: searched by words alone; palimpsest model install fetches it"))
    table = Table("best found", "score", *SIGNALS, "", box=None, padding=(0, 1))
    # what is quoted without being asked for, such as the user's wishes, has no rank worth showing
    found = sorted(why["candidates"], key=lambda one: min(rank or inf for rank, _ in _signals(one)))
    for candidate in found[:SHOWN_CANDIDATES]:
        ranks = [f"{rank} ({score:.2f})" if rank else "" for rank, score in _signals(candidate)]
        text = terminal.excerpt(played.texts.get(candidate["memory"], ""), 52)
        table.add_row(text, f"{candidate['score']:.2f}", *ranks, "packed" if candidate["packed"] else "cut")
    return Panel(Group(terminal.fields(rows), table), title="why", border_style="blue")


def _signals(candidate: Json) -> list[Any]:
    return [candidate["signals"].get(name, (0, 0.0)) for name in SIGNALS]
