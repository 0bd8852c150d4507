"""
Export: turns, told facts and places of forgotten ones as the lines of a file, a page at a time, while others write.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator

from palimpsest.features.transfer.lines import fact_to_line, forgotten_to_line, header_line, to_line
from palimpsest.store.engine import Engine
from palimpsest.store.knowledge.added_facts import added_facts
from palimpsest.store.knowledge.forgotten_facts import KeyOf, forgotten
from palimpsest.store.turns.transcript import Selection, Transcript


async def export(database: Engine, selection: Selection, key_of: KeyOf) -> AsyncIterator[bytes]:
    """
    The lines of an export, some at a time, the header first.

    Args:
        key_of: the key of a tenant, by its name; asked where facts were forgotten.

    Raises:
        MemoryFault: the database cannot be read.
    """
    yield header_line()
    transcript = Transcript(selection)
    while page := await database.ask(transcript.page):
        yield b"".join(map(to_line, page))
    last = 0
    while True:
        look = functools.partial(forgotten, selection=selection, after=last, key_of=key_of)
        last, facts = await database.ask(look)
        if not last:
            break
        if facts:
            yield b"".join(map(forgotten_to_line, facts))
    if selection.conversation:
        return
    while rows := await database.ask(functools.partial(added_facts, selection=selection, after=last)):
        last = rows[-1][0]
        yield b"".join(fact_to_line(fact) for _, fact in rows)
