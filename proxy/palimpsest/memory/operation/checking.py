"""The check of a data folder, and its repair."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.consistency import Examination, Repair, examination, forget_unused, repair_heads
from palimpsest.store.knowledge.fact_consistency import repair_facts
from palimpsest.store.search.derived import Derived


async def check(path: Path, report: Callable[[str], None] = lambda doing: None) -> Examination:
    """Examine an existing database; see `examination`. Raises `MemoryFault`: it cannot be read at all."""
    database = Database(path)
    try:
        await database.open()
    except MemoryFault:  # its damage is what is looked for
        report("the file")
    finally:
        await database.close()
    return await asyncio.to_thread(examination, path, report)


async def repair(
    path: Path, found: Examination, clock: Clock, report: Callable[[str], None] = lambda doing: None
) -> None:
    """Put right what an examination has found, as far as the journal has what it takes."""
    repairs = {finding.repair for finding in found.findings}
    database = Database(path)
    try:
        await database.open()
        if Repair.UNUSED in repairs:
            report("texts of no message")
            await database.transact(forget_unused)
        if Repair.HEADS in repairs:
            report("the heads of conversations")
            await database.transact(repair_heads)
        if Repair.FACTS in repairs:
            report("facts")
            await database.transact(repair_facts)
        if Repair.REBUILD in repairs:
            report("passages")
            derived = Derived(database, clock)
            await derived.start_rebuild()
            while await derived.rebuild_step():
                pass
    finally:
        await database.close()
