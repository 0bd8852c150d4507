"""
Requests a second of one proxy on SQLite, one on PostgreSQL and three on it, in one run, and what each request takes.

    .venv/bin/python -m scripts.replicas 40

Told are requests a second, processor milliseconds a request of the proxies and of the server, and turns archived a
second until none waits. Needs Debian's postgresql-15. Everything is on this machine: proxies, server, provider and
clients share its processors, so that processor time, not the rate, says what machines of their own would do. Clients
stream, compact, cancel and ask aside as those of `scripts.endure` do, without a pause, each at one replica. Words
alone, without a model.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from palimpsest.domain import Json

from scripts.endure.load import Client, Tally, answering, at_work
from scripts.endure.table import Table
from scripts.store_cost import processor_seconds
from tests.ledger import Ledger
from tests.running import Proxy, until, upstream_on_a_thread
from tests.servers import running_server

CLIENTS = 12
SECRET = "5" * 64  # of all replicas
SETTINGS: Json = {"log": {"level": "warning"}}
RUNS = ((1, False), (1, True), (3, True))  # replicas, and whether on PostgreSQL


def measure(proxies: list[Proxy], server: int | None, seconds: float) -> tuple[float, ...]:
    """
    Requests a second, then processor milliseconds a request of the proxies and of the server, then turns archived a
    second until none waits.
    """

    def spent() -> tuple[float, float]:
        own = sum(processor_seconds(proxy.process.pid) for proxy in proxies if proxy.process)
        return own, processor_seconds(server) if server is not None else 0.0

    tally, ledger, before, began = Tally(), Ledger(), spent(), time.monotonic()
    names = ((proxies[number % len(proxies)], f"client-{number}") for number in range(CLIENTS))
    with at_work([Client(proxy, name, ledger, tally, think_seconds=0.0, keeps=True) for proxy, name in names]):
        time.sleep(seconds)
    lasted = time.monotonic() - began
    for proxy in proxies:
        until(lambda proxy=proxy: proxy.metric("palimpsest_queued") == 0, "all turns to be archived")
    settled = time.monotonic() - began
    own, theirs = (now - then for now, then in zip(spent(), before, strict=True))
    done = tally.counts["2xx"]
    assert not tally.counts["failed"] + tally.counts["refused"], dict(tally.counts)
    return done / lasted, 1000 * own / done, 1000 * theirs / done, tally.counts["answered"] / settled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, help="of each line")
    seconds = parser.parse_args().seconds
    table = Table(("replicas", "store", "requests/s", "own ms", "its ms", "archived/s"))
    with TemporaryDirectory() as folder, upstream_on_a_thread() as upstream, running_server() as server:
        answering(upstream, pace_seconds=0.0)
        for replicas, is_server in RUNS:
            env = {"PALIMPSEST_SECRET": SECRET, "PALIMPSEST_MODEL__CACHE": folder}
            if is_server:
                env["PALIMPSEST_STORE__URL"] = server.new_database()
            place = Path(folder) / f"{replicas}-{is_server}"
            proxies = [Proxy(place / str(number), upstream.url, SETTINGS, **env) for number in range(replicas)]
            try:
                for proxy in proxies:
                    proxy.start()
                figures = measure(proxies, server.processes()[0] if is_server else None, seconds)
            finally:
                for proxy in proxies:
                    proxy.close()
            table.line((replicas, "PostgreSQL" if is_server else "SQLite", *(f"{figure:.1f}" for figure in figures)))


if __name__ == "__main__":
    main()
