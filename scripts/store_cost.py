"""
What archiving a turn costs on SQLite and on PostgreSQL: processor milliseconds, the server's own beside ours.

    .venv/bin/python -m scripts.store_cost 200 [--distance]

Needs Debian's postgresql-15.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from palimpsest.store.engine import Engine
from palimpsest.store.engine.postgres.database import Database as Server
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal

from tests.relay import relayed
from tests.servers import running_server
from tests.talking import Talk

TURNS = 20  # of a conversation
DISTANCE_SECONDS = 0.0005  # between machines of one data centre
TEXT = (
    "The scanner in hall {n} reports error E{n} whenever its lamp is older than two years, and Mrs Lindqvist of the "
    "northern archive wants the report on Friday at the latest; the branch feature/{n} holds the fix in "
    "src/app/module_{n}.py and needs a review. "
) * 3


def processor_seconds(process: int) -> float:
    """Of a process and its children, also of those that ended."""
    found = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = stat.parent.name, stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if process in (int(number), int(rest[1])):
            found += sum(map(int, rest[11:15] if int(number) == process else rest[11:13]))
    return found / os.sysconf("SC_CLK_TCK")


async def fill(database: Engine, conversations: int, tenant: str) -> None:
    for conversation in range(conversations):
        talk = Talk(Journal(database), conversation=f"c-{conversation}", tenant=f"{tenant}-{conversation % 5}")
        for turn in range(TURNS):
            number = conversation * TURNS + turn
            await talk.say(TEXT.format(n=number), f"I have noted {number}: " + TEXT.format(n=number + 7))


async def cost(database: Engine, turns: int, others: Callable[[], float]) -> tuple[float, float]:
    """Processor milliseconds a turn: of this process, and of others."""
    await database.open()
    await fill(database, 1, "first")
    before = time.process_time(), others()
    await fill(database, turns // TURNS, "later")
    spent = time.process_time() - before[0], others() - before[1]
    await database.close()
    return 1000 * spent[0] / turns, 1000 * spent[1] / turns


async def distant(url: str, turns: int) -> str:
    """What each turn asks of a server that is as far away as another machine."""
    with relayed(url) as (address, relay):
        database = Server(address)
        await database.open()
        told = []
        for tenant, delay_seconds in (("near", 0.0), ("far", DISTANCE_SECONDS)):
            await fill(database, 1, f"first-{tenant}")
            relay.delay_seconds, relay.statements, relay.round_trips = delay_seconds, 0, 0
            began = time.perf_counter()
            await fill(database, turns // TURNS, tenant)
            told.append((time.perf_counter() - began, relay.statements / turns, relay.round_trips / turns))
        await database.close()
    (near, statements, trips), (far, *_) = told
    return (
        f"a turn, written in two transactions and looked up: {statements:.1f} statements, {trips:.1f} round trips; "
        f"{far / near:.1f} times as long at {1000 * DISTANCE_SECONDS:g} ms\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("turns", type=int)
    parser.add_argument("--distance", action="store_true", help="the server half a millisecond away: round trips")
    arguments = parser.parse_args()
    turns = arguments.turns
    if arguments.distance:
        with running_server() as server:
            sys.stdout.write(asyncio.run(distant(server.new_database(), turns)))
        return
    with TemporaryDirectory() as folder:
        here, _ = asyncio.run(cost(Database(Path(folder) / "palimpsest.db"), turns, lambda: 0.0))
    with running_server() as server:
        process = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
        own, theirs = asyncio.run(cost(Server(server.new_database()), turns, lambda: processor_seconds(process)))
    sys.stdout.write(
        f"SQLite {here:.1f} ms; PostgreSQL {own:.1f} ms and its server's {theirs:.1f} ms: "
        f"{own / here:.1f} times, and {(own + theirs) / here:.1f} with the server\n"
    )


if __name__ == "__main__":
    main()
