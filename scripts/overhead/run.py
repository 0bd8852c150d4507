"""
The cost of the proxy, each figure as a ratio to, or a difference from, a bare pass-through in the same run.

Needs wrk, and locust at the path that --locust gives; `scripts/bench` sees to both. Ends with status 1 where a promise
is not kept, and 2 where the run is void.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median, quantiles
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table
from talk import SYSTEM, Talk
from turns import Cost, Load, measure, total

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

WRK_SECONDS = 2
WRK_ROUNDS = 2  # bare and proxy take turns; the better round of each counts, as the worse one met other work
MANY_CONNECTIONS = 16  # keeps one worker busy: requests per second
ONE_CONNECTION = 1  # nothing waits: the median of one request

CLIENTS = 8
PACE_SECONDS = 0.25  # 32 requests a second: indexing keeps both cores busy, requests do not queue behind each other
MEMORY_SECONDS = 45
BARE_SECONDS = 14  # before and after
SEEDING_SECONDS = 3  # of each run: conversations of 72 messages begin all at once, which no client does
LONG_MESSAGES = 1000
LONG_SECONDS = 12
LEAST_BLOCK_SHARE = 0.08  # below, the run says nothing about what memory costs

TURNS_28_KB = Load(clients=8, first=42, turns=40)  # 81 messages on average
TURNS_1000 = Load(clients=2, first=960, turns=40)  # few clients: the passages of each take half a minute to embed
ROUNDS_28_KB, ROUNDS_1000 = 3, 1  # bare and proxy take turns, so that what else the machine does meets both
CORES_FOR_WORKERS = 4  # two workers, what asks and answers them, and the embedding: on fewer they wait for each other

START_SECONDS = 60.0  # longest wait for a server, or for the embedding model


@dataclass(frozen=True)
class Figure:
    """One line of the table. `limit` None: stated, not promised."""

    name: str
    bare: float
    proxy: float
    value: float  # ratio or difference, as `unit` says
    unit: str
    limit: float | None

    is_least: bool = False  # the limit is the least that is promised, not the most

    @property
    def kept(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.is_least else self.value <= self.limit


# --- the servers ----------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@dataclass(frozen=True)
class Server:
    url: str
    process: int


@contextmanager
def running(command: Sequence[str], port: int, path: str, log: Path, env: Mapping[str, str]) -> Iterator[Server]:
    """A server process; there once `path` answers."""
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | env, cwd=ROOT)
    try:
        wait_for(lambda: process.poll() is None and answers(url + path), f"{command} to start; it said:", log)
        yield Server(url, process.pid)
    finally:
        process.terminate()
        process.wait()


def app(name: str, log: Path, **env: str) -> Any:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(HERE), f"{name}:app", "--port", str(port)]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    return running(command, port, "/", log, env)


def palimpsest(upstream: str, data: Path, mode: str, workers: int = 1) -> Any:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "palimpsest",
        "serve",
        "--port",
        str(port),
        "--upstream",
        upstream,
        "--data",
        str(data),
    ]
    command += ["--workers", str(workers)]
    return running(command, port, "/healthz", data.with_suffix(".log"), {"PALIMPSEST_MEMORY__MODE": mode})


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError as error:
        return hasattr(error, "status")  # an answer, if not a kind one


def wait_for(true: Any, doing: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise SystemExit(f"gave up waiting for {doing} {log.read_text()[-2000:]}")
        time.sleep(0.1)


# --- memory off -----------------------------------------------------------------------------------


def wrk(url: str, body: Path, connections: int) -> dict[str, float]:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{WRK_SECONDS}s", "-s", str(HERE / "post.lua")]
    done = subprocess.run(
        [*command, f"{url}/v1/chat/completions"],
        env=os.environ | {"BODY": str(body)},
        capture_output=True,
        text=True,
        check=True,
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if measured["failed"]:
        raise SystemExit(f"wrk against {url}: {measured['failed']:.0f} requests failed")
    return measured


def off(bare: str, proxy: str, temp: Path) -> Iterator[Figure]:
    long, short = Talk(9).messages, [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hello!"}]
    for name, messages in (("short", short), ("28 kB", long)):
        body = temp / "body.json"
        body.write_text(json.dumps({"model": "gpt-4o", "messages": messages}))
        rounds = [[wrk(url, body, n) for url in (bare, proxy)] for n in (MANY_CONNECTIONS, ONE_CONNECTION) * WRK_ROUNDS]
        many, one = rounds[::2], rounds[1::2]
        a, b = (max(each[i]["rps"] for each in many) for i in (0, 1))
        yield Figure(f"memory off, {name}: requests per second", a, b, b / a, "x", 0.7, is_least=True)
        a, b = (min(each[i]["p50_ms"] for each in one) for i in (0, 1))
        yield Figure(f"memory off, {name}: median", a, b, b - a, "ms", 0.3)


# --- memory on ------------------------------------------------------------------------------------

Row = dict[str, Any]


def locust(program: Path, url: str, rows: Path, seconds: int, clients: int = CLIENTS, **env: str) -> list[Row]:
    """Requests of `seconds` of conversations, without those that start them and while those are digested."""
    command = [str(program), "--headless", "-f", str(HERE / "locustfile.py"), "-H", url]
    command += ["-u", str(clients), "-r", str(clients)]
    command += ["-t", f"{seconds}s", "--only-summary", "--loglevel", "ERROR"]
    here = os.environ | {
        "PYTHONPATH": str(HERE),
        "ROWS": str(rows),
        "PACE_SECONDS": str(PACE_SECONDS),
        "CLIENTS": str(clients),
    }
    done = subprocess.run(command, env=here | env, capture_output=True, text=True)
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    if done.returncode or not found:
        raise SystemExit(f"locust against {url}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    return [row for row in found if row["at_s"] > SEEDING_SECONDS and row["kind"] != "start"]


Limits = tuple[float | None, float | None]
"""Of median and 99th percentile, ms."""


def compare(name: str, bare: list[Row], proxy: list[Row], of_answer: Limits, of_first: Limits) -> Iterator[Figure]:
    """Median and 99th percentile of unstreamed answers as a whole, and of the first byte of streamed ones."""
    for stream, key, what, limits in (
        (False, "whole_ms", "answer", of_answer),
        (True, "first_ms", "first streamed byte", of_first),
    ):
        a, b = ([row[key] for row in rows if row["stream"] == stream] for rows in (bare, proxy))
        if len(a) < 2 or len(b) < 2:
            continue
        yield Figure(f"{name}: {what}, p50", median(a), median(b), median(b) - median(a), "ms", limits[0])
        high = [quantiles(x, n=100, method="inclusive")[98] for x in (a, b)]
        yield Figure(f"{name}: {what}, p99", high[0], high[1], high[1] - high[0], "ms", limits[1])


def on(bare: str, proxy: str, temp: Path, program: Path) -> tuple[list[Figure], dict[str, float]]:
    before = locust(program, bare, temp / "before.jsonl", BARE_SECONDS)
    rows = locust(program, proxy, temp / "on.jsonl", MEMORY_SECONDS)
    after = locust(program, bare, temp / "after.jsonl", BARE_SECONDS, FIRST_TALK="100")
    passed = before + after
    said = [row for row in rows if row["recalled"] and row["blocks"]]
    figures = [
        *compare(
            "memory on, no new block",
            [row for row in passed if row["kind"] == "append"],
            [row for row in rows if not row["recalled"]],
            (4, 15),
            (3, 12),
        ),
        *compare(
            "memory on, new block", [row for row in passed if row["kind"] == "truncate"], said, (10, 30), (10, 30)
        ),
    ]
    facts = {
        "requests": len(rows),
        "block_share": len(said) / len(rows),
        "truncations_without_block": sum(row["kind"] == "truncate" and not row["recalled"] for row in rows),
        "replaying_share": mean(row["blocks"] > 0 for row in rows),
        "mean_messages": mean(row["messages"] for row in rows),
        "mean_kb": mean(row["bytes"] for row in rows) / 1000,
        "deadlines_and_faults": sum(row["note"] in ("deadline", "fault") for row in rows),
        "bare_drift_ms": median(row["whole_ms"] for row in after) - median(row["whole_ms"] for row in before),
    }
    return figures, facts


def long(bare: str, proxy: str, temp: Path, program: Path) -> Iterator[Figure]:
    """Cost per turn of one conversation of 1,000 messages."""
    setting = {"SIZE": str(LONG_MESSAGES), "FIRST_TALK": "1000"}
    a = locust(program, bare, temp / "long-bare.jsonl", LONG_SECONDS, 1, **setting)
    b = locust(program, proxy, temp / "long-on.jsonl", LONG_SECONDS, 1, **setting)
    yield from compare(f"memory on, {LONG_MESSAGES} messages", a, b, (8, None), (8, None))


def turns(bare: Server, proxy: Server) -> Iterator[Figure]:
    """Processor time and throughput of conversations that grow by a turn a request."""
    for name, load, rounds, cpu, rate in (
        ("28 kB", TURNS_28_KB, ROUNDS_28_KB, 4.0, 0.3),
        (f"{LONG_MESSAGES} messages", TURNS_1000, ROUNDS_1000, 2.5, None),
    ):
        passed, remembered = [], []
        for bodies in map(load.bodies, range(rounds)):
            passed.append(measure(bare.url, bare.process, bodies, lambda: True))
            remembered.append(remembering(proxy, bodies))
        a, b = total(passed), total(remembered)
        ratio, all_ms = b.processor_ms / a.processor_ms, b.all_processor_ms
        yield Figure(f"memory on, {name}: processor ms a turn", a.processor_ms, b.processor_ms, ratio, "x", cpu)
        named = f"memory on, {name}: processor ms a turn, with the archive process"
        yield Figure(named, a.processor_ms, all_ms, all_ms / a.processor_ms, "x", None)
        yield _rate(f"memory on, {name}: turns per second", a, b, rate)


def workers(upstream: str, temp: Path) -> Iterator[Figure]:
    """What a second worker adds; promised only where there are cores for both and for what asks them."""
    measured = []
    for count in (1, 2):
        with ready(upstream, temp / f"workers-{count}", count) as proxy:
            rounds = map(TURNS_28_KB.bodies, range(ROUNDS_28_KB))
            measured.append(total([remembering(proxy, bodies) for bodies in rounds]))
    limit = 1.5 if (os.cpu_count() or 1) >= CORES_FOR_WORKERS else None
    one, two = measured
    yield _rate("memory on, 28 kB: turns per second, one worker and two", one, two, limit)


def remembering(proxy: Server, bodies: list[list[bytes]]) -> Cost:
    return measure(proxy.url, proxy.process, bodies, lambda: state_of(proxy.url)["pending"] == 0)


def _rate(name: str, a: Cost, b: Cost, limit: float | None) -> Figure:
    return Figure(name, a.per_second, b.per_second, b.per_second / a.per_second, "x", limit, is_least=True)


# --- the report -----------------------------------------------------------------------------------


def show(figures: Sequence[Figure], facts: Mapping[str, float]) -> None:
    table = Table("", "bare", "proxy", "difference", "promised", "", title="What the proxy costs")
    for figure in figures:
        sign = ">=" if figure.is_least else "<="
        promised = "" if figure.limit is None else f"{sign} {figure.limit} {figure.unit}"
        verdict = "" if figure.limit is None else "kept" if figure.kept else "MISSED"
        sign = "" if figure.unit == "x" else "+"
        table.add_row(
            figure.name,
            f"{figure.bare:.2f}",
            f"{figure.proxy:.2f}",
            f"{figure.value:{sign}.2f} {figure.unit}",
            promised,
            verdict,
        )
    console = Console(width=120)
    console.print(table)
    console.print(", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in facts.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locust", type=Path, required=True, help="the load tool for memory on")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--only", choices=("off", "on", "long", "turns"), help="one part of it")
    given = parser.parse_args()
    figures: list[Figure] = []
    facts: dict[str, float] = {}
    with TemporaryDirectory(prefix="palimpsest-bench-") as name:
        temp = Path(name)
        with (
            app("upstream", temp / "upstream.log") as upstream,
            app("bare", temp / "bare.log", UPSTREAM=upstream.url) as bare,
        ):
            if given.only in (None, "off"):
                with palimpsest(upstream.url, temp / "off", "off") as proxy:
                    figures += off(bare.url, proxy.url, temp)
            if given.only in (None, "turns"):
                with ready(upstream.url, temp / "turns") as proxy:
                    figures += turns(bare, proxy)
                figures += workers(upstream.url, temp)
            if given.only in (None, "on", "long"):
                with ready(upstream.url, temp / "on") as proxy:
                    if given.only != "long":
                        figures_on, facts = on(bare.url, proxy.url, temp, given.locust)
                        figures += figures_on
                    figures += long(bare.url, proxy.url, temp, given.locust)
    show(figures, facts)
    if given.json:
        given.json.write_text(json.dumps({"figures": [asdict(f) | {"kept": f.kept} for f in figures], "facts": facts}))
    if facts and facts["block_share"] < LEAST_BLOCK_SHARE:
        sys.stderr.write("void: too few requests got a block\n")
        return 2
    return 0 if all(figure.kept for figure in figures) else 1


@contextmanager
def ready(upstream: str, data: Path, workers: int = 1) -> Iterator[Server]:
    """The proxy with memory on, once its model is loaded."""
    with palimpsest(upstream, data, "on", workers) as proxy:
        wait_for(lambda: state_of(proxy.url)["embedder"] == "ready", "the embedding model", data.with_suffix(".log"))
        yield proxy


def state_of(proxy: str) -> dict[str, Any]:
    with urlopen(f"{proxy}/readyz", timeout=5) as answer:
        state: dict[str, Any] = json.load(answer)
        return state


if __name__ == "__main__":
    sys.exit(main())
