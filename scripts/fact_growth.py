#!/usr/bin/env python3
"""
How the look-up of facts for a request grows with the statements that are stored.

    scripts/fact_growth.py [STATEMENTS ...]

Half of the databases have as many facts as statements, the others fifty slots whose values were said again and again.
Prints the median processor time where a conversation begins and where nothing is new, in milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import thread_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from palimpsest.core.facts.marks import added_id
from palimpsest.domain import Fact, FactCategory, FactQuery, FactScope
from palimpsest.domain.facts import by_tool
from palimpsest.store.engine import Ask
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.knowledge.added_facts import add_facts
from palimpsest.store.knowledge.current_facts import current_facts

from tests.remembered import Past
from tests.talking import NOW

SIZES = (1_000, 20_000, 100_000)
SLOTS = 50  # that are said again and again
BATCH = 1_000
ROUNDS = 5
ANN = FactScope("acme", "ann", "shop")


def fact(number: int, slots: int) -> Fact:
    slot = f"slot {number % slots}"
    return Fact(
        id=added_id(number),
        tenant="acme",
        user="ann",
        scope="shop",
        said_at=NOW + number / 1000,
        subject="project",
        slot=slot,
        value=f"value {number}",
        category=FactCategory.SETTING,
        source=by_tool("growth"),
    )


def milliseconds(ask: Ask, query: FactQuery) -> float:
    taken = []
    for _ in range(ROUNDS):
        before = thread_time()
        current_facts(ask, query, NOW + 1e9)
        taken.append(thread_time() - before)
    return 1000 * median(taken)


async def measure(statements: int, slots: int) -> tuple[float, float]:
    with TemporaryDirectory(prefix="palimpsest-facts-") as folder:
        database = Database(Path(folder) / "palimpsest.db")
        await database.open()
        try:
            for start in range(0, statements, BATCH):
                told = [fact(number, slots) for number in range(start, min(start + BATCH, statements))]
                await database.transact(lambda transaction, told=told: add_facts(transaction, told, str.encode))
            later = NOW + statements
            (mark,) = await Past(database).say("later", user="ann", scope="shop", created_at=later)
            begins = await database.ask(lambda ask: milliseconds(ask, FactQuery(ANN)))
            return begins, await database.ask(lambda ask: milliseconds(ask, FactQuery(ANN, since=mark)))
        finally:
            await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statements", type=int, nargs="*", default=SIZES, help="%(default)s")
    for size in parser.parse_args().statements:
        for name, slots in (("each another fact", size), (f"of {SLOTS} slots", SLOTS)):
            begins, still = asyncio.run(measure(size, slots))
            sys.stdout.write(f"{size:9,} statements, {name:18} begins {begins:8.2f} ms  nothing new {still:6.2f} ms\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
