"""
The clients of an endurance run: conversations that stream, cancel, compact and ask on the side, and never give up.

A request that fails is sent again as it was, as clients of providers do, and counted.
"""

from __future__ import annotations

import http.client
import random
import select
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import orjson
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.ledger import Ledger, is_whole
from tests.running import PATIENCE_SECONDS, Answered, Conversation, Proxy, as_headers

TEXT = """
archive broker ledger invoice harbour lantern meadow quarry saddle timber valley window anchor bridge candle dragon
ember falcon garden hammer island jacket kettle ladder marble needle orchard pepper ribbon shelter tunnel umbrella
"""
WORDS = TEXT.split()
COMPACT_MESSAGES = 14
KEPT_MESSAGES = 4
TURNS_OF_TALK = 30
THINK_SECONDS = 0.02  # someone who types is slower: what is looked for is collisions
RETRY_SECONDS = 0.25
PACE_SECONDS = 0.01  # between two pieces of an answer, of which there are some eight
MOST_RECEIVED = 500  # requests that the upstream keeps: it would grow for as long as the run lasts

_numbers = count(1)


def phrase(words: int = 14) -> str:
    return " ".join(random.choice(WORDS) for _ in range(words))


def answering(upstream: ScriptedUpstream, pace_seconds: float = PACE_SECONDS) -> None:
    """Let the upstream answer each request with a text that it never says again."""

    def answer(body: Json) -> Reply:
        if len(upstream.received) > MOST_RECEIVED:
            upstream.received.clear()
        return Reply(f"Answer {next(_numbers)} is this: {phrase(20)}.", pace_seconds=pace_seconds)

    upstream.script = answer


@dataclass
class Tally:
    """What became of requests, over all clients."""

    counts: Counter[str] = field(default_factory=Counter)
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def add(self, what: str, number: int = 1) -> None:
        with self._counting:
            self.counts[what] += number


class Worker(Protocol):
    """A thread that works until it is told that it is over."""

    over: threading.Event

    def start(self) -> None: ...

    def join(self) -> None: ...


