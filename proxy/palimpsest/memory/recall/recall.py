"""
Recall: what is stored that answers a question. The indexes are asked, passages ranked and judged, the best ones read.

Nothing relevant means no block, the normal case. "Could not look" is a `MemoryFault`; "nothing found" is an answer.
"""

from __future__ import annotations

import asyncio
import functools
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import structlog

from palimpsest.core.archive.chunking import (
    TOOL_ROLES,
    WISHES,
    identifiers,
    names,
    query_terms,
    tags,
    tells,
    tells_time,
    terms,
    without_names,
)
from palimpsest.core.recall.coverage import LostPassage, by_coverage
from palimpsest.core.recall.dates import periods
from palimpsest.core.recall.ranking import (
    PROBABILITY,
    RECIPE,
    WEIGHTS,
    Asked,
    Bools,
    Floats,
    PassageTable,
    Ranked,
    Recipe,
    Rows,
    as_ranked,
    by_worth,
    diversified,
    rank,
    ranks,
)
from palimpsest.core.recall.relevance import Relevance, relevance
from palimpsest.core.recall.similarity import Meanings
from palimpsest.core.recall.small_loss import small_loss
from palimpsest.core.recall.utterance import read
from palimpsest.core.work.account import Lost, account
from palimpsest.core.work.calls import is_machine, written_edits
from palimpsest.core.work.names import is_file
from palimpsest.core.work.names import names as work_names
from palimpsest.domain import Account, Candidate, Memory, Query, Recalled
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock, Embedder, LookupCounts, Vectors
from palimpsest.memory.index.full_text import Found, find
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.fresh_passages import EmbedAside, FreshPassages
from palimpsest.memory.recall.updates import with_updates
from palimpsest.settings.policy import RecallPolicy
from palimpsest.store.engine import Ask, Engine, Row
from palimpsest.store.search.passages import newest_texts, passages_of, texts_of
from palimpsest.store.search.scope import Scope, scope_of
from palimpsest.store.turns.cleared import cleared_in

if TYPE_CHECKING:
    from palimpsest.memory.index.item_keys import ItemKeys

NOTHING_STORED = "nothing is stored that recall may look at"
# Of a question that is embedded a second time, without its names: it takes as long again. Beside what longer ones say,
# names weigh little: questions of LoCoMo, joined or behind other texts, and of BEAM find as much, to .003.
NAMED_CHARS = 120
JUDGED_PASSAGES = 100  # the best by rank; behind them stands one answer in fifty, and judging takes its time
REPEATED = 3  # times as many passages are looked at as are wanted, before all are: few messages are said twice
LEAST_MESSAGE_CHARS = 10  # on average; more lost messages are no small loss, and need not be looked at
CLEARED_SECONDS = 3600.0  # that a cleared conversation stays out of others: the task that it was cleared for
LAST_BITS = 0xFFFF  # of a number, in which 99 of 100 differ from each of a conversation's messages
# Of lost work, the newest is read for its account, in some 30 ms. More gains nothing: what is older is needed less.
WORK_FILES = 2  # that several messages of a talk name: it is about work, though no tool was called
TYPED_CHARS, TYPED_WORDS = 600, 4  # of what somebody typed: more was pasted, less answers what is lost
ALIKE = 0.7  # of the words of two requests that name the same, from which on they ask for the same
READ_CHARS, READ_MESSAGES, MESSAGE_CHARS = 120_000, 400, 8_000
EVERY_KIND = len(RecallPolicy().kinds)
ORDERS: Mapping[str, dict[str, Any]] = {
    "fitted": {},
    "rrf": {"fusion": "rrf", "by_room": False},
    "cosine": {
        "weights": dict.fromkeys((*WEIGHTS, "named"), 0.0) | {"meaning": 1.0},
        "reach_passages": 0,
        "mmr_lambda": 1.0,
        "by_room": False,
    },
}
"""By `recall.fusion`, what differs in the recipe."""

WISH_ABOVE = 0.12  # cosine over the mean of the scope: of three wishes that come to unrelated prompts, one is below

