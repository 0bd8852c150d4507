"""
Locust users: each is a client with one conversation, which it sends whole each time.

ROWS=rows.jsonl PACE_SECONDS=0.3 locust --headless -f locustfile.py -H http://127.0.0.1:8484 -u 8 -t 30s

Every request becomes a line of ROWS: when it was sent, its kind, whether streamed, milliseconds to the first byte of
the answer's body and to its end, memories recalled (as the proxy says), blocks in the request (as the upstream saw
them).
"""

from __future__ import annotations

import itertools
import json
import os
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any

from locust import FastHttpUser, task
from talk import MESSAGES_AFTER_CUT, Talk

PACE_SECONDS = float(os.environ["PACE_SECONDS"])
FIRST_TALK = int(os.environ.get("FIRST_TALK", "0"))  # another number, another conversation
CLIENTS = int(os.environ["CLIENTS"])
SIZE = int(os.environ.get("SIZE", MESSAGES_AFTER_CUT))
HEADERS = {"content-type": "application/json", "authorization": "Bearer sk-bench", "accept-encoding": "identity"}

STARTED = perf_counter()
numbers = itertools.count(FIRST_TALK)
rows = Path(os.environ["ROWS"]).open("w", buffering=1)  # noqa: SIM115  never closed


class Client(FastHttpUser):
    def on_start(self) -> None:
        number = next(numbers)
        self.talk = Talk(number, SIZE)
        self.due = STARTED + PACE_SECONDS * (number % CLIENTS) / CLIENTS  # evenly, or all would ask at once and queue

    def wait_time(self) -> float:
        """To the next moment that is this client's, seconds."""
        now = perf_counter()
        self.due += PACE_SECONDS * max(1, ceil((now - self.due) / PACE_SECONDS))
        return self.due - now

    @task
    def turn(self) -> None:
        stream = self.talk.requests % 2 == 1
        body = json.dumps({"model": "gpt-4o", "messages": self.talk.messages, "stream": stream}).encode()
        started = perf_counter()
        answer = self.client.post("/v1/chat/completions", data=body, headers=HEADERS, stream=True, name=self.talk.kind)
        heard = next(answer.iter_content(1, decode_content=False), b"")  # it waits for as many bytes as it is asked for
        first = perf_counter() - started
        heard += b"".join(answer.iter_content(65536, decode_content=False))
        whole = perf_counter() - started
        if answer.status_code != 200:
            raise RuntimeError(f"status {answer.status_code}: {heard[:200]!r}")
        row = {
            "at_s": started - STARTED,
            "kind": self.talk.kind,
            "stream": stream,
            "first_ms": first * 1000,
            "whole_ms": whole * 1000,
            "bytes": len(body),
            "messages": len(self.talk.messages),
            "event": answer.headers.get("x-palimpsest-event", ""),
            "note": answer.headers.get("x-palimpsest-note", ""),
            "recalled": int(answer.headers.get("x-palimpsest-recalled", "0")),
            "blocks": int(answer.headers.get("x-upstream-blocks", "0")),
        }
        rows.write(json.dumps(row) + "\n")
        self.talk.hear(text_of(heard, stream))
        self.talk.next()


def text_of(heard: bytes, stream: bool) -> str:
    if not stream:
        text: str = json.loads(heard)["choices"][0]["message"]["content"]
        return text
    events: list[Any] = [json.loads(line[6:]) for line in heard.splitlines() if line.startswith(b"data: {")]
    return "".join(event["choices"][0]["delta"]["content"] for event in events)
