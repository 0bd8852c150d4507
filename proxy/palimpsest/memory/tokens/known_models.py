"""What upstreams have shown of models, kept in the database: a restart forgets none of it, and all workers know it."""

from __future__ import annotations

import asyncio
from functools import partial

from palimpsest.domain.ports import Clock
from palimpsest.memory.tokens.counter import TokenCounter
from palimpsest.memory.tokens.windows import LEARNT_SECONDS, Windows
from palimpsest.store.engine import Engine, nobody
from palimpsest.store.operation.model_notes import USAGE, ModelNote, notes, save

LOOK_SECONDS = 1.0  # between looks whether something is to be written; no request waits for it
LEAST_CHANGE = 0.02  # of a value, to be written: below the margin that counts have anyway (core/overflow/room.py)
RENEWAL_SECONDS = LEARNT_SECONDS / 4  # after which a window that is shown again is written, though it is the same


class KnownModels:
    """Keeps windows and ratios of this process and of the database the same; `learn` listens to changes."""

    def __init__(self, database: Engine, clock: Clock, windows: Windows, tokens: TokenCounter) -> None:
        self._database = database
        self._clock = clock
        self._windows = windows
        self._tokens = tokens
        self._stored: dict[tuple[str, str], ModelNote] = {}

    async def learn(self) -> None:
        """Read what this process or others have learnt before. Raises `MemoryFault`: what was known stays so."""
        for note in await self._database.ask(notes):
            key = (note.upstream, note.model)
            if self._stored.get(key) != note:
                self._stored[key] = note
                (self._tokens if note.source == USAGE else self._windows).take(note)

    async def write(self) -> None:
        """
        Write what was learnt since.

        Raises `MemoryFault`: it could not be written; it is tried again at the next call.
        """
        now = self._clock()
        known = [*self._windows.notes(), *self._tokens.notes(now)]
        changed = {(note.upstream, note.model): note for note in known if self._has_changed(note)}
        if changed:
            work = partial(save, changed=changed.values(), now=now)
            await self._database.transact(work, nobody)
            self._stored |= changed

    async def run(self) -> None:
        """Write what is learnt, again and again; forever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.write()

    def _has_changed(self, note: ModelNote) -> bool:
        """Whether a note differs enough from the stored one, or that one is old enough, to be written."""
        stored = self._stored.get((note.upstream, note.model))
        if stored is None or note.source != stored.source:
            return True
        is_same = abs(note.value - stored.value) <= LEAST_CHANGE * stored.value
        return not is_same or note.at - stored.at > RENEWAL_SECONDS