log = structlog.get_logger()


class Recall:
    """Implements `palimpsest.domain.ports.Retriever`."""

    def __init__(
        self,
        database: Engine,
        tables: PassageTables,
        embedder: Embedder,
        counts: LookupCounts,
        clock: Clock,
        recipe: Recipe = RECIPE,
        model_loaded: Callable[[], Awaitable[bool]] | None = None,
        keys: Callable[[], ItemKeys | None] = lambda: None,
        embed_aside: EmbedAside | None = None,
        chosen: Callable[[], RecallPolicy] = RecallPolicy,
    ) -> None:
        """
        Args:
            model_loaded: waits a moment for a model that is being loaded.
            keys: what else leads to passages, as the policy in force has it; None: nothing does.
            embed_aside: embeds what was said last; None: it is found by its words until it is indexed.
            chosen: how it looks up, as the policy in force has it.
        """
        self._chosen = chosen
        self._database = database
        self._tables = tables
        self._embedder = embedder
        self._counts = counts
        self._clock = clock
        self._recipe = recipe
        self._model_loaded = model_loaded
        self._keys = keys
        self._fresh = FreshPassages(database, tables, embed_aside) if embed_aside else None
        self._expected: set[asyncio.Future[Vectors | None]] = set()

    def expect(self, text: str) -> None:
        """Begin to embed a question that will probably be asked; the embedder remembers it."""
        if self._embedder.ready:
            embedding = asyncio.ensure_future(self._vectors(text))
            self._expected.add(embedding)  # the event loop itself would forget it
            embedding.add_done_callback(self._expected.discard)

    async def recall(self, query: Query, limit: int) -> Recalled:
        """Best candidates first, visible and excluded ones left out."""
        started = perf_counter()
        recalled = await self._recall(query, limit)
        if query.account_chars and query.named is None:
            recalled = replace(recalled, account=await self._accounted(query))
        elapsed = perf_counter() - started
        self._counts.observe("recall", elapsed)
        return replace(recalled, elapsed_ms=elapsed * 1000)

    async def _recall(self, query: Query, limit: int) -> Recalled:
        if query.named is not None:
            return await self._recall_lost(query, query.named, limit)
        questions = (query.text, *(query.plan.questions if query.plan else ()))
        try:
            async with asyncio.TaskGroup() as looking:
                embedding = [looking.create_task(self._vectors(question)) for question in questions]
                reading = looking.create_task(self._database.ask(functools.partial(self._look, query, questions)))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        found, (vectors, *more_vectors) = reading.result(), [task.result() for task in embedding]
        if found is None:
            return Recalled((), False, NOTHING_STORED)
        scope, table, eligible, lost, (asked, *more_asked) = found
        if vectors is not None and self._fresh is not None:
            newest_first = table.ids[np.flatnonzero(eligible & ~table.embedded)[::-1]]
            await self._fresh.provide(query.tenant, scope, newest_first.tolist())
        unindexed, eligible_count = int((eligible & ~table.embedded).sum()), int(eligible.sum())

        def judge(ask: Ask, query: Query, near: Vectors | None, asked: Asked) -> tuple[str, Ranked | None, float]:
            return self._judge(ask, scope, query, table, eligible, lost, near, asked, limit)

        def choose(ask: Ask) -> Recalled:
            reason, best, helps = judge(ask, query, vectors, asked)
            if best is not None and more_asked and helps >= query.least_help:  # the question itself admits, or nothing
                others = [
                    judge(ask, replace(query, text=also.text, least_help=0.0, wishes=0, whole_chars=0), near, also)[1]
                    for near, also in zip(more_vectors, more_asked, strict=True)
                ]
                from palimpsest.core.recall.query_plan import interleave  # few policies make plans

                best = interleave([best, *filter(None, others)], limit)
            candidates = () if best is None else _candidates(ask, query.tenant, table, best)
            if candidates and vectors is not None and (keys := self._keys()) is not None:
                words = [*asked.found, *asked.absent]
                noted = keys.tier(ask, scope, table, eligible, words, vectors[0], self._clock())
                likely = max(one.probability for one in candidates)
                candidates = (*(replace(one, probability=likely) for one in noted), *candidates)
            return Recalled(
                *(candidates, bool(candidates), reason, vectors is None),
                helps=helps,
                unindexed=unindexed,
                eligible=eligible_count,
            )

        return await self._database.ask(choose)  # milliseconds in a large scope: off the event loop

    async def _recall_lost(self, query: Query, named: frozenset[str], limit: int) -> Recalled:
        """What this conversation lost, by what nothing that stands names: nobody has asked for anything yet."""
        found = await self._database.ask(lambda ask: scope_of(ask, query))
        if found is None:
            return Recalled((), False, NOTHING_STORED)

        def choose(ask: Ask) -> tuple[tuple[Candidate, ...], Account | None]:
            rows = _uncleared(ask, *found, query)
            account = _account(ask, rows, query)
            also = frozenset() if account is None else frozenset(tags("\n".join(line.text for line in account.lines)))
            is_work = account is not None and not account.is_talk
            best = _said(rows, query, limit) if is_work else _covering(rows, query, named | also, limit)
            follows = {after: before for (_, before, *_), (after, *_) in pairwise(rows)}
            memories = _memories(ask, query.tenant, {id: follows.get(id, 0) for id, _ in best})
            candidates: list[Candidate] = []
            for place, (id, gain) in enumerate(best, start=1):
                if id in memories and not (is_work and _says_little(memories[id].text, candidates)):
                    candidates.append(Candidate(memories[id], gain, {"coverage": (place, gain)}))
            return tuple(candidates), account

        candidates, account = await self._database.ask(choose)
        reason = "nothing is asked: what the compaction removed, by what it names"
        return Recalled(candidates, bool(candidates), reason, account=account)

    async def _accounted(self, query: Query) -> Account | None:
        """What was done in what this conversation lost; None where it was a talk, or nothing of it is stored."""

        def look(ask: Ask) -> Account | None:
            found = scope_of(ask, query)
            return _account(ask, _uncleared(ask, *found, query), query) if found is not None and found[1] else None

        return await self._database.ask(look)

    def _look(
        self, query: Query, questions: Sequence[str], ask: Ask
    ) -> tuple[Scope, PassageTable, Bools, Bools, list[Asked]] | None:
        """
        The scope, what it holds, what of it may come, what the conversation lost, and the questions without their
        meanings: those come later.
        """
        found = scope_of(ask, query)
        if found is None:
            return None
        scope, own = found
        chosen = self._chosen()
        table = (self._tables if chosen.cache else self._tables.empty()).table(ask, scope)
        now = self._clock()
        asked = [_asked(text, now, find(ask, scope, table, query_terms(text))) for text in questions]
        cleared = cleared_in(ask, scope.tenant, own, now - CLEARED_SECONDS) if query.without_cleared else {}
        kept = _not_cleared(table, cleared)
        eligible, lost = _eligible(table, query, own), _lost(table, query, own)
        if len(chosen.kinds) < EVERY_KIND or chosen.reinforcement:
            eligible, asked = _restricted(ask, scope, table, chosen, eligible, asked)
        return scope, table, *((eligible, lost) if kept is None else (eligible & kept, lost & kept)), asked

    def _judge(
        self,
        ask: Ask,
        scope: Scope,
        query: Query,
        table: PassageTable,
        eligible: Bools,
        lost: Bools,
        vectors: Vectors | None,
        asked: Asked,
        limit: int,
    ) -> tuple[str, Ranked | None, float]:
        """Why something comes, what, best first, and how probably it helps; or why nothing does, and None."""
        if not eligible.any():
            return "no stored passage may be used: all are visible, excluded or not lost", None, 0.0
        asked = _estimated(_compared(asked, table, vectors), table.embedded, eligible)
        chosen = self._chosen()
        if chosen.floor is not None and asked.cosines is not None:
            eligible = eligible & (asked.cosines >= chosen.floor)
            query = replace(query, least_help=0.0)
        once, judged = self._ranked(table, asked, eligible, limit)
        certain = _wishes(table, asked, eligible, query.wishes)
        whole = small_loss(table, lost, lost & eligible, asked, query.whole_chars)
        if len(whole):
            certain = _whole(whole) if certain is None else _in_front(certain, _whole(whole))
        if once is None or judged is None:
            return "no passage is similar, and none has a word of the question", certain, 0.0
        reason = f"helps with a probability of {judged.helps:.2f}; {query.least_help:.2f} is required"
        reason += "; all that was lost is little, and comes" if len(whole) else ""
        if judged.helps < query.least_help:
            return reason, certain, judged.helps
        passages, boosted = judged.passages, self._boosted(ask, scope, table, asked, vectors)
        if boosted is not None:  # keys choose among passages; whether any help at all is said by their own texts
            nearer, rejudged = self._ranked(table, _nearer(asked, boosted[0]), eligible, limit)
            if nearer is not None and rejudged is not None:
                once, passages = nearer, rejudged.at(judged.helps)
        if query.plan is not None:
            from palimpsest.core.recall.query_plan import apply_preferences

            passages = apply_preferences(table, once, passages, query.plan)
        best = by_worth(once, passages, table.lengths[once.rows]) if chosen.fusion == "fitted" else as_ranked(once)
        best = diversified(best, table.vectors, self._recipe_now.mmr_lambda).part(slice(limit))
        if boosted is not None and (keys := self._keys()) is not None:
            keys.note(boosted[1], best.rows)
        best = with_updates(ask, scope, query.tenant, table, best, eligible)
        return reason, best if certain is None else _in_front(certain, best), judged.helps

    def _ranked(
        self, table: PassageTable, asked: Asked, eligible: Bools, limit: int
    ) -> tuple[Ranked | None, Relevance | None]:
        """Passages in their order, each message once, and what they are worth; None: there is nothing to rank."""
        ranked = rank(table, asked, eligible, self._clock(), self._recipe_now)
        once = ranked.part(_first_of_equals(table, ranked.rows, max(limit, JUDGED_PASSAGES)))
        return (once, relevance(table, asked, once)) if len(once.rows) else (None, None)

    @property
    def _recipe_now(self) -> Recipe:
        return replace(self._recipe, **ORDERS[self._chosen().fusion])

    def _boosted(
        self, ask: Ask, scope: Scope, table: PassageTable, asked: Asked, vectors: Vectors | None
    ) -> tuple[Floats, Rows] | None:
        """How much nearer items and relations make each passage, and by which item; None: they are off."""
        if vectors is None or asked.cosines is None or (keys := self._keys()) is None:
            return None
        return keys.boost(ask, scope, table, [*asked.found, *asked.absent], vectors[0], asked.cosines, self._clock())

    async def _vectors(self, text: str) -> Vectors | None:
        """
        Of the question, and of what a short one says without names if it has any: (1 or 2, dimensions). None: there is
        no model.
        """
        if not self._embedder.ready and (self._model_loaded is None or not await self._model_loaded()):
            return None
        try:
            forms = dict.fromkeys((text, text if len(text) > NAMED_CHARS else without_names(text)))
            return await self._embedder.embed_queries([*forms])
        except MemoryFault as fault:
            self._counts.fault("embed_query")
            log.warning("recall is lexical only", reason=str(fault))
            return None


