"""
The selector of recall: orders the best candidates by a cross-encoder or a language model, where the policy has one.

Whoever is too late or fails is not heard: the candidates then stay in the order of their scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from palimpsest.core.recall.selection import KEPT, offered, reordered
from palimpsest.domain import Candidate, Json, Memory, Query, Recalled
from palimpsest.domain.days import day_of
from palimpsest.domain.errors import AssistFault, MemoryFault
from palimpsest.domain.ports import Assistants, Counts, Prompt, object_schema
from palimpsest.features.assist.cross_encoder import CrossEncoder, cross_encoder_folder
from palimpsest.settings.policy import Policy

PACKING_SECONDS = 0.02  # of the time until the deadline that is left for what follows
LEAST_CANDIDATES = 2  # fewer have no order

log = structlog.get_logger()

MESSAGE_CHARS = 2000  # of what is asked
PASSAGE_CHARS = 300  # of each passage: two or three sentences tell what it is about
TOKENS_PER_NUMBER = 4  # digits, comma, space
FRAME_TOKENS = 20  # of the answer, around the numbers

INSTRUCTIONS = """\
You choose what to remind an assistant of. You are given the newest message of a user and numbered passages of earlier
conversations. Name the numbers of the passages that help to answer the message: those that hold the answer or a part of
it first, then those that are needed to understand them. If several say the same, prefer the newer one. Leave out what
is merely about the same topic. Name only numbers that stand there, each once.
"""


class Selector:
    """One per service. Await `close` in the end."""

    def __init__(self, policy: Callable[[], Policy], assistants: Assistants, counts: Counts) -> None:
        self._policy = policy
        self._assistants = assistants
        self._counts = counts
        self._local = LocalJudge()

    @property
    def trouble(self) -> str:
        """Why the selector of the policy cannot be used; "": it can."""
        return self._local.trouble if self._policy().recall.selector == "cross-encoder" else ""

    def prepare(self) -> None:
        """Begin to load what the policy names, so that no request waits for it."""
        policy = self._policy()
        if policy.recall.selector == "cross-encoder":
            name = policy.recall.cross_encoder
            self._local.load(name, cross_encoder_folder(name, policy.model))

    async def loaded(self) -> None:
        """Load what the policy names, and wait until it is there, or cannot be."""
        self.prepare()
        await self._local.loaded()

    async def selected(self, query: Query, recalled: Recalled, deadline: float) -> Recalled:
        """
        The candidates in the order of the selector, or unchanged without one by the deadline (of the loop's clock).
        """
        kind = self._policy().recall.selector
        if kind == "score":
            return recalled
        places = offered(recalled.candidates)
        if len(places) < LEAST_CANDIDATES:
            return recalled
        judged = [recalled.candidates[at] for at in places]
        try:
            async with asyncio.timeout_at(deadline - PACKING_SECONDS):
                chosen = await (self._by_model if kind == "model" else self._by_cross_encoder)(query, judged)
        except AssistFault:  # counted where it happened
            return recalled
        except (MemoryFault, TimeoutError) as failure:
            if kind == "cross-encoder":
                self._counts.fault("select")
                log.warning("candidates stay in the order of their scores", reason=str(failure) or "too late")
            return recalled
        if not chosen:
            return recalled
        reason = f"{recalled.reason}; in the order of recall.selector {kind}"
        return replace(recalled, candidates=reordered(recalled.candidates, places, chosen), reason=reason)

    async def close(self) -> None:
        """End the thread of a cross-encoder."""
        self._local.close()

    async def _by_model(self, query: Query, judged: Sequence[Candidate]) -> Sequence[int]:
        """The indexes of the candidates that a model selects."""
        model = self._assistants.of("selector")
        if model is None:
            return ()
        asked = prompt(query.text, [one.memory for one in judged])
        answer = await model.answer(asked, query.tenant)
        return [number - 1 for number in answer["passages"]]

    async def _by_cross_encoder(self, query: Query, judged: Sequence[Candidate]) -> Sequence[int]:
        scores = await self._local.scores(query.text, [one.memory.text for one in judged])
        return sorted(range(len(scores)), key=lambda index: -scores[index])


class LocalJudge:
    """A cross-encoder on its own thread, for one request at a time; others go without it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "cross-encoder")
        self._chosen: tuple[str, Path] | None = None
        self._loading: asyncio.Future[CrossEncoder] | None = None
        self._asking: asyncio.Future[list[float]] | None = None

    @property
    def trouble(self) -> str:
        """Why the cross-encoder cannot be used; "" if it can, or is being loaded."""
        loading = self._loading
        failure = loading.exception() if loading is not None and loading.done() and not loading.cancelled() else None
        return f"{failure}: candidates stay in the order of their scores" if failure is not None else ""

    def load(self, name: str, folder: Path) -> None:
        """Begin to load a model, unless it is that one."""
        if self._chosen != (name, folder):
            self._chosen = (name, folder)
            self._loading = asyncio.get_running_loop().run_in_executor(self._thread, CrossEncoder, name, folder)
            self._loading.add_done_callback(_looked_at)

    async def loaded(self) -> None:
        """Wait for the model that is being loaded, whatever becomes of it."""
        if self._loading is not None:
            await asyncio.wait((self._loading,))

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """How well each passage answers a question; empty while the model is loaded, broken or busy."""
        loading, asking = self._loading, self._asking
        if loading is None or not loading.done() or self.trouble or (asking is not None and not asking.done()):
            return []
        work = partial(loading.result().scores, question, passages)
        self._asking = asyncio.get_running_loop().run_in_executor(self._thread, work)
        self._asking.add_done_callback(_looked_at)
        return await asyncio.shield(self._asking)  # a thread cannot be cancelled: the next one sees that it works

    def close(self) -> None:
        """End the thread; what it does now is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _looked_at(done: asyncio.Future[Any]) -> None:
    """Take the result of a load, so that a failure nobody waits for is not logged as lost."""
    if not done.cancelled():
        done.exception()


def prompt(message: str, memories: Sequence[Memory]) -> Prompt:
    """The prompt that asks for a ranking of the candidates, which are numbered from 1."""
    lines = [f"[{number}] {_line(memory)}" for number, memory in enumerate(memories, start=1)]
    text = "\n".join([f"The newest message:\n{message[:MESSAGE_CHARS]}\n", "The passages:", *lines])
    most = min(KEPT, len(memories))
    tokens = FRAME_TOKENS + TOKENS_PER_NUMBER * most
    return Prompt("selection", INSTRUCTIONS, text, _selection_schema(len(memories), most), tokens)


def _selection_schema(count: int, most: int) -> Json:
    number = {"type": "integer", "minimum": 1, "maximum": count}
    return object_schema(passages={"type": "array", "items": number, "maxItems": most})


def _line(memory: Memory) -> str:
    """One passage on one line, so that no text of it can be taken for another number's."""
    role, text = " ".join(memory.role.split())[:20], " ".join(memory.text.split())[:PASSAGE_CHARS]
    return f"{day_of(memory.created_at)} {role}: {text}"
