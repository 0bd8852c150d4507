"""
The memory tools, as functions of who asks: search, fetch, recall of what a compaction took away, forgetting.

What they return quotes messages in the frame of a block (`wire/frame.py`), by which the archive knows it again when the
client sends it back as the result of a tool: memory does not feed on itself.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace

import orjson

from palimpsest.core.block.packing import READING, pack
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.recall.generosity import demanded
from palimpsest.core.recall.third_person import as_user
from palimpsest.domain import BLOCK_CLOSE, BlockKind, Budget, Candidate, Head, Json, Query, Recalled, Speaker, frozen
from palimpsest.domain.days import time_of
from palimpsest.domain.errors import ToolError
from palimpsest.domain.memories import Memory
from palimpsest.domain.ports import Clock, Retriever
from palimpsest.features.tool import reach_of
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.targets import target_of
from palimpsest.settings.policy import Policy
from palimpsest.store.engine import Engine
from palimpsest.store.turns.branch_heads import lost_heads
from palimpsest.store.turns.messages import ShownMessage, message, message_with_neighbours
from palimpsest.wire.frame import opened, quotation

RESULTS = 8  # some 2,000 characters: an agent asks again, or fetches, where it wants more
MAX_RESULTS = 40
BLOCK_CHARS = 6_000  # as a restore: more dilutes what was asked for
PASSAGE_CHARS = 1_000  # one window of the index
FETCH_CHARS = 16_000  # of one message at a time, some 4,000 tokens
NEAREST = 3  # quoted where nothing is likely: enough to see that it is not there
LEAST_WORTH = 0.002  # probability for each 100 characters; an agent that asks reads more than one that did not
NEIGHBOURS = 2  # messages before and after a fetched one
MAX_NEIGHBOURS = 10
CONVERSATIONS = 5  # compacted ones, the newest first, among which a question may find its own
CONFIRM_SECONDS = 600  # between a preview of what would be forgotten and its confirmation
LONGEST_ID_DIGITS = 16  # fits into an integer of the database


@frozen
class Result:
    """One message of a result: `id` is what `fetch` takes."""

    id: str
    conversation: str
    role: str
    date: str  # ISO 8601, UTC
    probability: float | None = None  # of answering the question


@frozen
class Quotation:
    """What a tool returns: `text` quotes the messages, `results` says where each comes from, in the same order."""

    text: str
    results: tuple[Result, ...]
    is_likely: bool = True  # memory would have said it without being asked


class MemoryTools:
    """The tools over one archive."""

    def __init__(
        self, database: Engine, recall: Retriever, forgetting: Forgetting, policy: Policy, secret: bytes, clock: Clock
    ) -> None:
        self._database = database
        self._recall = recall
        self._forgetting = forgetting
        self._policy = policy
        self._secret = secret
        self._clock = clock

    async def search(self, speaker: Speaker, question: str, conversation: str = "", limit: int = RESULTS) -> Quotation:
        """
        Search for messages that answer a question, best first.

        Args:
            conversation: only in this one; "": in all that the speaker's requests may look at.

        Raises:
            MemoryFault: it could not be looked up.
            ToolError: it may not be looked up like this.
        """
        if conversation:
            query = Query(speaker.tenant, conversation, question)
        else:
            query = replace(self._within(speaker), text=question)
        recalled = await self._recalled(query, max(1, min(limit, MAX_RESULTS)))
        return self._quotation(recalled, question)

    async def fetch(self, speaker: Speaker, id: str, start: int = 0, neighbours: int = NEIGHBOURS) -> Quotation:
        """
        One message in full, or 16,000 characters of it, between those before and after it.

        Args:
            id: of a result.
            start: offset in characters, where the message is longer than one answer.

        Raises:
            MemoryFault: it could not be looked up.
            ToolError: there is no such message.
        """
        conversation, _, number = id.rpartition("/")
        occurrence = int(number) if number.isdecimal() and len(number) < LONGEST_ID_DIGITS else 0
        tenant = speaker.tenant
        found = await self._database.ask(lambda ask: message(ask, tenant, conversation, occurrence), tenant)
        if found is None or not found.text:
            raise ToolError(f"{id}: no such message; it was forgotten, or the id is not from a result")
        count = max(0, min(neighbours, MAX_NEIGHBOURS))
        beside = await self._database.ask(lambda ask: message_with_neighbours(ask, tenant, found, count), tenant)
        text, goes_on = found.text[start : start + FETCH_CHARS], start + FETCH_CHARS < len(found.text)
        whole = [replace(found, text=text) if one == found else _shortened(one) for one in beside]
        note = f"{READING} The message {id} goes on: fetch it with start {start + FETCH_CHARS}." if goes_on else READING
        return Quotation(_framed(whole, note), tuple(map(_result_of, whole)))

    async def recall_lost(self, speaker: Speaker, question: str = "", conversation: str = "") -> Quotation:
        """
        Quote what compactions removed from a conversation and its newest request no longer contains.

        Args:
            question: "": what names and tells most.
            conversation: "": the newest that was compacted; with a question, that of the newest which answers it best.

        Raises:
            MemoryFault: it could not be looked up.
            ToolError: it may not be looked up like this.
        """
        scope = Query(speaker.tenant, conversation, "") if conversation else self._within(speaker)
        heads = await self._database.ask(
            lambda ask: lost_heads(ask, speaker.tenant, conversation, scope.user, scope.scope, CONVERSATIONS),
            speaker.tenant,
        )
        best = Recalled((), False, "no conversation was compacted")
        for head in heads if question else heads[:1]:
            recalled = await self._recalled(_of_lost(speaker, head, question), MAX_RESULTS)
            if not best.candidates or recalled.helps > best.helps:
                best = recalled
        return self._quotation(best, question)

    async def preview_forgetting(self, speaker: Speaker, given: Json) -> Json:
        """
        What would be forgotten, counted, and the token that confirms it for ten minutes.

        Raises:
            MemoryFault: it could not be looked up.
            PolicyError, ToolError: nothing that is stored is meant.
        """
        target = target_of({**given, "tenant": speaker.tenant}, self._clock())
        preview = await self._forgetting.preview(target)
        if preview is None:
            raise ToolError("nothing stored matches, so nothing can be forgotten")
        until = int(self._clock()) + CONFIRM_SECONDS
        return {"would_forget": preview.counts, "confirm": f"{until}.{self._seal(speaker, given, until)}"}

    async def forget(self, speaker: Speaker, given: Json, confirm: str) -> Json:
        """
        Erase what a preview counted, and return the receipt.

        Raises:
            MemoryFault: it was not finished.
            ToolError: the token does not confirm this, or not any more, or the speaker's key only reads.
        """
        if speaker.is_read_only:
            raise ToolError("this key is read-only")
        until, _, seal = confirm.partition(".")
        is_number = until.isdecimal() and len(until) < LONGEST_ID_DIGITS
        if not (is_number and hmac.compare_digest(seal.encode(), self._seal(speaker, given, int(until)).encode())):
            raise ToolError("confirm: not the token for exactly these arguments; call without it first")
        if int(until) < self._clock():
            raise ToolError("confirm: the token is older than ten minutes; call without it again")
        receipt = await self._forgetting.erase(target_of({**given, "tenant": speaker.tenant}, self._clock()))
        if receipt is None:
            raise ToolError("nothing stored matches any more")
        return receipt

    async def _recalled(self, query: Query, limit: int) -> Recalled:
        """Recall; for a question about "the user" also in the first person, and return the better result."""
        recalled = await self._recall.recall(query, limit)
        if (own := as_user(query.text)) == query.text:
            return recalled
        asked = await self._recall.recall(replace(query, text=own), limit)
        return asked if asked.candidates and asked.helps > recalled.helps else recalled

    def _within(self, speaker: Speaker) -> Query:
        """The scope that the speaker's requests may search; see `reach_of`."""
        reach = reach_of(speaker, self._policy)
        return Query(speaker.tenant, "", "", reach=reach, user=speaker.user, scope=speaker.scope)

    def _quotation(self, recalled: Recalled, question: str) -> Quotation:
        """Quote what recall found in a block; of what is unlikely, or was not asked for, only the first few."""
        is_likely = (
            not question or recalled.helps >= demanded(self._policy.memory.generosity, BlockKind.RECALL).least_help
        )
        candidates = recalled.candidates if is_likely else recalled.candidates[:NEAREST]
        worth = LEAST_WORTH if question and is_likely else 0.0
        block, _ = pack(candidates, Budget(BLOCK_CHARS, PASSAGE_CHARS, worth), BlockKind.RESTORE, question)
        if block is None:
            return Quotation(f"Nothing is stored that this could find: {recalled.reason}.", (), is_likely=False)
        best: dict[int, Candidate] = {}
        for candidate in candidates:
            best.setdefault(candidate.memory.occurrence, candidate)
        quoted = [best[at] for at in block.occurrences]
        results = tuple(_result_of(one.memory, round(one.probability, 3) if question else None) for one in quoted)
        return Quotation(block.text, results, is_likely)

    def _seal(self, speaker: Speaker, given: Json, until: int) -> str:
        """A keyed hash that lets a tenant confirm an erasure until some time."""
        meant = orjson.dumps([until, speaker.tenant, given], option=orjson.OPT_SORT_KEYS)
        return hmac.new(tenant_key(self._secret, speaker.tenant), b"forget\0" + meant, hashlib.sha256).hexdigest()[:32]


def _of_lost(speaker: Speaker, head: Head, question: str) -> Query:
    """A query for what a conversation lost; without a question, for all of it."""
    return Query(
        speaker.tenant,
        head.conversation,
        question,
        lost=frozenset(head.lost),
        visible_fulls=frozenset(head.fulls),
        named=None if question else frozenset(),
    )


def _result_of(said: Memory | ShownMessage, probability: float | None = None) -> Result:
    id, date = f"{said.conversation}/{said.occurrence}", time_of(said.created_at)
    return Result(id, said.conversation, said.role, date, probability)


def _shortened(said: ShownMessage) -> ShownMessage:
    """A neighbouring message, cut to its beginning."""
    return said if len(said.text) <= PASSAGE_CHARS else replace(said, text=said.text[:PASSAGE_CHARS] + "…")


def _framed(messages: Sequence[ShownMessage], reading: str) -> str:
    """Messages as a block of quotations, with a line for each new day."""
    lines, day = [], ""
    for said in messages:
        if (today := time_of(said.created_at)[:10]) != day:
            lines.append(f"[{today}]\n")
            day = today
        lines.append(quotation(said.role, said.text))
    return opened(BlockKind.RECALL, reading) + "".join(lines) + BLOCK_CLOSE
