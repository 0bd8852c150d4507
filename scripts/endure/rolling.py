"""
Rolling restarts under load: another process takes over one listening socket, then the one before is told to stop.

The socket is held open by this program, as systemd holds that of a socket unit. No request may fail, no answer may
break off, and no turn may be lost. Half of the clients keep their connections.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import time
from pathlib import Path

from palimpsest.evaluation.scripted import ScriptedUpstream

from scripts.endure.load import Client, Tally, answering, at_work, seconds_since
from scripts.endure.table import Table, note
from tests.ledger import Ledger
from tests.running import Proxy, until, upstream_on_a_thread

RESTARTS = 5
CLIENTS = 8
WORKERS = 1
SECONDS_BETWEEN = 3.0  # of load by the new process alone
BACKLOG = 2048  # connections that wait to be accepted; uvicorn's own
FAILURES = ("refused", "cut", "failed")
STARTED = "Application startup complete"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--restarts", type=int, default=RESTARTS, metavar="N", help=f"({RESTARTS})")
    parser.add_argument("--clients", type=int, default=CLIENTS, metavar="N", help=f"({CLIENTS})")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help=f"of each process ({WORKERS})")
    parser.add_argument(
        "--between", type=float, default=SECONDS_BETWEEN, metavar="SECONDS", help=f"({SECONDS_BETWEEN})"
    )


def run(arguments: argparse.Namespace) -> bool:
    with (
        tempfile.TemporaryDirectory(prefix="palimpsest-rolling-") as folder,
        socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listening,
        upstream_on_a_thread() as upstream,
    ):
        answering(upstream)
        running = _started(Path(folder), upstream, listening, arguments.workers)
        try:
            return _rolled(running, Path(folder), upstream, listening, arguments)
        finally:
            for process in running:
                process.close()


def _started(
    folder: Path, upstream: ScriptedUpstream, listening: socket.socket, workers: int, number: int = 0
) -> list[Proxy]:
    proxy = Proxy(folder / "data", upstream.url, {"listen": {"workers": workers, "drain_seconds": 1}})
    proxy.log = folder / f"{number}.log"  # of its own: which one answers cannot be told from outside
    proxy.hands_over = listening
    proxy.start()
    until(lambda: proxy.log.read_text().count(STARTED) >= workers, "the new process to take requests")
    return [proxy]


def _rolled(
    running: list[Proxy], folder: Path, upstream: ScriptedUpstream, listening: socket.socket, given: argparse.Namespace
) -> bool:
    ledger, tally, started, statuses = Ledger(), Tally(), time.monotonic(), list[int]()
    clients = [Client(running[0], f"client-{n}", ledger, tally, keeps=n % 2 == 0) for n in range(given.clients)]
    table = Table(("restarts", "answered", *FAILURES, "status", "seconds"))
    with at_work(clients):
        for number in range(1, given.restarts + 1):
            time.sleep(given.between)
            running += _started(folder, upstream, listening, given.workers, number)
            statuses.append(running.pop(0).stop())
            counts = tally.counts
            table.line(
                (number, counts["answered"], *map(counts.__getitem__, FAILURES), statuses[-1], seconds_since(started))
            )
        time.sleep(given.between)
    running[0].settle(vectors=False)
    found = ledger.audit(running[0].data)
    note(f"{found.turns} turns: {len(found.lost)} lost, {len(found.duplicated)} twice, {len(found.split)} split")
    return found.is_clean and not any(statuses) and not any(tally.counts[what] for what in FAILURES)