def _candidates(ask: Ask, tenant: str, table: PassageTable, best: Ranked) -> tuple[Candidate, ...]:
    """The best passages with their texts, and what each signal said of them; thanks and greetings tell nothing."""
    ids, before = table.ids[best.rows].tolist(), table.before[best.rows]
    follows = np.where(before >= 0, table.occurrences[before], 0).tolist()
    memories = _memories(ask, tenant, dict(zip(ids, follows, strict=True)))
    signals = {name: values for name, values in best.signals.items() if name != PROBABILITY}
    listed = zip(*(zip(ranks(v).tolist(), v.tolist(), strict=True) for v in signals.values()), strict=True)
    rows = zip(ids, best.scores.tolist(), listed, best.signals[PROBABILITY].tolist(), strict=True)
    return tuple(
        Candidate(memories[id], score, dict(zip(signals, said, strict=True)), probability)
        for id, score, said, probability in rows
        if id in memories and not read(memories[id].text).is_small_talk
    )


def _memories(ask: Ask, tenant: str, follows: Mapping[int, int]) -> dict[int, Memory]:
    """The memories with these ids, which follow these occurrences. What was forgotten meanwhile is left out."""
    return {
        id: Memory(
            id=id,
            occurrence=occurrence,
            conversation=conversation,
            position=occurrence,
            role=role,
            text=text,
            created_at=created_at,
            start=start,
            stop=stop,
            tags=tuple(tags.split()),
            follows=follows[id],
        )
        for id, occurrence, conversation, role, text, created_at, start, stop, tags in texts_of(ask, tenant, [*follows])
    }


