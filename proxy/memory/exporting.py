"""
Export: turns of one database as the lines of a file, a page at a time, while others write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from proxy.store.database import Database
from proxy.store.transcript import Selection, Transcript
from proxy.transfer.lines import header_line, to_line


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