class Client(threading.Thread):
    """One person with one conversation after another, until `over` is set; waits while `paused` is set."""

    def __init__(
        self,
        proxy: Proxy,
        name: str,
        ledger: Ledger,
        tally: Tally,
        *,
        think_seconds: float = THINK_SECONDS,
        keeps: bool = False,
        talk_turns: int = TURNS_OF_TALK,
        compact_messages: int = COMPACT_MESSAGES,
    ) -> None:
        """
        Args:
            think_seconds: mean of the time between an answer and the next question.
            keeps: whether connections are kept for the next request.
            talk_turns: of a conversation; then the client begins a new one.
            compact_messages: a client that has more keeps its last four, behind a summary.
        """
        super().__init__(name=name, daemon=True)
        self.proxy, self.ledger, self.tally = proxy, ledger, tally
        self.over, self.paused, self.rests = threading.Event(), threading.Event(), threading.Event()
        self._think_seconds = think_seconds
        self._talk_turns = talk_turns
        self._compact_messages = compact_messages
        self._kept = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=PATIENCE_SECONDS) if keeps else None
        self._random = random.Random(name)
        self._turns = 0
        self._began_anew = 0

    def run(self) -> None:
        self._begin()
        while not self.over.is_set():
            if self.paused.is_set():
                self.rests.set()
                self.over.wait(RETRY_SECONDS)
                continue
            self.rests.clear()
            self._step()
            self.over.wait(self._random.expovariate(1 / self._think_seconds) if self._think_seconds else 0)
        if self._kept is not None:
            self._kept.close()

    def _begin(self) -> None:
        self._began_anew += 1
        self._turns = 0
        self.talk = Conversation(
            self.proxy,
            f"sk-{self.name}",
            headers={"x_palimpsest_user": self.name},
            extra={"stream": True, "stream_options": {"include_usage": True}},
        )

    def _step(self) -> None:
        if self._turns >= self._talk_turns:
            self._begin()
        self._turns += 1
        if self._turns % 7 == 3:
            self._cancel()
        if self._turns % 10 == 5:
            self._ask_aside()
        if len(self.talk.messages) > self._compact_messages:
            self.talk.keep_last(KEPT_MESSAGES, f"They spoke of {phrase()} and then of {phrase()}.")
            self.tally.add("compactions")
        self.talk.extra["stream"] = self._turns % 5 != 0
        self._say(f"Turn {self._turns} of {self.name} in talk {self._began_anew}, number {next(_numbers)}: {phrase()}?")

    def _say(self, asked: str) -> None:
        """Ask until it is answered whole."""
        self.talk.messages.append({"role": "user", "content": asked})
        while not self.over.is_set():
            answered = self._sent(self.talk.body())
            if answered is not None:
                self.talk.messages.append({"role": "assistant", "content": answered.text})
                self.ledger.write(f"{self.name}/{self._began_anew}", asked, answered)
                self.tally.add("answered")
                return
            self.over.wait(RETRY_SECONDS)

    def _sent(self, body: Json) -> Answered | None:
        """The answer, or None where it did not come whole."""
        try:
            if self._kept is not None:
                answered = self._over_kept(self._kept, body)
            else:
                answered = self.proxy.chat(body, self.talk.key, **self.talk.headers)
        except (OSError, http.client.HTTPException):
            self.tally.add("refused")
            return None
        self.tally.add(f"{answered.status // 100}xx")
        if note := answered.said("note"):
            self.tally.add(f"note {note}")
        if is_whole(answered):
            return answered
        self.tally.add("cut" if answered.status == 200 else "failed")
        return None

    def _over_kept(self, connection: http.client.HTTPConnection, body: Json) -> Answered:
        """An answer over the connection of the request before, unless the proxy has closed it since."""
        if connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
            connection.close()
        headers = as_headers(self.talk.key, self.talk.headers)
        try:
            connection.request("POST", "/v1/chat/completions", orjson.dumps(body), headers)
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, names, response.read())
        except (OSError, http.client.HTTPException):
            connection.close()
            raise

    def _cancel(self) -> None:
        """Ask, hear a little of the answer, and leave; the question is never asked again."""
        question = {"role": "user", "content": f"Never mind number {next(_numbers)}: {phrase()}?"}
        body = orjson.dumps(self.talk.body(question) | {"stream": True})
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=PATIENCE_SECONDS)
        try:
            headers = as_headers(self.talk.key, self.talk.headers)
            connection.request("POST", "/v1/chat/completions", body, headers)
            connection.getresponse().read(self._random.choice((0, 40, 400)))
            self.tally.add("cancelled")
        except (OSError, http.client.HTTPException):
            self.tally.add("refused")
        finally:
            connection.close()

    def _ask_aside(self) -> None:
        """What interfaces do beside a conversation: a title for it."""
        said = "\n".join(f"{m['role'].title()}: {m['content']}" for m in self.talk.messages[:4])
        prompt = f"Generate a concise title of 3-5 words for this chat history.\n\n{said}"
        self._sent({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}]})
        self.tally.add("side requests")


@contextmanager
def at_work(workers: Sequence[Worker]) -> Iterator[None]:
    """Let these work, and end them."""
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.over.set()
        for worker in workers:
            worker.join()


@contextmanager
def paused(clients: list[Client]) -> Iterator[None]:
    """A moment in which none of these clients waits for an answer."""
    for client in clients:
        client.paused.set()
    for client in clients:
        client.rests.wait(PATIENCE_SECONDS)
    try:
        yield
    finally:
        for client in clients:
            client.rests.clear()
            client.paused.clear()


def seconds_since(started: float) -> str:
    return f"{time.monotonic() - started:.0f}"