def _restricted(
    ask: Ask, scope: Scope, table: PassageTable, chosen: RecallPolicy, eligible: Bools, asked: list[Asked]
) -> tuple[Bools, list[Asked]]:
    """What may come by its kind and by how it stands, and the questions with that."""
    from palimpsest.core.recall.reinforcement import standing  # few policies want either
    from palimpsest.store.search.scope import passages_of_kinds, rounds_of

    if len(chosen.kinds) < EVERY_KIND:
        eligible = eligible & np.isin(table.ids, passages_of_kinds(ask, scope, chosen.kinds))
    if chosen.reinforcement:
        stands = standing(table.occurrences, rounds_of(ask, scope))
        eligible, asked = eligible & stands.may_come, [replace(one, standing=stands.worth) for one in asked]
    return eligible, asked


def _wishes(table: PassageTable, asked: Asked, eligible: Bools, count: int) -> Ranked | None:
    """The user's lasting wishes, those nearest to the question first, the newer of equals; None: none is near."""
    if not count:
        return None
    rows = np.flatnonzero(table.wishes & eligible)[::-1]
    if asked.cosines is not None and len(rows):
        rows = rows[asked.cosines[rows] >= asked.cosines[eligible].mean() + WISH_ABOVE]
    if not len(rows):
        return None
    near = np.zeros(len(rows)) if asked.cosines is None else asked.cosines[rows]
    order = np.argsort(-near, kind="stable")[:count]
    return Ranked(rows[order], near[order], {PROBABILITY: np.ones(len(order)), "wish": near[order]})


