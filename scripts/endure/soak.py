"""
Mixed load for half an hour: streams, cancels, compactions, side requests, fifty people, retention; a line each minute.

Memory (proportional, of all processes), threads, handles and the write-ahead log have to stay as they are once the run
is warm: the last third is compared with the second. No answer may be a 5xx, break off, or be lost.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from scripts.endure.load import Client, Tally, answering, at_work, seconds_since
from scripts.endure.table import Table, note
from tests.ledger import Ledger, is_written
from tests.running import Conversation, Proxy, database, until, upstream_on_a_thread

MINUTES = 30.0
CLIENTS = 50
THINK_SECONDS = 15.0  # three or four turns a second in all: what a small team does on a busy day
WORKERS = 2
RETENTION = "10m"  # then the archive stays as large as it is: what grows after that is a leak
KEPT_SECONDS = 120.0  # what is this young, no retention takes
LINE_SECONDS = 60.0
MOST_GROWTH = 0.1  # of the last third over the second
MOST_LAG_SECONDS = 5.0  # until what was answered is written
FEWEST_LINES = 6  # for thirds to mean anything
FAILURES = ("refused", "cut", "failed", "5xx")
MEGABYTE = 1e6


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N", help=f"({MINUTES:g})")
    parser.add_argument("--clients", type=int, default=CLIENTS, metavar="N", help=f"({CLIENTS})")
    parser.add_argument("--think", type=float, default=THINK_SECONDS, metavar="SECONDS", help=f"({THINK_SECONDS:g})")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help=f"of the proxy ({WORKERS})")
    parser.add_argument("--retention", default=RETENTION, metavar="AGE", help=f"of turns ({RETENTION}); or forever")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave data and log there")


def run(arguments: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(prefix="palimpsest-soak-") as temporary, upstream_on_a_thread() as upstream:
        answering(upstream)
        folder = arguments.keep or Path(temporary)
        retention = {"turns": arguments.retention, "explain": arguments.retention}
        settings = {"listen": {"workers": arguments.workers}, "retention": retention}
        with Proxy(folder / "data", upstream.url, settings) as proxy:
            return _soaked(proxy, arguments)


@dataclass(frozen=True, slots=True)
class Sample:
    """The proxy at one moment, over all of its processes."""

    memory_mb: float
    threads: int
    handles: int
    wal_mb: float


def sample(proxy: Proxy) -> Sample:
    assert proxy.process is not None
    parent = psutil.Process(proxy.process.pid)
    memory, threads, handles = 0.0, 0, 0
    for process in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            memory += process.memory_full_info().pss
            threads += process.num_threads()
            handles += process.num_fds()
    wal = database(proxy.data).with_name("palimpsest.db-wal")
    return Sample(memory / MEGABYTE, threads, handles, wal.stat().st_size / MEGABYTE if wal.exists() else 0.0)


def _soaked(proxy: Proxy, given: argparse.Namespace) -> bool:
    ledger, tally, started = Ledger(), Tally(), time.monotonic()
    clients = [
        Client(proxy, f"client-{n}", ledger, tally, think_seconds=given.think, keeps=n % 2 == 0)
        for n in range(given.clients)
    ]
    titles = (
        "seconds",
        "requests",
        *FAILURES,
        "MB",
        "threads",
        "handles",
        "log MB",
        "db MB",
        "lines",
        "queued",
        "pending",
    )
    table, samples, lag = Table(titles), list[Sample](), 0.0
    with at_work(clients):
        for _ in _lines(given.minutes * 60):
            now = sample(proxy)
            samples.append(now)
            queued, pending = proxy.metric("palimpsest_queued"), proxy.metric("palimpsest_pending")
            lag = max(lag, _lag_seconds(proxy))
            counts = tally.counts
            sent = sum(counts[what] for what in ("2xx", "4xx", "5xx", "refused", "cancelled"))
            table.line(
                (
                    *(seconds_since(started), sent, *map(counts.__getitem__, FAILURES)),
                    *(f"{now.memory_mb:.0f}", now.threads, now.handles, f"{now.wal_mb:.1f}"),
                    *(f"{database(proxy.data).stat().st_size / MEGABYTE:.1f}", _log_lines(proxy)),
                    *(f"{queued:.0f}", f"{pending:.0f}"),
                )
            )
    proxy.settle(vectors=False)
    found = ledger.audit(proxy.data, KEPT_SECONDS)
    grown = _growth(samples)
    note(f"{found.turns} turns: {len(found.lost)} lost, {len(found.duplicated)} twice, {len(found.split)} split")
    note(f"beside these: {dict(sorted(tally.counts.items()))}; longest wait for the archive {lag:.1f} s")
    note("growth of the last third over the second: " + ", ".join(f"{k} {v:+.1%}" for k, v in grown.items()))
    has_failed = any(tally.counts[what] for what in FAILURES)
    return found.is_clean and not has_failed and lag < MOST_LAG_SECONDS and max(grown.values(), default=0) < MOST_GROWTH


def _lines(seconds: float) -> Iterator[None]:
    """Each time that a line is due; once at the end of a run that is shorter."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LINE_SECONDS))
        yield


def _lag_seconds(proxy: Proxy) -> float:
    """From the end of an answer until anybody else can read it on the disk."""
    talk = Conversation(proxy, "sk-probe")
    turn = talk.say("How long does it take until this is written?").said("turn")
    answered = time.monotonic()
    until(lambda: is_written(proxy.data, turn), "an answer to be written")
    return time.monotonic() - answered


def _log_lines(proxy: Proxy) -> int:
    with proxy.log.open("rb") as log:
        return sum(1 for _ in log)


def _growth(samples: list[Sample]) -> dict[str, float]:
    """By how much the last third lies above the second, as a share; empty for a short run."""
    if len(samples) < FEWEST_LINES:
        return {}
    third = len(samples) // 3
    second, last = samples[third:-third], samples[-third:]

    def grown(name: str) -> float:
        before = statistics.median(getattr(each, name) for each in second)
        return statistics.median(getattr(each, name) for each in last) / max(before, 1) - 1

    return {name.removesuffix("_mb"): grown(name) for name in ("memory_mb", "threads", "handles", "wal_mb")}
