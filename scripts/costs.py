"""
What memory costs: tokens added to each request, what of it comes from the provider's cache, and bytes on the disk.

python -m scripts.costs DATA.jsonl[.gz] [--conversations N] [--compact-at TOKENS] [--user NAME] [--keep FOLDER]

Replays conversations (JSON Lines: `sessions` of `messages`, tool calls and results too) as one client that sends its
whole history with each request and compacts it to a summary and its last messages when the prompt reaches so many
tokens: once straight to a scripted provider, and once through the proxy. The provider keeps prefixes of the newest
prompts, in steps of 128 tokens from 1,024 on, as OpenAI does, and reports what it found there. A token is four
characters here. No time is measured; what is stored is read from the proxy, as is its own receipt.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import statistics
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from aiohttp import web

from scripts.prefix_cache import SUMMARY, proxy, shared_start

CHARS_PER_TOKEN = 4
STEP_TOKENS, LEAST_TOKENS = 128, 1024
KEPT_PROMPTS = 4  # the newest ones; the client talks in one conversation at a time
INDEX_LOOKS = 240  # half a second apart, for passages that have no vector yet; then the disk is said without them
KEPT_MESSAGES = 6  # behind a compaction
CACHED_PRICE = 0.1  # of what is read from the cache: a tenth, at both large providers
SYSTEM = "You are a careful engineer. " + "Follow the rules of the project, and say what you did and why. " * 80


@dataclass
class Provider:
    """Answers with the line it is told, counts the prompt, and keeps the newest ones as its cache."""

    reply: dict[str, Any] = field(default_factory=dict)
    prompts: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_PROMPTS))
    sent_tokens: list[int] = field(default_factory=list)
    cached_tokens: list[int] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        prompt = "".join(json.dumps(message, ensure_ascii=False, sort_keys=True) for message in body["messages"])
        sent = len(prompt) // CHARS_PER_TOKEN
        shared = max((shared_start(prompt, before) for before in self.prompts), default=0) // CHARS_PER_TOKEN
        cached = shared // STEP_TOKENS * STEP_TOKENS if shared >= LEAST_TOKENS else 0
        self.prompts.append(prompt)
        self.sent_tokens.append(sent)
        self.cached_tokens.append(cached)
        usage = {"prompt_tokens": sent, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": cached}}
        return web.json_response(
            {"choices": [{"index": 0, "message": self.reply, "finish_reason": "stop"}], "usage": usage}
        )

    @property
    def price(self) -> float:
        """In tokens that are not cached."""
        return sum(self.sent_tokens) - (1 - CACHED_PRICE) * sum(self.cached_tokens)


def conversations(path: Path, limit: int) -> Iterator[list[dict[str, Any]]]:
    """Messages in the form of Chat Completions, results only behind their calls."""
    with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else nullcontext(raw) as lines:
        for line in lines:
            told: list[dict[str, Any]] = []
            called: set[str] = set()
            for message in (m for session in json.loads(line)["sessions"] for m in session["messages"]):
                kept = {"role": message["role"], "content": message.get("content") or ""}
                if message.get("tool_calls"):
                    kept["tool_calls"] = message["tool_calls"]
                    called |= {call["id"] for call in message["tool_calls"]}
                if message["role"] == "tool":
                    if message.get("tool_call_id") not in called:
                        continue
                    kept["tool_call_id"] = message["tool_call_id"]
                if message["role"] in ("user", "assistant", "tool") and (kept["content"] or "tool_calls" in kept):
                    told.append(kept)
            if sum(m["role"] == "assistant" for m in told) > KEPT_MESSAGES and told[0]["role"] == "user":
                yield told
                limit -= 1
                if not limit:
                    return


def compacted(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A summary and the last messages; never a result without its call."""
    at = max(0, len(history) - KEPT_MESSAGES)
    while at < len(history) and history[at]["role"] == "tool":
        at += 1
    return [{"role": "user", "content": SUMMARY}, *history[at:]]


