"""
The language model of a benchmark that needs one: any that speaks chat completions.

`--model` names it, `--upstream` says where it is asked (default: where the proxy would), and the key, if it takes one,
is in the environment. Nothing asks a model unless one is named.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import orjson

from palimpsest.domain import Json
from palimpsest.domain.errors import UpstreamUnreachable, faults
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.upstream.passthrough import Passthrough

KEY_ENV = "OPENAI_API_KEY"  # where every OpenAI-compatible client looks for it
TARGET = "/v1/chat/completions"
REPLY_TOKENS = 2048  # LANTERN 4.5: of one extraction; more than any other call here needs
AT_ONCE = 8  # calls under way: any provider takes so many
TRIES = 3  # small servers close a connection after some requests, perhaps just as one is sent
HEADERS = ((b"content-type", b"application/json"), (b"accept-encoding", b"identity"))
BUSY_SECONDS = 60.0  # several runs may share the file of answers
TABLE = "CREATE TABLE IF NOT EXISTS answer(prompt TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"


class Model(Protocol):
    """Text in, text out."""

    async def complete(self, prompt: str, max_tokens: int = REPLY_TOKENS) -> str:
        """
        Let the model answer a prompt.

        Raises:
            UpstreamUnreachable: no answer, or none that can be read.
        """


class ChatModel:
    """One chat completion a call, temperature 0. The same messages are asked once in a run; with a cache, once."""

    def __init__(
        self,
        passthrough: Passthrough,
        upstream: UpstreamPolicy,
        name: str,
        cache: sqlite3.Connection | None = None,
    ) -> None:
        self.name = name
        self.calls = 0
        self._passthrough = passthrough
        self._upstream = upstream
        self._answers: dict[str, str] = {}
        self._cache = cache
        self._free = asyncio.Semaphore(AT_ONCE)

    async def complete(self, prompt: str, max_tokens: int = REPLY_TOKENS) -> str:
        """See `Model`."""
        return await self.answer([{"role": "user", "content": prompt}], max_tokens)

    async def answer(
        self, messages: Sequence[Json], max_tokens: int = REPLY_TOKENS, response_format: Json | None = None
    ) -> str:
        """
        Let the model answer chat messages; "" where it says nothing.

        Args:
            response_format: as chat completions take it; None: any text.

        Raises:
            UpstreamUnreachable: no answer, or none that can be read.
        """
        form = {"response_format": response_format} if response_format else {}
        asked = {"model": self.name, "messages": messages, "temperature": 0, "max_tokens": max_tokens}
        body = orjson.dumps(asked | form)
        prompt = hashlib.sha256(self._upstream.url.encode() + b" " + body).hexdigest()
        if (known := self._known(prompt)) is not None:
            return known
        async with self._free:
            self._answers[prompt] = answer = await self._ask(body)
        if self._cache is not None:
            with self._cache:
                self._cache.execute("INSERT OR REPLACE INTO answer VALUES (?, ?)", (prompt, answer))
        return answer

    def _known(self, prompt: str) -> str | None:
        """The answer to a prompt from the cache; None: it was not asked."""
        if prompt in self._answers or self._cache is None:
            return self._answers.get(prompt)
        row = self._cache.execute("SELECT text FROM answer WHERE prompt = ?", (prompt,)).fetchone()
        return None if row is None else str(row[0])

    async def _ask(self, body: bytes) -> str:
        """Ask the model, and return the text of its answer."""
        self.calls += 1
        status, said = await self._sent(body)
        doing = f"asking {self.name} at {self._upstream.url}"
        if status != 200:
            raise UpstreamUnreachable(f"{doing}: it answers with status {status}; check the name and {KEY_ENV}")
        try:
            return str(orjson.loads(said)["choices"][0]["message"]["content"] or "")
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as cause:
            raise UpstreamUnreachable(f"{doing}: the answer is not a chat completion; check --upstream") from cause

    async def _sent(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; a connection that breaks is opened anew."""
        for left in reversed(range(TRIES)):
            try:
                sending = self._passthrough.send(self._upstream, "POST", TARGET, HEADERS, body)
                async with aclosing(await sending) as answer:
                    return answer.status, b"".join([piece async for piece in answer])
            except UpstreamUnreachable:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")


def add_arguments(parser: ArgumentParser) -> None:
    """Add `--model` and `--upstream`."""
    parser.add_argument("--model", metavar="NAME", help="a language model, for what needs one (default: none)")
    parser.add_argument("--upstream", metavar="URL", help="where to ask it (default: as the proxy)")


@asynccontextmanager
async def opened(
    given: Namespace, environment: Mapping[str, str] = os.environ, file: Path | None = None
) -> AsyncIterator[ChatModel | None]:
    """
    The model that the arguments name, None where they name none.

    Args:
        file: keeps answers from one run to the next, by address, name and prompt; None: they are not kept.

    Raises:
        MemoryFault: the file cannot be opened.
    """
    if not given.model:
        yield None
        return
    url = given.upstream or UpstreamPolicy().url
    held = {"auth": "held", "key_env": KEY_ENV} if environment.get(KEY_ENV) else {}
    upstream = UpstreamPolicy.model_validate({"url": url, **held})
    with _kept(file) if file else nullcontext() as cache:
        async with Passthrough([upstream], environment) as passthrough:
            yield ChatModel(passthrough, upstream, given.model, cache)


@contextmanager
def _kept(file: Path) -> Iterator[sqlite3.Connection]:
    """The cache of answers."""
    with faults((OSError, sqlite3.Error), f"opening the cache of answers {file}"):
        file.parent.mkdir(parents=True, exist_ok=True)
        cache = sqlite3.connect(file, timeout=BUSY_SECONDS)
    with closing(cache), faults(sqlite3.Error, f"using the cache of answers {file}; it may be deleted"):
        cache.execute(TABLE)
        yield cache
