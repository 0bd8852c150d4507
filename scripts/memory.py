#!/usr/bin/env python3
"""
Resident memory of a running proxy, process by process: after the start, under load, and once it has nothing to do.

    scripts/memory.py [--turns N]

The load is N turns of conversations that grow and are compacted, with 8 clients at once and a scripted upstream. Linux
alone says how much of it is shared; the figure is the proportional set size, in which shared pages count in part.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from palimpsest.evaluation.scripted import ScriptedUpstream

ROOT = Path(__file__).parent.parent
TURNS = 400
CLIENTS = 8
TURNS_PER_CONVERSATION = 20  # then the client begins anew
COMPACT_MESSAGES = 12  # a client that has more keeps the last four
KEPT_MESSAGES = 4
WORDS = [
    "archive",
    "broker",
    "ledger",
    "invoice",
    "harbour",
    "lantern",
    "meadow",
    "quarry",
    "saddle",
    "timber",
    "valley",
    "window",
]
LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 300.0
REST_SECONDS = 70.0  # longer than the process that embeds passages is kept without work
KILOBYTES_PER_MEGABYTE = 1000


def megabytes(process: int) -> float:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.M)
    return int(found[1]) * 1.024 / KILOBYTES_PER_MEGABYTE if found else 0.0


def family(process: int) -> Iterator[int]:
    """A process and all that it started."""
    yield process
    children = Path(f"/proc/{process}/task")
    for task in children.iterdir():
        for child in (task / "children").read_text().split():
            yield from family(int(child))


def shown(name: str, process: int) -> str:
    each = [megabytes(one) for one in family(process)]
    return f"{name:12} {sum(each):4.0f} MB   " + " + ".join(f"{one:.0f}" for one in each)


@contextmanager
def proxy(upstream: str, data: str, port: int) -> Iterator[int]:
    command = [sys.executable, "-m", "palimpsest", "serve", "--port", str(port), "--data", data, "--upstream", upstream]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PALIMPSEST_LOG__LEVEL": "error"}) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


async def settled(http: aiohttp.ClientSession) -> None:
    """Wait until the model is loaded and everything is indexed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            async with http.get("/readyz") as answer:
                told = await answer.json()
                if told["pending"] == 0 and told["embedder"] == "ready":
                    return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(LOOK_SECONDS)
    raise SystemExit("the proxy did not become ready")


async def talk(http: aiohttp.ClientSession, client: int, turns: int) -> None:
    messages: list[dict[str, str]] = []
    for turn in range(turns):
        if turn % TURNS_PER_CONVERSATION == 0:
            messages = []
        if len(messages) > COMPACT_MESSAGES:
            messages = messages[-KEPT_MESSAGES:]
        about = " ".join(WORDS[(client * 7 + turn * place) % len(WORDS)] for place in range(1, 60))
        messages.append({"role": "user", "content": f"Question {client}-{turn}: what of {about}?"})
        body = {"model": "gpt-4o", "messages": messages, "user": f"client-{client}"}
        async with http.post("/v1/chat/completions", json=body, headers={"authorization": "Bearer sk-x"}) as answer:
            said = (await answer.json())["choices"][0]["message"]["content"]
        messages.append({"role": "assistant", "content": said})


async def measure(turns: int) -> None:
    upstream = ScriptedUpstream(lambda body: f"Of {len(body['messages'])} messages: " + " ".join(WORDS * 14))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    async with upstream, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
        with tempfile.TemporaryDirectory(prefix="palimpsest-memory-") as data, proxy(upstream.url, data, port) as pid:
            await settled(http)
            sys.stdout.write(shown("started", pid) + "\n")
            await asyncio.gather(*(talk(http, client, turns // CLIENTS) for client in range(CLIENTS)))
            sys.stdout.write(shown("under load", pid) + "\n")
            await settled(http)
            sys.stdout.write(shown("indexed", pid) + "\n")
            await asyncio.sleep(REST_SECONDS)
            sys.stdout.write(shown("at rest", pid) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="The memory that a running proxy takes.")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help=f"of the load ({TURNS})")
    asyncio.run(measure(parser.parse_args().turns))


if __name__ == "__main__":
    main()
