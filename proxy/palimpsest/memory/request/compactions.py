"""
Compactions of the proxy's own: made from the archive without a model, and written out when the client brings them back.

What stands for a history is stored with the turn that asked for it, as a block, and goes with the messages that it is
from. The client keeps a sealed reference to that turn, so that any process with the same secret and database writes out
the same bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import structlog

from palimpsest.core.archive.chunking import tags
from palimpsest.core.block.compacted import (
    ACCOUNT_SHARE,
    LAST_SHARE,
    Places,
    compacted,
    last_messages,
    quotes_budget,
    room_chars,
)
from palimpsest.core.block.packing import pack
from palimpsest.core.caller.identity import allows
from palimpsest.core.conversation import FAILED, Rules
from palimpsest.core.decision import Decision
from palimpsest.core.history.compaction_seal import CompactionSeal, seal, unseal
from palimpsest.core.recall.diagnosis import WISHES_UNASKED
from palimpsest.core.redaction.redaction import redact
from palimpsest.domain import Account, Block, BlockKind, Compacted, Query, Role, Turn, frozen
from palimpsest.domain.errors import CompactionRefused
from palimpsest.domain.ports import Clock, Counts, Retriever, Wire
from palimpsest.memory.request.arrival import Arrival
from palimpsest.memory.request.request_reader import skipped
from palimpsest.memory.request.sized_executor import SizedExecutor
from palimpsest.store.journal import Journal
from palimpsest.wire import context_edit, messages, own_compaction
from palimpsest.wire.message import readable
from palimpsest.wire.provider_compaction import may_compact

CANDIDATES = 100  # that packing may choose from; a block holds some forty short messages
READ_SECONDS = 5.0  # for what an item stands for: nothing takes its place, and a store that needs longer is failing
FRESH_SECONDS = 60.0  # after which what an item names is on the disk, if it ever will be
ARRIVAL_SECONDS = 1.0  # that a new item is waited for: it may have been made by another process
LOOK_SECONDS = 0.05  # between two looks whether it is there
DAY_SECONDS = 86_400
FORGOTTEN = (
    "What was said before this point was compacted, and what stood for it is not in memory any more: messages that it "
    "was made of are forgotten. Say so if something of it is asked for."
)

log = structlog.get_logger()


@frozen
class WrittenOut:
    """The items of ours in a request: what the model sees in their place, as text by reference, and as blocks."""

    wire: Wire
    texts: dict[str, str]
    blocks: Sequence[Block]

    def in_place(self, body: bytes) -> bytes:
        """The body with messages in the place of these items; see `own_compaction.expand_items`."""
        return own_compaction.expand_items(body, self.wire, self.texts)


@frozen
class CompactionAnswer:
    """
    A compaction: the turn with what stands for the history, and content type and body of the answer.

    Without one, `body` goes to the provider, and its answer is to begin with the reference `opens_with`.
    """

    turn: Turn
    answer: tuple[str, bytes] | None = None
    body: bytes = b""
    opens_with: str = ""


@dataclass(slots=True)
class Compactions:
    """Makes compactions and writes them out; one per policy."""

    rules: Rules
    journal: Journal
    recall: Retriever
    counts: Counts
    work: SizedExecutor
    clock: Clock
    commit_of: Callable[[str], Awaitable[object] | None]  # of the answer to a turn; None: it is on the disk, or unknown

    @staticmethod
    def may_answer(body: bytes, wire: Wire) -> bool:
        """Whether a request may be one for a compaction; found without parsing it."""
        is_long = len(body) >= context_edit.LEAST_TRIGGER_TOKENS
        return may_compact(body, wire) or (wire is messages and is_long and context_edit.may_compact(body))

    async def answer(self, decision: Decision, turn: Turn, window_tokens: int, wire: Wire) -> CompactionAnswer | None:
        """
        Compact the history of a request.

        Returns:
            None: it asks for something else, the provider holds its history, or nothing new stands in it that a block
            could go with.

        Raises:
            MemoryFault: the archive could not be read.
            WireError: the body cannot be followed.
        """
        chat, edit = decision.reading.chat, None
        if chat.held or not turn.new:
            return None
        if wire is messages:
            edit = context_edit.context_edit(chat)
            if edit is None or decision.own_tokens < edit.trigger_tokens or decision.lineage.role is Role.SIDE:
                return None
        elif decision.lineage.role is not Role.SIDE or not chat.compacts:
            return None
        started = perf_counter()
        block, places = await self._compacted(decision, window_tokens, keeps_users=edit is None)
        tokens = self.rules.count(block.text, chat.model)
        turn = replace(turn, block=replace(block, tokens=tokens), anchor=turn.new[-1].position, quotes=places)
        key, now = self.rules.key(turn.tenant), self.clock()
        reference = seal(turn.id, now, self.rules.policy.memory.compaction_days * DAY_SECONDS, key)
        milliseconds = round((perf_counter() - started) * 1000)
        log.info("compaction answered", turn=turn.id, own_tokens=decision.own_tokens, tokens=tokens, ms=milliseconds)
        number = turn.id.partition("-")[2]
        if edit is None:
            return CompactionAnswer(turn, own_compaction.answer(chat, wire, reference, number, now))
        if edit.pauses:
            return CompactionAnswer(turn, context_edit.paused_answer(chat, reference, number))
        body = await self.work.run(len(chat.body), context_edit.compacted_body, chat.body, block.text)
        return CompactionAnswer(turn, body=body, opens_with=reference)

    async def write_out(self, arrival: Arrival) -> WrittenOut:
        """
        Look up what the items of ours in a request stand for.

        Raises:
            CompactionRefused: one of them is not this caller's, or out of date.
            WireError: the body cannot be followed.
        """
        texts: dict[str, str] = {}
        blocks: list[Block] = []
        body, wire, tenant, key = arrival.body, arrival.wire, arrival.tenant, arrival.request.key
        for item in await self.work.run(len(body), own_compaction.items_of, body, wire):
            named = unseal(item.reference, self.clock(), self.rules.key(tenant))
            try:
                async with asyncio.timeout(READ_SECONDS):
                    found = await self._found(tenant, named)
            except FAILED as failure:
                skipped("compaction", failure, self.counts)
                texts[item.reference] = own_compaction.UNREADABLE
                continue
            if found is not None and key is not None and not allows(key, found.user, found.scope):
                raise CompactionRefused(
                    "a compaction item in this request is of a user or project that this key is not for",
                    "compaction_item_invalid",
                )
            texts[item.reference] = found.block.text if found else FORGOTTEN
            blocks += [found.block] if found else []
        return WrittenOut(wire, texts, blocks)

    async def _found(self, tenant: str, named: CompactionSeal) -> Compacted | None:
        """What is stored; of a new item, once it is on the disk."""
        if (commit := self.commit_of(named.turn)) is not None:
            await asyncio.wait([asyncio.ensure_future(commit)])
        is_fresh = commit is None and self.clock() - named.made_at < FRESH_SECONDS
        for _ in range(int(ARRIVAL_SECONDS / LOOK_SECONDS) if is_fresh else 1):
            if (found := await self.journal.compacted(tenant, named.turn)) is not None:
                return found
            await asyncio.sleep(LOOK_SECONDS * is_fresh)
        return None

    async def _compacted(self, decision: Decision, window_tokens: int, keeps_users: bool) -> tuple[Block, Places]:
        """What stands for a history, and which of the request's own messages it quotes."""
        chat, tenant, lineage = decision.reading.chat, decision.diagnosis.speaker.tenant, decision.lineage
        conversation = lineage.parent if lineage.role is Role.SIDE else decision.conversation
        chars, last = room_chars(window_tokens), ""
        places: Places = ()
        is_stored = bool(conversation)
        if not (is_stored and await self.journal.is_partly_erased(tenant, conversation)):
            last, places = last_messages(chat.messages, int(chars * LAST_SHARE), keeps_users)
            last = redact(last) if self.rules.policy.archive.redact else last
        if not is_stored:
            return compacted(None, None, last), places
        users = [at for at in decision.reading.places if chat.messages[at].role == "user"]
        kept = users if keeps_users else users[-1:]
        seen = tuple(readable(chat.messages[at].text, chat.messages[at].calls) for at in kept)
        query = Query(
            tenant=tenant,
            conversation=conversation,
            text=seen[-1] if seen else "",
            lost=await self.journal.occurrences(tenant, conversation),
            visible_fulls=frozenset(decision.reading.prints[at].full for at in (*kept, *dict(places))),
            named=frozenset(tag for text in seen for tag in tags(text)),
            without_cleared=True,
            wishes=WISHES_UNASKED,
            account_chars=int(chars * ACCOUNT_SHARE),
            seen=(*seen, last),
        )
        account = (await self.recall.recall(query, 0)).account
        recalled = await self.recall.recall(_without_account(query, account), CANDIDATES)
        fit = partial(pack, recalled.candidates, quotes_budget(chars, account, last), BlockKind.RESTORE)
        quotes, _ = await self.work.run(chars, fit, query.text)
        return compacted(quotes, account, last), places


def _without_account(query: Query, account: Account | None) -> Query:
    """The query again, without an account, for passages that name something that this account does not."""
    told = tags("\n".join(line.text for line in account.lines)) if account else ()
    return replace(query, account_chars=0, named=frozenset((*(query.named or ()), *told)))