def _whole(rows: Rows) -> Ranked:
    """All that was lost, none of it more probable than the rest."""
    ones = np.ones(len(rows))
    return Ranked(rows, ones, {PROBABILITY: ones, "whole": ones})


def _in_front(certain: Ranked, best: Ranked) -> Ranked:
    """What comes whatever is asked, then what answers the question; each passage once."""
    rest = best.part(~np.isin(best.rows, certain.rows))
    signals = {
        name: np.concatenate([certain.signals.get(name, np.zeros(len(certain.rows))), values])
        for name, values in rest.signals.items()
    }
    return Ranked(np.concatenate([certain.rows, rest.rows]), np.concatenate([certain.scores, rest.scores]), signals)


def _uncleared(ask: Ask, scope: Scope, own: int, query: Query) -> list[Row]:
    """The passages of a conversation (`passages_of`), without what was cleared where the query leaves that out."""
    cleared = cleared_in(ask, scope.tenant, own, math.inf).get(own, 0) if query.without_cleared else 0
    return [row for row in passages_of(ask, own) if row[1] > cleared]


def _account(ask: Ask, rows: Sequence[Row], query: Query) -> Account | None:
    """The account of work in the lost messages among these passages (`passages_of`)."""
    if not query.account_chars or query.lost is None:
        return None
    lost = {
        occurrence: role in TOOL_ROLES
        for _, occurrence, full, role, *_ in rows
        if occurrence in query.lost and full not in query.visible_fulls
    }
    is_talk = not any(lost.values())
    room = READ_CHARS
    read: list[Lost] = []
    for row in reversed(newest_texts(ask, lost.keys(), READ_MESSAGES, MESSAGE_CHARS)):
        read.append(Lost(*row))
        room -= len(read[-1].text)
        if room < 0:
            break
    if is_talk and not any(one.role == "assistant" and written_edits(one.text) for one in read):
        is_talk = not is_machine([one.text for one in read if one.role == "user"])
        files = Counter(name for one in read for name in {*work_names(one.text)} if is_file(name))
        # answers about anything name examples of files once; a talk about work comes back to some
        if sum(messages > is_talk for messages in files.values()) < WORK_FILES:
            return None
    else:
        is_talk = False
    # who asks something in a talk mostly wants an answer: all of an account held hardly an answer more
    chars = query.account_chars // 2 if is_talk and query.named is None else query.account_chars
    return replace(account(read[::-1], query.seen, chars), is_talk=is_talk)


