#!/usr/bin/env python3
"""
Duration of compactions that the proxy answers, and what they leave of a history.

    scripts/compactions.py [--compactions N] [--messages N ...]

A client works with tools, by the Responses API, against a scripted provider; each of its sessions is compacted by a
trigger, as Codex does it. What it sent before is on the disk by then but for the request before: a session of that
length takes hours. There is no embedding model: no compaction asks it, and to embed all that these sessions say takes
nine tenths of the time. Told are the median and the 95th of 100, as the client sees them: in milliseconds, and as a
ratio to that request, which the provider answers at once and the proxy forwards; and the median processor time of the
serving process (Linux).
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter

import orjson

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "proxy")]

from palimpsest.domain import Json  # noqa: E402

from tests.running import Proxy, as_headers, request, upstream_on_a_thread  # noqa: E402

COMPACTIONS = 100
MESSAGES = (50, 200, 800)  # of a history: some minutes, an hour, a day of an agent's work
PATH = "/v1/responses"
LINES = 40  # of a file that a tool shows: some 2,000 characters


def history(session: int, messages: int) -> list[Json]:
    """One session of work: requests, files read and changed, runs that fail."""
    items: list[Json] = []
    for step in range(messages // 4):
        name, call = f"src/part_{session}/module_{step}.py", f"call_{session}_{step}"
        shown = "\n".join(
            f"def function_{session}_{step}_{line}(value): return value + {line}" for line in range(LINES)
        )
        items += [
            _message("user", f"Now make function_{session}_{step}_3 in {name} raise a TypeError for text."),
            _message("assistant", f"I look at {name} first, then I change it and run the tests of part {session}."),
            {
                "type": "function_call",
                "call_id": call,
                "name": "read",
                "arguments": orjson.dumps({"path": name}).decode(),
            },
            {"type": "function_call_output", "call_id": call, "output": shown},
        ]
    return items


def _message(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def processor_seconds(proxy: Proxy) -> float:
    """Processor time that the threads of the serving process have had."""
    assert proxy.process is not None
    threads = Path(f"/proc/{proxy.process.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


@dataclass
class Measured:
    """Seconds of compactions, of processor time for them and of the requests before, and the bytes of histories."""

    took: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)


def measure(proxy: Proxy, sessions: range, messages: int) -> Measured:
    """Compact so many sessions of this length."""
    told = Measured()
    for session in sessions:
        items, headers = (
            history(session, messages),
            as_headers("sk-bench", {"thread-id": f"bench-{messages}-{session}"}),
        )

        def send(more: Json, items: list[Json] = items, headers: dict[str, str] = headers) -> tuple[Json, float]:
            body = orjson.dumps(
                {"model": "gpt-4o", "tools": [{"type": "function", "name": "read"}], "input": [*items, more]}
            )
            started = perf_counter()
            answered = request(proxy.port, "POST", PATH, body, headers)
            assert answered.status == 200, answered.body
            return answered.json, perf_counter() - started

        for text in ("Go on.", "And then?"):
            asked = _message("user", text)
            answer, seconds = send(asked)
            items += [asked, *answer["output"]]
            if text == "Go on.":
                proxy.settle(vectors=False)
        told.before.append(seconds)
        worked = processor_seconds(proxy)
        compacted, seconds = send({"type": "compaction_trigger"})
        told.took.append(seconds)
        told.worked.append(processor_seconds(proxy) - worked)
        told.left.append(len(orjson.dumps(items)))
        assert compacted["output"][0]["encrypted_content"].startswith("palimpsest.")
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compactions", type=int, default=COMPACTIONS, metavar="N", help="of each length")
    parser.add_argument("--messages", type=int, nargs="+", default=MESSAGES, metavar="N", help="lengths of histories")
    given = parser.parse_args()
    with TemporaryDirectory() as folder, upstream_on_a_thread() as upstream:
        upstream.script = lambda _: "I will, and then I run the tests once more."
        settings = {"memory": {"compaction": "answer"}, "model": {"cache": f"{folder}/no-model"}}
        with Proxy(Path(folder) / "data", upstream.url, settings) as proxy:
            for messages in given.messages:
                told = measure(proxy, range(given.compactions), messages)
                middle, most = _both(told.took)
                ratios = _both([one / other for one, other in zip(told.took, told.before, strict=True)])
                sys.stdout.write(
                    f"{messages} messages, {sum(told.left) // len(told.left):,} bytes: median {middle * 1000:.0f} ms,"
                    f" 95 of 100 within {most * 1000:.0f} ms, {median(told.worked) * 1000:.0f} ms of processor time;"
                    f" {ratios[0]:.1f} and {ratios[1]:.1f} times the request before; load {os.getloadavg()[0]:.1f}\n"
                )
                sys.stdout.flush()


def _both(values: list[float]) -> tuple[float, float]:
    """The median, and what 95 of 100 stay below."""
    cuts = quantiles(values, n=20, method="inclusive")
    return cuts[9], cuts[18]


if __name__ == "__main__":
    main()
