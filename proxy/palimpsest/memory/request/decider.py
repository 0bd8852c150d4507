"""The driver of decisions: asks the store and the indexes what `core/conversation` asks for, within the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from palimpsest.core.conversation import (
    FAILED,
    Deciding,
    Foreseen,
    Lookup,
    Reminders,
    Request,
    Rules,
    StoredMessages,
    advance,
    decide,
    decide_bare,
)
from palimpsest.core.decision import Decision
from palimpsest.domain import Chat, Clues, Continuation, FactQuery, Note, Query, Trim
from palimpsest.domain.errors import WireError
from palimpsest.domain.ports import Clock, Counts
from palimpsest.memory.recall.assisted import AssistedRecall
from palimpsest.memory.recall.recall import Recall
from palimpsest.memory.request.request_reader import skipped
from palimpsest.memory.request.sized_executor import SizedExecutor
from palimpsest.store.journal import Journal

LATE_SECONDS = 5.0  # of a look-up that is waited for behind the deadline: a store that takes longer is failing
RECALL_LIMIT = 100  # candidates that packing may choose from; a block holds some forty short messages

log = structlog.get_logger()


@dataclass(slots=True)
class Decider:
    """Decides on requests; one per policy."""

    rules: Rules
    journal: Journal
    recall: Recall
    assisted: AssistedRecall
    counts: Counts
    work: SizedExecutor
    clock: Clock

    async def decide(self, request: Request, deadline: float, was_forwarded: Callable[[], bool]) -> Decision | Note:
        """
        Decide on one request, even if look-ups fail; see `conversation.decide`.

        Args:
            deadline: by the event loop's clock.
            was_forwarded: whether the request is on its way already, so that nothing can be added to it any more.
        """
        return await self._drive(decide(request, self.rules), request, deadline, was_forwarded)

    async def decide_bare(self, request: Request, deadline: float, decision: Decision | None = None) -> Decision | Note:
        """Decide what stays behind of a request to which nothing is added; see `conversation.decide_bare`."""
        return await self._drive(decide_bare(request, self.rules, decision), request, deadline, lambda: False)

    async def _drive(
        self, deciding: Deciding, request: Request, deadline: float, was_forwarded: Callable[[], bool]
    ) -> Decision | Note:
        size = request.reading.new_bytes
        step = await self.work.run(size, advance, deciding, None)
        while not isinstance(step, Decision | Note):
            answer: object
            try:
                if isinstance(step, Trim):
                    answer = None if was_forwarded() else await self._trimmed(step, request)
                else:
                    answer = await self._answer(step, deadline, was_forwarded())
            except FAILED as failure:
                if not was_forwarded():
                    skipped(_what(step), failure, self.counts)
                answer = failure
            step = await self.work.run(size, advance, deciding, answer)
        return step

    async def _trimmed(self, trim: Trim, request: Request) -> Chat | None:
        from palimpsest.wire.trimming import trimmed  # late: only where the policy trims

        try:
            return await self.work.run(len(trim.chat.body), trimmed, trim, request.wire)
        except WireError as failure:
            self.counts.fault("overflow")
            log.warning("old messages were not left out", reason=str(failure))
            return None

    async def _answer(self, lookup: Lookup, deadline: float, was_forwarded: bool) -> object:
        """
        What a look-up found. What a request continues is of use even if it was forwarded: it is archived there.
        Raises `TimeoutError`, `MemoryFault`: it was not found out.
        """
        if isinstance(lookup, Continuation) and (head := self.journal.head_at_once(lookup)) is not None:
            return head
        if isinstance(lookup, Clues | Continuation):
            async with asyncio.timeout(LATE_SECONDS):  # from now on: to be read alone may have taken longer
                if isinstance(lookup, Continuation):
                    return await self.journal.head(lookup)
                return await self.journal.history_of(lookup)
        if was_forwarded:
            if isinstance(lookup, Foreseen):  # only said, and not waited for: what is continued is still looked up
                return None
            raise TimeoutError
        async with asyncio.timeout_at(deadline):
            match lookup:
                case Trim():
                    return None  # it is done here, and not looked up
                case Foreseen():
                    self.recall.expect(lookup.text)
                    return None
                case StoredMessages():
                    return await self.journal.messages(lookup.tenant, lookup.occurrences)
                case Reminders():
                    return await self.recall.reminders(lookup.tenant, lookup.memories)
                case FactQuery():
                    return await self.journal.current_facts(lookup, self.clock())
                case Query():
                    return await self.assisted.recall_by(lookup, RECALL_LIMIT, deadline)


def _what(lookup: Lookup) -> str:
    """What a request lacks if a look-up fails, for the log."""
    if isinstance(lookup, FactQuery):
        return "facts"
    return "history" if isinstance(lookup, Clues | Continuation) else "recall"