def _said(rows: Sequence[Row], query: Query, limit: int) -> list[tuple[int, float]]:
    """
    What people said in lost work, as they type it: wishes, then the newest, from all passages of its conversation.

    The account tells what was done and named; what is long was pasted, or put together by a client.
    """
    chars: Counter[int] = Counter()
    for _, occurrence, _, role, length, _ in rows:
        chars[occurrence] += length if role == "user" else TYPED_CHARS + 1
    typed = [
        (id, tags)
        for id, occurrence, full, _, _, tags in reversed(rows)
        if chars[occurrence] <= TYPED_CHARS and full not in query.visible_fulls and _may_come(occurrence, query)
    ]
    wishes = [id for id, tags in typed if WISHES in tags.split()][: query.wishes]
    newest = [id for id, _ in typed if id not in wishes]
    return [(id, 1.0) for id in (*wishes, *newest)][:limit]


def _says_little(text: str, newer: Sequence[Candidate]) -> bool:
    """Whether words tell nobody anything who did not hear what they answered, a client wrote them, or newer ones do."""
    if text.startswith(("<", "[")) or len(text.split()) < TYPED_WORDS or read(text).is_small_talk:
        return True
    terms, named = set(query_terms(text)), work_names(text)
    others = ((set(query_terms(one.memory.text)), work_names(one.memory.text)) for one in newer)
    return any(named == also and len(terms & other) >= ALIKE * len(terms | other) for other, also in others)


def _may_come(occurrence: int, query: Query) -> bool:
    return occurrence not in query.excluded and (query.lost is None or occurrence in query.lost)


def _covering(rows: Sequence[Row], query: Query, named: frozenset[str], limit: int) -> list[tuple[int, float]]:
    """What was lost, by what it names, from all passages of its conversation (`passages_of`)."""
    visible = query.visible_fulls
    shown = named.union(*(tags.split() for _, _, full, _, _, tags in rows if full in visible))
    lost = [
        LostPassage(
            *(id, chars, frozenset(tags.split()), role in ("tool", "function")),
            tells(tags.split()) if role == "user" else 0.0,
        )
        for id, occurrence, full, role, chars, tags in rows
        if full not in visible and _may_come(occurrence, query)
    ]
    wishes = [one for one in reversed(lost) if WISHES in one.tags][: query.wishes]
    held = {one.id for one in wishes}
    covering = by_coverage([one for one in lost if one.id not in held], shown, limit, with_prose=query.with_prose)
    most = covering[0][1] if covering else 0.0
    return [(one.id, gain) for one, gain in (*((one, most) for one in wishes), *covering)][:limit]


def _asked(text: str, now: float, words: Found) -> Asked:
    """The question by its words: which passages hold them, and whom it names that nobody knows."""
    absent = [term for term in words.absent if not tells_time(term)]
    strange = [not set(terms(name)).isdisjoint(absent) for name in names(text)]
    return Asked(
        cosines=None,
        found=words.rows,
        text=text,
        absent=tuple(absent),
        identifiers=identifiers(text, words.rows),
        words=frozenset(re.findall(r"\w+", text.lower())),
        periods=periods(text, now),
        strangers=sum(strange) / max(len(strange), 1),
    )


