"""The link to the machine that keeps the memory: one question at a time is asked over HTTP, and answered or not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Self

import orjson

from palimpsest.domain.errors import UpstreamUnreachable
from palimpsest.remote.courier import Away, Denied, Unacceptable
from palimpsest.settings.load import SERVER_KEY_ENV, server_key
from palimpsest.settings.policy import Policy, ServerPolicy, UpstreamPolicy
from palimpsest.upstream.passthrough import Passthrough
from palimpsest.wire.json_body import object_in

PATH = "/memory/v1/link"
CONNECT_SECONDS = 1.0  # a handshake across a continent takes less; the first request waits so long for a dead box
ANSWER_SECONDS = 2.0  # the deadline there is a quarter of a second; the rest is for a long history on a slow line
BRING_SECONDS = 30.0  # nobody waits for it

NOT_ONE = "no palimpsest answers there that keeps memory for others; check the address, and its version"
WRONG_KEY = "it does not accept this key; make one on that machine: palimpsest key create NAME"


class Link:
    """An async context manager. Every method raises `Away` or `Denied`. Without a key ("") none is shown."""

    def __init__(self, server: ServerPolicy, key: str, environment: Mapping[str, str]) -> None:
        self.url = server.url.rstrip("/")
        self._to = UpstreamPolicy(
            name="server",
            url=self.url,
            auth="held",
            key_env=SERVER_KEY_ENV if key else "",
            connect_timeout_seconds=CONNECT_SECONDS,
        )
        self._way = Passthrough([self._to], {**environment, SERVER_KEY_ENV: key})

    async def __aenter__(self) -> Self:
        await self._way.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._way.__aexit__(*failure)

    async def look(self) -> str:
        """The tenant that our memory is there; "": that of programs on that machine."""
        try:
            return str(orjson.loads(await self._ask("GET", PATH, b"", ANSWER_SECONDS))["tenant"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as wrong:
            raise Denied(f"{self.url}: {NOT_ONE}") from wrong

    async def prepare(self, turn: str, envelope: bytes) -> bytes:
        """What is to be added to a request, as the other machine seals it."""
        return await self._ask("POST", f"{PATH}/{turn}", envelope, ANSWER_SECONDS)

    async def bring(self, turn: str, envelope: bytes) -> None:
        """Have a turn archived; when this returns, it is on the disk there. `Unacceptable`: it never will be."""
        await self._ask("PUT", f"{PATH}/{turn}", envelope, BRING_SECONDS)

    async def _ask(self, method: str, target: str, body: bytes, seconds: float) -> bytes:
        headers = [(b"content-type", b"application/x-palimpsest")] if body else []
        try:
            async with asyncio.timeout(seconds):
                async with aclosing(await self._way.send(self._to, method, target, headers, body)) as answer:
                    said = b"".join([data async for data in answer])
        except TimeoutError as late:
            raise Away(f"{self.url}: it has not answered for {seconds:g} s") from late
        except UpstreamUnreachable as broken:
            raise Away(f"{self.url}: {str(broken).partition('; ')[0].rpartition(': ')[2]}") from broken
        match answer.status:
            case HTTPStatus.OK:
                return said
            case HTTPStatus.UNAUTHORIZED:
                raise Denied(f"{self.url}: {WRONG_KEY}")
            case HTTPStatus.FORBIDDEN:
                raise Denied(f"{self.url}: {_words(said) or WRONG_KEY}")
            case HTTPStatus.BAD_REQUEST | HTTPStatus.REQUEST_ENTITY_TOO_LARGE | HTTPStatus.UNPROCESSABLE_ENTITY:
                raise Unacceptable(f"{self.url}: {_words(said) or answer.status}")
            case status if status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS:
                raise Denied(f"{self.url}: {NOT_ONE}")
            case status:
                raise Away(f"{self.url}: it answers with status {status}")


def tenant_at(policy: Policy, environment: Mapping[str, str]) -> str:
    """The tenant of this policy's key on the machine that keeps the memory; raises as `Link.look`."""

    async def look() -> str:
        async with Link(policy.server, server_key(policy, environment), environment) as link:
            return await link.look()

    return asyncio.run(look())


def _words(said: bytes) -> str:
    """Why it refused, where it says so in the shape of our errors."""
    problem = object_in(said).get("error", "")
    return str(problem.get("message", "") if isinstance(problem, dict) else problem)