async def replay(
    url: str, provider: Provider, talks: list[list[dict[str, Any]]], asked: argparse.Namespace
) -> list[int]:
    """Tokens added to each request."""
    added = []
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as http:
        for number, talk in enumerate(talks):
            history: list[dict[str, Any]] = []
            system = {"role": "system", "content": f"{SYSTEM} Project {number}."}
            for message in talk:
                if message["role"] == "assistant" and history and history[-1]["role"] != "assistant":
                    if len(json.dumps(history)) // CHARS_PER_TOKEN > asked.compact_at:
                        history = compacted(history)
                    provider.reply = message
                    body = {"model": "gpt-4o", "messages": [system, *history]} | (
                        {"user": asked.user} if asked.user else {}
                    )
                    async with http.post(url, json=body, headers={"authorization": "Bearer sk-bench"}) as answer:
                        answer.raise_for_status()
                        await answer.read()
                        added.append(int(answer.headers.get("x-palimpsest-added-tokens", 0)))
                history.append(message)
    return added


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--compact-at", type=int, default=40_000, help="tokens of the history")
    parser.add_argument("--user", default="", help="whose conversations they are, so that each reaches the others")
    parser.add_argument("--keep", default="", metavar="FOLDER", help="of the data, for palimpsest stats --cost")
    asked = parser.parse_args()
    talks = list(conversations(asked.data, asked.conversations))
    providers = Provider(), Provider()
    app = web.Application(client_max_size=1 << 28)
    for name, provider in zip(("straight", "through"), providers, strict=True):
        app.router.add_post(f"/{name}/v1/chat/completions", provider.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server: Any = site._server
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await replay(f"{base}/straight/v1/chat/completions", providers[0], talks, asked)
    with nullcontext(asked.keep) if asked.keep else TemporaryDirectory() as data:
        async with proxy(f"{base}/through/v1", data) as url:
            added = await replay(f"{url}/chat/completions", providers[1], talks, asked)
            api = url.replace("/v1", "/memory/v1")
            async with aiohttp.ClientSession() as http:
                for _ in range(INDEX_LOOKS):
                    stored = await (await http.get(f"{api}/stats")).json()
                    if not stored["pending"]:
                        break
                    await asyncio.sleep(0.5)
                (receipt,) = (await (await http.get(f"{api}/costs?by=day&limit=1")).json())["costs"]
    await runner.cleanup()
    _print(len(talks), providers, added, stored, receipt)


def _print(talks: int, providers: tuple[Provider, Provider], added: list[int], stored: Any, receipt: Any) -> None:
    straight, through = providers
    own, most = sum(straight.sent_tokens), sorted(added)[int(0.95 * len(added))]
    say = sys.stdout.write
    say(f"{talks} conversations, {len(added)} requests of {own / len(added):,.0f} tokens as the client sends them\n")
    mean, median = statistics.mean(added), statistics.median(added)
    carrying = sum(one > 0 for one in added) / len(added)
    say(
        f"added to a request: mean {mean:,.0f}, median {median:,.0f}, 95 % up to {most:,}, most {max(added):,} tokens\n"
    )
    repeated, all_added = receipt["repeated_tokens"], max(receipt["added_tokens"], 1)
    say(f"{carrying:.0%} of requests carry something; {repeated / all_added:.0%} of it are blocks of before\n")
    say(f"all that is added: {all_added / receipt['own_tokens']:.2%} of what the client sends\n")
    for name, provider in (("straight", straight), ("through", through)):
        share = sum(provider.cached_tokens) / sum(provider.sent_tokens)
        say(f"{name:9} {share:.1%} of the prompts from the cache, price {provider.price:,.0f} tokens\n")
    say(f"price through the proxy: {through.price / straight.price - 1:+.2%}\n")
    say(f"rebuilds: {json.dumps(receipt['rebuilds'])}, tokens {json.dumps(receipt['rebuilt_tokens'])}\n")
    say(f"on the disk: {stored['bytes'] / stored['messages']:,.0f} bytes a message, {stored['messages']:,} messages; ")
    say(f"{stored['memories']:,} passages, {stored['pending']:,} of them without a vector yet\n")


asyncio.run(main())