def _compared(asked: Asked, table: PassageTable, vectors: Vectors | None) -> Asked:
    """The question with how near each passage is to it."""
    if vectors is None:
        return asked
    cosines, about = Meanings(table.vectors, table.signs).cosines(vectors)
    return replace(asked, cosines=cosines, about=about)


def _nearer(asked: Asked, boost: Floats) -> Asked:
    """The same with every passage so much nearer to the question."""
    if asked.cosines is None:
        return asked
    return replace(asked, cosines=asked.cosines + boost, about=None if asked.about is None else asked.about + boost)


def _estimated(asked: Asked, embedded: Bools, eligible: Bools) -> Asked:
    """
    With passages that have no vector yet as near to the question as the mean of those that have one.

    Where most have none, words alone count: of which of them stand out, nothing can be said. A cosine of 0, which is
    below nearly all, hides them behind whatever was embedded first: LoCoMo, any evidence at 6,000 characters, .90 with
    30 % embedded, against .943 by words and .944 by the mean.
    """
    if asked.cosines is None or asked.about is None or embedded.all():
        return asked
    known = embedded & eligible
    if 2 * known.sum() < eligible.sum():
        return replace(asked, cosines=None, about=None)
    cosines, about = (np.where(embedded, given, given[known].mean()) for given in (asked.cosines, asked.about))
    return replace(asked, cosines=cosines, about=about)


def _eligible(table: PassageTable, query: Query, own: int) -> Bools:
    """What may come: lost by this conversation, or said in another one in reach; neither visible nor said already."""
    kept = np.ones(len(table), np.bool_)
    if query.lost is not None:
        rows = np.flatnonzero(table.conversations == own)
        kept[rows] = _among(table.occurrences[rows], query.lost)
    for values, unwanted in ((table.fulls, query.visible_fulls), (table.occurrences, query.excluded)):
        if unwanted:
            kept &= ~_among(values, unwanted)
    return kept


def _not_cleared(table: PassageTable, cleared: Mapping[int, int]) -> Bools | None:
    """What users did not drop on purpose; None: all of it. `cleared`: last occurrences by conversation."""
    if not cleared:
        return None
    kept = np.ones(len(table), np.bool_)
    for conversation, last in cleared.items():
        kept &= (table.conversations != conversation) | (table.occurrences > last)
    return kept


def _lost(table: PassageTable, query: Query, own: int) -> Bools:
    """What this conversation lost and the model no longer sees, in replayed blocks or nowhere: (n,)."""
    lost = np.zeros(len(table), np.bool_)
    if query.whole_chars and query.lost and len(query.lost) <= query.whole_chars // LEAST_MESSAGE_CHARS:
        rows = np.flatnonzero(table.conversations == own)
        rows = rows[_among(table.occurrences[rows], query.lost)]
        lost[rows[~_among(table.fulls[rows], query.visible_fulls)]] = True
    return lost


def _among(values: Rows, wanted: Collection[int]) -> Bools:
    """
    Which of n values are among some wanted ones: (n,).

    Sorting a hundred thousand takes 4 ms. So those that end in other bits than all wanted ones are left out first.
    """
    numbers = np.fromiter(wanted, np.int64, len(wanted))
    ends = np.zeros(LAST_BITS + 1, np.bool_)
    ends[numbers & LAST_BITS] = True
    rows = np.flatnonzero(ends.take(values & LAST_BITS))
    found = np.zeros(len(values), np.bool_)
    found[rows] = np.isin(values[rows], numbers)
    return found


def _first_of_equals(table: PassageTable, rows: Rows, count: int) -> Rows:
    """Places of the first `count` of these rows; of messages that say the same only the one that comes first."""
    first: Rows = np.empty(0, np.int64)
    for looked_at in (REPEATED * count, len(rows)):
        fulls, occurrences = table.fulls[rows[:looked_at]], table.occurrences[rows[:looked_at]]
        _, at, group = np.unique(fulls, return_index=True, return_inverse=True)
        first = np.flatnonzero(occurrences == occurrences[at][group])[:count]
        if len(first) == count:
            break
    return first
