"""A language model that follows a script, asked through the proxy's own way to an upstream."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from palimpsest.domain import Json
from palimpsest.evaluation import model as models
from palimpsest.evaluation.scripted import ScriptedUpstream


@asynccontextmanager
async def asking(answer: Callable[[str], str]) -> AsyncIterator[tuple[models.ChatModel, list[Json]]]:
    """
    The model, and the bodies of the requests that reached it so far.

    Args:
        answer: from the prompt.
    """
    sent: list[Json] = []

    def script(body: Json) -> str:
        sent.append(body)
        return answer(body["messages"][0]["content"])

    async with (
        ScriptedUpstream(script) as upstream,
        models.opened(Namespace(model="scripted", upstream=upstream.url), {}) as model,
    ):
        assert model is not None
        yield model, sent
