"""
Replicas on one PostgreSQL, of which now one is killed by -9, now the server, and now the network between them is cut.

Each fault is drawn at random: a replica is killed and started again; the server is stopped as by a crash and started
after a while; the network refuses all connections, or is silent, for a while. Each client stays at one replica. After
each round clients rest, and the ledger of what they received whole is compared with the database.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from scripts.endure.kill import _explain, _numbers, kill_all
from scripts.endure.load import Client, Tally, answering, at_work, paused, seconds_since
from scripts.endure.table import Table, note
from tests.ledger import Ledger
from tests.running import PATIENCE_SECONDS, Proxy, free_port, until, upstream_on_a_thread
from tests.servers import Server, running_server

FAULTS = 200
REPLICAS = 2
CLIENTS = 6
ROUND_FAULTS = 20
LONGEST_WAIT_SECONDS = 1.0  # between an answer and a fault
LONGEST_OUTAGE_SECONDS = 2.0  # of the server, or the network
CHUNK_BYTES = 1 << 16


class Relay:
    """The network between the replicas and the server: a port that leads to another, while it is not cut."""

    def __init__(self, to: int) -> None:
        self.port, self._to = free_port(), to
        self._is_cut = False
        self._flows = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()

    @contextmanager
    def running(self) -> Iterator[Relay]:
        """Let it lead there, until the end."""
        up = threading.Event()
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve(up)))
        thread.start()
        try:
            assert up.wait(PATIENCE_SECONDS)
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join()
            self._loop.close()

    def cut(self, seconds: float) -> None:
        """Reset all connections, and whoever comes, for a while."""
        self._loop.call_soon_threadsafe(self._reset)
        time.sleep(seconds)
        self._is_cut = False

    def silence(self, seconds: float) -> None:
        """Let nothing through for a while; connections stay."""
        self._loop.call_soon_threadsafe(self._flows.clear)
        time.sleep(seconds)
        self._loop.call_soon_threadsafe(self._flows.set)

    def _reset(self) -> None:
        self._is_cut = True
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, up: threading.Event) -> None:
        self._flows.set()
        async with await asyncio.start_server(self._accept, "127.0.0.1", self.port):
            up.set()
            await self._over.wait()
            self._reset()
            self._flows.set()
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            onward, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, back}
        if self._is_cut:  # since
            self._reset()
        await asyncio.gather(self._pass(reader, back), self._pass(onward, writer))
        self._open -= {writer, back}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--faults", type=int, default=FAULTS, metavar="N", help=f"({FAULTS})")
    parser.add_argument("--replicas", type=int, default=REPLICAS, metavar="N", help=f"({REPLICAS})")
    parser.add_argument("--clients", type=int, default=CLIENTS, metavar="N", help=f"({CLIENTS})")
    parser.add_argument("--round", type=int, default=ROUND_FAULTS, metavar="N", help=f"per round ({ROUND_FAULTS})")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave data and logs of the replicas there")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments (1)")


def run(arguments: argparse.Namespace) -> bool:
    with (
        tempfile.TemporaryDirectory(prefix="palimpsest-server-") as temporary,
        upstream_on_a_thread() as upstream,
        running_server() as server,
        Relay(server.port).running() as network,
    ):
        answering(upstream)
        url = server.new_database()
        env = {
            "PALIMPSEST_STORE__URL": url.replace(f":{server.port}/", f":{network.port}/"),
            "PALIMPSEST_SECRET": "5" * 64,
            "PALIMPSEST_MODEL__CACHE": temporary,  # words alone: starts are faster
        }
        settings = {"log": {"level": "warning"}}
        folders = ((arguments.keep or Path(temporary)) / f"replica-{number}" for number in range(arguments.replicas))
        replicas = [Proxy(folder, upstream.url, settings, **env) for folder in folders]
        try:
            return _at_random(replicas, server, url, network, arguments)
        finally:
            for replica in replicas:
                kill_all(replica)


def _at_random(replicas: list[Proxy], server: Server, url: str, network: Relay, arguments: argparse.Namespace) -> bool:
    chance, ledger, tally, started = random.Random(arguments.seed), Ledger(), Tally(), time.monotonic()
    clients = [Client(replicas[n % len(replicas)], f"client-{n}", ledger, tally) for n in range(arguments.clients)]
    kinds = {"replica": 0, "crash": 0, "cut": 0, "silence": 0}
    titles = ("faults", *kinds, "answered", "cut off", "refused", "lost", "twice", "split", "seconds")
    table, is_clean = Table(titles), True
    for replica in replicas:
        replica.start()
    with at_work([*clients]):
        for number in range(1, arguments.faults + 1):
            before = len(ledger.entries)
            until(lambda before=before: len(ledger.entries) > before, "an answer since the fault before")
            time.sleep(chance.uniform(0, LONGEST_WAIT_SECONDS))
            kind, seconds = chance.choice([*kinds]), chance.uniform(0, LONGEST_OUTAGE_SECONDS)
            kinds[kind] += 1
            {
                "replica": partial(_restart, chance.choice(replicas)),
                "crash": partial(_crash, server, seconds),
                "cut": partial(network.cut, seconds),
                "silence": partial(network.silence, seconds),
            }[kind]()
            if number % arguments.round and number < arguments.faults:
                continue
            with paused(clients):
                for replica in replicas:
                    until(_has_settled(replica), "all turns to be archived")
                found = ledger.compare(partial(server.rows, url), [])
            failures = tally.counts["cut"], tally.counts["refused"]
            table.line((number, *kinds.values(), found.turns, *failures, *_numbers(found)[:3], seconds_since(started)))
            is_clean &= found.is_clean and not tally.counts["failed"]
            _explain(found)
    note(f"beside these: {dict(sorted(tally.counts.items()))}")
    note(f"said to be lost: {sum(replica.metric('palimpsest_turns_lost_total') for replica in replicas):g}")
    checked = [sys.executable, "-m", "palimpsest", "check", "--data", str(replicas[0].data)]
    return subprocess.run(checked, env=os.environ | replicas[0].env, check=False).returncode == 0 and is_clean


def _restart(replica: Proxy) -> None:
    kill_all(replica)
    replica.start()


def _crash(server: Server, seconds: float) -> None:
    server.stop()
    time.sleep(seconds)
    server.start()


def _has_settled(replica: Proxy) -> Callable[[], bool]:
    def look() -> bool:
        ready = replica.ready()
        is_well = ready["store"] == "ready" and not any("wait" in reason for reason in ready["reasons"])
        return is_well and replica.metric("palimpsest_queued") == 0

    return look
