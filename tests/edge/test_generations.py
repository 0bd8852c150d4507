"""A request ends with the generation that it began with, and what that one used is closed behind its last request."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from palimpsest.edge.generations import Generation, Generations
from starlette.types import Receive, Scope, Send


class Kept:
    """A generation that says its name at the end of each request, and when it is closed."""

    def __init__(self, name: str, told: list[str], fails: bool = False) -> None:
        self.name, self.told, self.fails = name, told, fails
        self.let = asyncio.Event()
        self.generation = Generation(self.app, self.give_up, self.close)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.let.wait()
        self.told.append(f"{scope['path']} by {self.name}")

    async def give_up(self) -> None:
        self.told.append(f"{self.name} gives up")

    async def close(self) -> None:
        self.told.append(f"{self.name} closed")
        if self.fails:
            raise RuntimeError("it fails")


async def nothing() -> MutableMapping[str, Any]:
    return {}


async def nowhere(message: MutableMapping[str, Any]) -> None:
    raise AssertionError(message)


def ask(generations: Generations, path: str) -> asyncio.Task[None]:
    async def work() -> None:
        await generations({"path": path, "type": "http"}, nothing, nowhere)

    return asyncio.create_task(work())


async def test_a_request_ends_with_what_it_began_with() -> None:
    told: list[str] = []
    one, two = Kept("one", told), Kept("two", told)
    generations = Generations(one.generation)
    early = ask(generations, "early")
    await asyncio.sleep(0)
    generations.replace(two.generation)
    two.let.set()
    await ask(generations, "late")
    assert told == ["late by two"], repr(generations)
    one.let.set()
    await early
    await asyncio.sleep(0.01)
    assert told == ["late by two", "early by one", "one closed"]


async def test_one_without_requests_is_closed_at_once_and_only_once() -> None:
    told: list[str] = []
    one, two = Kept("one", told), Kept("two", told)
    generations = Generations(one.generation)
    generations.replace(two.generation)
    await asyncio.sleep(0.01)
    assert told == ["one closed"]
    await generations.close()
    assert told == ["one closed", "two gives up", "two closed"]


async def test_the_end_closes_all_of_them_whatever_fails() -> None:
    told: list[str] = []
    one, two = Kept("one", told, fails=True), Kept("two", told)
    generations = Generations(one.generation)
    running = ask(generations, "x")
    await asyncio.sleep(0)
    generations.replace(two.generation)
    await generations.close()
    assert set(told) == {"one gives up", "two gives up", "one closed", "two closed"}
    running.cancel()
