#!/usr/bin/env python3
"""
Processor time of a request in the proxy: without traces, with traces that are only passed on, and with all of them
sent.

    scripts/tracing.py [--rounds N] [--before FOLDER]

The proxies take turns with the same requests, and what is told are medians of ratios to the first: what else the
machine does meets all of them, and processor time hardly notices. `--before` adds another checkout. Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from subprocess import Popen
from tempfile import TemporaryDirectory

import aiohttp

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "scripts" / "overhead")]

from startup import free_port, is_alive  # noqa: E402
from talk import Talk, reply_to  # noqa: E402

from tests.telemetry.tracing.collector import collector  # noqa: E402

ROUNDS = 40
REQUESTS = 40  # of a variant in a round: few, so that all variants meet the same moments of a busy machine
TALKS, MESSAGES = 5, 40  # conversations that grow in turn, and their length at first
WARM_REQUESTS = 100


class Variant:
    """One running proxy, and what its requests took."""

    def __init__(self, name: str, port: int, process: Popen[bytes]) -> None:
        self.name, self.port = name, port
        self.milliseconds: list[float] = []
        self._pid = process.pid
        self._talks: list[Talk] = []

    def begin(self, cycle: int) -> None:
        self._talks = [Talk(cycle * TALKS + number, MESSAGES) for number in range(TALKS)]

    async def ask(self, session: aiohttp.ClientSession, number: int) -> None:
        talk = self._talks[number % TALKS]
        body = {"model": "m", "messages": talk.messages, "stream": bool(number % 2)}
        headers = {"authorization": "Bearer sk-bench"}
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        async with session.post(url, json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()
        talk.hear(reply_to(talk.messages[-1]["content"][-400:]))
        talk.append()

    @property
    def seconds(self) -> float:
        """Of processor time that its threads have had; to the nanosecond, where others count in hundredths."""
        had = Path(f"/proc/{self._pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in had) / 1e9


@contextmanager
def running(name: str, code: Path, upstream: int, mode: str, **otel: str) -> Iterator[Variant]:
    port = free_port()
    quiet = {
        "PALIMPSEST_MEMORY__MODE": mode,
        "PALIMPSEST_MODEL__DOWNLOAD": "never",
        "PALIMPSEST_MODEL__CACHE": "/nonexistent",  # no embedding: it would take processor time at random moments
        "PYTHONPATH": str(code),
    }
    with TemporaryDirectory(prefix="palimpsest-tracing-") as data, (Path(data) / "log").open("w") as log:
        url = f"http://127.0.0.1:{upstream}/v1"
        command = [sys.executable, "-m", "palimpsest", "serve", "--port", str(port), "--data", data, "--upstream", url]
        with Popen(command, cwd=code, env=os.environ | quiet | otel, stderr=log) as process:
            try:
                while not is_alive(port):
                    assert process.poll() is None, "the proxy did not start"
                yield Variant(name, port, process)
            finally:
                process.terminate()


async def measure(variants: list[Variant], rounds: int) -> None:
    async with aiohttp.ClientSession() as session:
        for cycle in range(rounds + 1):
            first = cycle % len(variants)  # each is first at times
            for variant in variants[first:] + variants[:first]:
                variant.begin(cycle)
                requests = REQUESTS if cycle else WARM_REQUESTS
                before = variant.seconds
                for number in range(requests):
                    await variant.ask(session, number)
                if cycle:
                    variant.milliseconds.append(1000 * (variant.seconds - before) / requests)


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of traces.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"({ROUNDS})")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout, to compare with")
    given = parser.parse_args()
    upstream = free_port()
    command = [sys.executable, "-m", "uvicorn", "upstream:app", "--port", str(upstream), "--log-level", "error"]
    command += ["--timeout-keep-alive", "75"]  # longer than a proxy waits for its turn
    with Popen(command, cwd=ROOT / "scripts" / "overhead") as provider, collector() as receiver:
        try:
            while not is_listening(upstream):
                pass
            endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver}"}
            for mode in ("off", "on"):
                with ExitStack() as opened:
                    variants = [opened.enter_context(running("traces off", ROOT, upstream, mode))]
                    if given.before:
                        variants.append(opened.enter_context(running("before", given.before, upstream, mode)))
                    never = endpoint | {"OTEL_TRACES_SAMPLER": "always_off"}
                    variants.append(opened.enter_context(running("passed on only", ROOT, upstream, mode, **never)))
                    variants.append(opened.enter_context(running("traces on", ROOT, upstream, mode, **endpoint)))
                    asyncio.run(measure(variants, given.rounds))
                tell(f"memory {mode}", variants)
        finally:
            provider.terminate()


def is_listening(port: int) -> bool:

    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def tell(title: str, variants: Sequence[Variant]) -> None:
    first = variants[0]
    for variant in variants:
        ratio = median(one / other for one, other in zip(variant.milliseconds, first.milliseconds, strict=True))
        sys.stdout.write(f"{title}  {variant.name:15} {median(variant.milliseconds):.2f} ms  {ratio:.3f}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
