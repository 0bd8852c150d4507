"""
Which language model writes or reads, where a benchmark needs one? Any that speaks chat completions.

`--model` names it, `--upstream` says where it is asked (default: where the proxy would), and the key, if it takes one,
is in the environment. Nothing asks a model unless one is named.
"""

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

import orjson

from proxy.errors import UpstreamUnreachable
from proxy.policy import UpstreamPolicy
from proxy.upstream.passthrough import Passthrough

KEY_ENV = "OPENAI_API_KEY"  # where every OpenAI-compatible client looks for it
TARGET = "/v1/chat/completions"
REPLY_TOKENS = 2048  # LANTERN 4.5: of one extraction; more than any other call here needs
AT_ONCE = 8  # calls under way: any provider takes so many
HEADERS = ((b"content-type", b"application/json"), (b"accept-encoding", b"identity"))


class Model(Protocol):
    """Text in, text out."""

    async def complete(self, prompt: str, max_tokens: int = REPLY_TOKENS) -> str:
        """
        Raises:
            UpstreamUnreachable: no answer, or none that can be read.
        """


class ChatModel:
    """One chat completion a call, temperature 0. The same prompt is asked once in a run."""

    def __init__(self, passthrough: Passthrough, upstream: UpstreamPolicy, name: str) -> None:
        self.name = name
        self.calls = 0
        self._passthrough = passthrough
        self._upstream = upstream
        self._answers: dict[tuple[str, int], str] = {}
        self._free = asyncio.Semaphore(AT_ONCE)

    async def complete(self, prompt: str, max_tokens: int = REPLY_TOKENS) -> str:
        """See `Model`."""
        asked = (prompt, max_tokens)
        if asked not in self._answers:
            async with self._free:
                self._answers[asked] = await self._ask(prompt, max_tokens)
        return self._answers[asked]

    async def _ask(self, prompt: str, max_tokens: int) -> str:
        self.calls += 1
        message = {"role": "user", "content": prompt}
        body = {"model": self.name, "messages": [message], "temperature": 0, "max_tokens": max_tokens}
        sending = self._passthrough.send(self._upstream, "POST", TARGET, HEADERS, orjson.dumps(body))
        async with aclosing(await sending) as answer:
            said = b"".join([piece async for piece in answer])
        doing = f"asking {self.name} at {self._upstream.url}"
        if answer.status != 200:
            raise UpstreamUnreachable(f"{doing}: it answers with status {answer.status}; check the name and {KEY_ENV}")
        try:
            return str(orjson.loads(said)["choices"][0]["message"]["content"] or "")
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as cause:
            raise UpstreamUnreachable(f"{doing}: the answer is no chat completion; check --upstream") from cause


def add_arguments(parser: ArgumentParser) -> None:
    """`--model` and `--upstream`."""
    parser.add_argument("--model", metavar="NAME", help="a language model, for what needs one (default: none)")
    parser.add_argument("--upstream", metavar="URL", help="where to ask it (default: as the proxy)")


@asynccontextmanager
async def opened(given: Namespace, environment: Mapping[str, str] = os.environ) -> AsyncIterator[ChatModel | None]:
    """The model that was asked for, None where none was."""
    if not given.model:
        yield None
        return
    url = given.upstream or UpstreamPolicy().url
    held = {"auth": "held", "key_env": KEY_ENV} if environment.get(KEY_ENV) else {}
    upstream = UpstreamPolicy.model_validate({"url": url, **held})
    async with Passthrough([upstream], environment) as passthrough:
        yield ChatModel(passthrough, upstream, given.model)
