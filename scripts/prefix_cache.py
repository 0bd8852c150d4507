"""
The cost of blocks for the provider's prefix cache: the share of each prompt that repeats the prompt before it.

python scripts/prefix_cache.py DATA.jsonl[.gz] [--conversations N] [--turns N]

Replays conversations (JSON Lines: `sessions` of `messages` with `role` and `content`) as one client that compacts its
history, twice: straight to a scripted upstream, and through the proxy with a user id, so that later conversations
recall earlier ones. Counts characters of the messages as the upstream got them; requests that compact are left out, as
nothing could be cached there. No time is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from aiohttp import web

KEPT_MESSAGES = 4  # that stand after a compaction
MESSAGE_CHARS = 4000  # of one message: pasted files beyond say nothing new about prefixes
SUMMARY = "Summary of the conversation so far: several things were looked at, decided and done. Please go on from here."


class Upstream:
    """Answers with the line it is told, and keeps what it got."""

    def __init__(self) -> None:
        self.reply = ""
        self.got = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.got = "".join(json.dumps(message, ensure_ascii=False, sort_keys=True) for message in body["messages"])
        said = {"role": "assistant", "content": self.reply}
        return web.json_response({"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]})


class Tally:
    """Characters sent, characters that repeat the prompt before, and what was added."""

    def __init__(self) -> None:
        self.sent = self.repeated = self.turns = self.new = self.carrying = self.tokens = 0

    def __str__(self) -> str:
        share = 100 * self.repeated / max(self.sent, 1)
        blocks = f"{self.turns} turns: {self.new} got a new block, {self.carrying} carried one"
        return f"{share:6.2f} %   {blocks}, {self.tokens} tokens added in all"


def conversations(path: Path, limit: int) -> Iterator[list[dict[str, str]]]:
    """Human and assistant texts in turns; neighbours of one role are joined, as a chat client would send them."""
    with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else nullcontext(raw) as lines:
        for line in lines:
            told: list[dict[str, str]] = []
            for message in (m for session in json.loads(line)["sessions"] for m in session["messages"]):
                role, text = message["role"], (message.get("content") or "")[:MESSAGE_CHARS]
                if role not in ("user", "assistant") or not text.strip():
                    continue
                if told and told[-1]["role"] == role:
                    told[-1]["content"] += "\n" + text
                elif told or role == "user":
                    told.append({"role": role, "content": text})
            if len(told) >= 2 * (KEPT_MESSAGES + 2):
                yield told
                limit -= 1
                if not limit:
                    return


def shared_start(left: str, right: str) -> int:
    """Characters that both begin with."""
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


async def replay(
    http: aiohttp.ClientSession, url: str, upstream: Upstream, talks: list[list[dict[str, str]]], every: int
) -> Tally:
    tally = Tally()
    for number, talk in enumerate(talks):
        system = {"role": "system", "content": f"You are a careful engineer. Project {number}."}
        history: list[dict[str, str]] = []
        before = ""
        for turn, (asked, answered) in enumerate(zip(talk[::2], talk[1::2], strict=False)):
            compacts = turn > 0 and turn % every == 0
            if compacts:
                history = [{"role": "user", "content": SUMMARY}, *history[-KEPT_MESSAGES:]]
            history.append(asked)
            upstream.reply = answered["content"]
            body: dict[str, Any] = {"model": "gpt-4o", "user": "one", "messages": [system, *history]}
            async with http.post(url, json=body, headers={"authorization": "Bearer sk-bench"}) as response:
                response.raise_for_status()
                await response.read()
                added = int(response.headers.get("x-palimpsest-added-tokens", 0))
                recalled = int(response.headers.get("x-palimpsest-recalled", 0))
            tally.turns += 1
            tally.new += recalled > 0
            tally.carrying += added > 0
            tally.tokens += added
            if before and not compacts:
                tally.sent += len(upstream.got)
                tally.repeated += shared_start(before, upstream.got)
            before = upstream.got
            history.append(answered)
    return tally


@asynccontextmanager
async def proxy(upstream_url: str, data: str) -> AsyncIterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = ["serve", "--port", str(port), "--upstream", upstream_url, "--data", data]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "palimpsest", *command, stderr=asyncio.subprocess.DEVNULL, cwd=Path(__file__).parents[1]
    )
    try:
        async with aiohttp.ClientSession() as http:
            state: dict[str, Any] = {}
            while state.get("embedder") != "ready":
                await asyncio.sleep(0.2)
                try:
                    async with http.get(f"http://127.0.0.1:{port}/readyz") as response:
                        state = await response.json()
                except aiohttp.ClientError:
                    continue
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        await process.wait()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--conversations", type=int, default=15)
    parser.add_argument("--compact-every", type=int, default=6, help="turns between two compactions")
    asked = parser.parse_args()
    talks = list(conversations(asked.data, asked.conversations))
    upstream = Upstream()
    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/v1/chat/completions", upstream.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server: Any = site._server
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as http:
        straight = await replay(http, f"{base}/chat/completions", upstream, talks, asked.compact_every)
        with TemporaryDirectory() as data:
            async with proxy(base, data) as url:
                through = await replay(http, f"{url}/chat/completions", upstream, talks, asked.compact_every)
    await runner.cleanup()
    say = sys.stdout.write
    say(f"{len(talks)} conversations, share of prompt characters that repeat the prompt before, between compactions\n")
    say(f"straight      {straight}\nthrough       {through}\n")


if __name__ == "__main__":
    asyncio.run(main())
