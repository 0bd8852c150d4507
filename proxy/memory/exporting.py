"""
Export: turns and told facts of one database as the lines of a file, a page at a time, while others write.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator

from proxy.store.database import Database
from proxy.store.told_facts import told
from proxy.store.transcript import Selection, Transcript
from proxy.transfer.lines import fact_to_line, header_line, to_line


async def export(database: Database, selection: Selection) -> AsyncIterator[bytes]:
    """
    The lines of an export, some at a time, the header first.

    Raises:
        MemoryFault: the database cannot be read.
    """
    yield header_line()
    transcript = Transcript(selection)
    while page := await database.ask(transcript.page):
        yield b"".join(map(to_line, page))
    if selection.conversation:
        return
    last = 0
    while rows := await database.ask(functools.partial(told, selection=selection, after=last)):
        last = rows[-1][0]
        yield b"".join(fact_to_line(fact) for _, fact in rows)
