"""
Recall: what is stored that answers a question. The indexes are asked, passages ranked and judged, the best ones read.

Nothing relevant means no block, the normal case. "Could not look" is a `MemoryFault`; "nothing found" is an answer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.ma  # else the first request waits for it: `np.unique` looks for masks
import structlog

from palimpsest.core.archive.chunking import WISHES, query_terms, tags, without_names
from palimpsest.core.recall.asking_back import asks_back
from palimpsest.core.recall.needs import EXAMPLES, needs_of
from palimpsest.core.recall.ranking import (
    PROBABILITY,
    RECIPE,
    WEIGHTS,
    Bools,
    Floats,
    PassageTable,
    QueryMatches,
    RankedRows,
    Recipe,
    Rows,
    by_worth,
    diversified,
    keep_order,
    rank,
    ranks,
)
from palimpsest.core.recall.relevance import Relevance, relevance
from palimpsest.core.recall.small_loss import small_loss, without_general
from palimpsest.core.recall.updates import UPDATE
from palimpsest.core.recall.utterance import read_utterance
from palimpsest.core.recall.wishes import NOTE, WISH
from palimpsest.core.work.calls import is_look
from palimpsest.core.work.project_notes import noted_part
from palimpsest.core.work.statements import told_from
from palimpsest.domain import Account, Candidate, Memory, Query, Reach, Recalled
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock, Embedder, LookupCounts, Vectors
from palimpsest.memory.index.full_text import find_ahead, find_each
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall import eligibility
from palimpsest.memory.recall.fresh_passages import AT_ONCE, EmbedAside, FreshPassages
from palimpsest.memory.recall.lost_work import account_of, covering_passages, typed_passages, uncleared, worthwhile
from palimpsest.memory.recall.question import question_by_words, with_boost, with_cosines, with_estimated_cosines
from palimpsest.memory.recall.scope_reader import Looked, ScopeReader
from palimpsest.memory.recall.unasked import Needs, prepended, unasked, unranked
from palimpsest.memory.recall.updates import told_of_known_things, with_related
from palimpsest.memory.timeouts import await_for
from palimpsest.settings.policy import RecallPolicy
from palimpsest.store.engine import Ask, Engine, ask_ahead
from palimpsest.store.search.passages import PassageTexts
from palimpsest.store.search.scope import conversations_in, in_other_folders, scope_of
from palimpsest.store.turns.cleared import cleared_in

if TYPE_CHECKING:
    from palimpsest.memory.index.item_keys import ItemKeys

NOTHING_STORED = "nothing is stored that recall may look at"
# Of a question that is embedded a second time, without its names: it takes as long again. Beside what longer ones say,
# names weigh little: questions of LoCoMo, joined or behind other texts, and of BEAM find as much, to .003.
NAMED_CHARS = 120
JUDGED_PASSAGES = 100  # the best by rank; behind them stands one answer in fifty, and judging takes its time
# That memory helps, for passages of another folder to answer: of 14 personal questions 13 have as much, "run the tests"
# .46 with the tests of another project.
LEAST_ELSEWHERE = 0.8
LEAST_ELSEWHERE_BACK = 0.93  # ... with a request that asks back, which `ASKING_BACK` lifts as far
CLEARED_SECONDS = 3600.0  # that a cleared conversation stays out of others: the task that it was cleared for
QUOTED_CHARS = 20  # of a text that stands in another one: shorter ones are said of other things, too
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

ONLY_ANSWERS: Mapping[str, Any] = {"least_help": 0.0, "wishes": 0, "told": None, "warned": None, "whole_chars": 0}
"""What a query is without all that comes unasked."""

EXAMPLES_SECONDS = 0.15  # that the first request waits for them; they take 0.1 beside other work

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
        model_loaded: Callable[[], Awaitable[bool]] | None = None,  # waits a moment for a model that is being loaded
        # what else leads to passages, as the policy in force has it; None: nothing does
        keys: Callable[[], ItemKeys | None] = lambda: None,
        # embeds what was said last; None: it is found by its words until it is indexed
        embed_aside: EmbedAside | None = None,
        chosen: Callable[[], RecallPolicy] = RecallPolicy,  # how it looks up, as the policy in force has it
    ) -> None:
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
        self._aside = embed_aside or embedder.embed_queries
        self._examples: asyncio.Task[Vectors] | None = None  # of needs, embedded

    def expect(self, text: str) -> None:
        """Begin to embed a question that will probably be asked; the embedder remembers it."""
        if self._embedder.ready:
            embedding = asyncio.ensure_future(self._vectors(text))
            self._expected.add(embedding)  # the event loop itself would forget it
            embedding.add_done_callback(self._expected.discard)

    async def reminders(self, tenant: str, memories: Sequence[int]) -> tuple[Candidate, ...]:
        """The passages with these ids, as reminders; what was forgotten meanwhile is left out."""
        found = await self._database.ask(
            lambda ask: _memories(PassageTexts(ask, tenant), dict.fromkeys(memories, 0)), tenant
        )
        return tuple(Candidate(found[id], 1.0, is_reminder=True) for id in memories if id in found)

    async def recall(self, query: Query, limit: int) -> Recalled:
        """Best candidates first, visible and excluded ones left out."""
        started = perf_counter()
        if query.account_chars and query.named is None:
            recalled, account = await asyncio.gather(self._recall(query, limit), self._accounted(query))
            recalled = replace(recalled, account=account)
        else:
            recalled = await self._recall(query, limit)
        elapsed = perf_counter() - started
        self._counts.observe("recall", elapsed)
        return replace(recalled, elapsed_ms=elapsed * 1000)

    async def _recall(self, query: Query, limit: int) -> Recalled:
        """Search by all questions of a query at once, and judge what may come."""
        if query.named is not None:
            return await self._recall_lost(query, query.named, limit)
        questions = (query.text, *(query.plan.questions if query.plan else ()))
        try:
            async with asyncio.TaskGroup() as looking:
                embedding = [looking.create_task(self._vectors(question)) for question in questions]
                look = partial(self._look, query, questions)
                reading = looking.create_task(self._database.ask(look, query.tenant))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        found, (vectors, *more_vectors) = reading.result(), [task.result() for task in embedding]
        if found is None:
            return Recalled((), False, NOTHING_STORED)
        scope, table, eligible, (asked, *more_asked) = found.scope, found.table, found.eligible, found.asked
        if vectors is not None and self._fresh is not None:
            newest_first = table.ids[np.flatnonzero(eligible & ~table.embedded)[::-1]]
            await self._fresh.provide(query.tenant, scope, newest_first.tolist())
        needs: Needs = {}
        if vectors is not None and query.warned is not None and (eligible & (table.warns | table.wishes)).any():
            needs = await self._needs(query.text, vectors[0], is_full=query.told is None)
        unindexed, eligible_count = int((eligible & ~table.embedded).sum()), int(eligible.sum())

        def choose(ask: Ask) -> Recalled:
            reader = ScopeReader(ask, scope, table, query.tenant)
            reason, best, helps = self._judge(reader, found, query, asked, vectors, needs, limit)
            if best is not None and more_asked and helps >= query.least_help:  # the question itself admits, or nothing
                only = replace(query, **ONLY_ANSWERS)
                others = [
                    self._judge(reader, found, replace(only, text=also.text), also, near, needs, limit)[1]
                    for near, also in zip(more_vectors, more_asked, strict=True)
                ]
                from palimpsest.core.recall.query_plan import interleave  # few policies make plans

                best = interleave([best, *filter(None, others)], limit)
            candidates = () if best is None else _unseen(_candidates(reader, best), query.seen)
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

        return await self._database.ask(choose, query.tenant)  # milliseconds in a large scope: off the event loop

    async def _recall_lost(self, query: Query, named: frozenset[str], limit: int) -> Recalled:
        """Recall without a question: lost passages that name most of what is not visible, and an account of work."""
        found = await self._database.ask(lambda ask: scope_of(ask, query), query.tenant)
        if found is None:
            return Recalled((), False, NOTHING_STORED)

        def choose(ask: Ask) -> tuple[tuple[Candidate, ...], Account | None]:
            rows = uncleared(ask, *found, query)
            follows = {after: before for (_, before, *_), (after, *_) in pairwise(rows)}

            def candidates_of(best: Sequence[tuple[int, float]]) -> list[Candidate]:
                memories = _memories(PassageTexts(ask, query.tenant), {id: follows.get(id, 0) for id, _ in best})
                return [
                    Candidate(memories[id], gain, {"coverage": (place, gain)})
                    for place, (id, gain) in enumerate(best, start=1)
                    if id in memories and not _is_idle(memories[id])
                ]

            typed, chars = worthwhile(_unseen(candidates_of(typed_passages(rows, query, limit)), query.seen))
            account = account_of(ask, rows, query, chars)
            if account is not None and not account.is_talk:
                return tuple(typed), account
            also = frozenset() if account is None else frozenset(tags("\n".join(line.text for line in account.lines)))
            return _unseen(candidates_of(covering_passages(rows, query, named | also, limit)), query.seen), account

        candidates, account = await self._database.ask(choose, query.tenant)
        reason = "nothing is asked: what the compaction removed, by what it names"
        return Recalled(candidates, bool(candidates), reason, account=account)

    async def _accounted(self, query: Query) -> Account | None:
        """The account of what was done in lost messages; None where it was a talk, or nothing is stored."""

        def look(ask: Ask) -> Account | None:
            found = scope_of(ask, query)
            return account_of(ask, uncleared(ask, *found, query), query) if found is not None and found[1] else None

        return await self._database.ask(look, query.tenant)

    def _look(self, query: Query, questions: Sequence[str], ask: Ask) -> Looked | None:
        """Look the questions up by their words; None: nothing is stored in their scope."""
        within = scope_of(ask, query)
        if within is None:
            return None
        scope, own = within
        chosen, now = self._chosen(), self._clock()
        tables = self._tables if chosen.cache else self._tables.empty()
        terms = [query_terms(text) for text in questions]
        marks = partial(cleared_in, tenant=scope.tenant, own=own, since=now - CLEARED_SECONDS)
        has_folder = _counts_folder(query)
        in_folder = partial(conversations_in, tenant=scope.tenant, folder=query.folder or 0, own=own, user=query.user)

        def ahead() -> list[Callable[[Ask], object]]:
            table, followed = tables.ahead(scope)
            return [
                *followed,
                *([marks] if query.without_cleared else []),
                *([in_folder] if has_folder else []),
                *find_ahead(scope, table, terms),
            ]

        ask_ahead(ask, ahead)
        table = tables.table(ask, scope)
        held = find_each(ask, scope, table, terms)
        asked = [question_by_words(text, now, one, own) for text, one in zip(questions, held, strict=True)]
        cleared = marks(ask) if query.without_cleared else {}
        here = np.isin(table.conversations, in_folder(ask) if has_folder else [])
        kept = eligibility.uncleared_passages(table, cleared)
        eligible, lost = eligibility.eligible_passages(table, query, own), eligibility.lost_passages(table, query, own)
        if query.reach is not Reach.CONVERSATION:
            eligible &= eligibility.without_rejected(table, query, own, now)
        if len(chosen.kinds) < eligibility.EVERY_KIND or chosen.reinforcement:
            from palimpsest.memory.recall.restriction import restricted  # few policies want one

            eligible, asked = restricted(ask, scope, table, chosen, eligible, asked)
        if kept is not None:
            eligible, lost = eligible & kept, lost & kept
        return Looked(scope, table, eligible, lost, here, asked)

    def _judge(
        self,
        reader: ScopeReader,
        found: Looked,
        query: Query,
        asked: QueryMatches,
        vectors: Vectors | None,
        needs: Needs,
        limit: int,
    ) -> tuple[str, RankedRows | None, float]:
        """Why something comes, what, best first, and how probably it helps; or why nothing, and None."""
        table, eligible = found.table, found.eligible
        if not eligible.any():
            return "no stored passage may be used: all are visible, excluded or not lost", None, 0.0
        asked = with_estimated_cosines(with_cosines(asked, table, vectors), table.embedded, eligible)
        chosen = self._chosen()
        if chosen.floor is not None and asked.cosines is not None:
            eligible = eligible & (asked.cosines >= chosen.floor)
            query = replace(query, least_help=0.0)
        eligible = eligibility.without_copies(reader, eligible, asked)
        eligible = eligibility.without_template(reader, eligible, asked)
        eligible = eligibility.without_orders(reader, eligible, asked)
        once, judged = self._ranked(table, asked, eligible, limit)
        may_answer = eligible
        least_elsewhere = LEAST_ELSEWHERE_BACK if asks_back(query.text) else LEAST_ELSEWHERE
        if once is not None and judged is not None and query.least_help <= judged.helps < least_elsewhere:
            elsewhere = _elsewhere(reader, query, asked, once)
            if elsewhere.any():
                may_answer = eligible & ~elsewhere
                once, judged = self._ranked(table, asked, may_answer, limit)
        told = eligibility.among(table.occurrences, query.excluded)
        told[told] = ~eligibility.among(table.fulls[told], query.visible_fulls)
        certain = unasked(reader, found, query, asked, eligible, told, needs)
        whole = small_loss(table, found.lost, found.lost & eligible, asked, query.whole_chars)
        whole = without_general(table, whole, reader.texts_of(whole))
        certain = prepended(certain, unranked(whole))
        helps = 0.0 if judged is None else judged.helps
        reason = f"helps with a probability of {helps:.2f}; {query.least_help:.2f} is required"
        if judged is None:
            reason = "no passage is similar, and none has a word of the question"
        reason += "; what was lost is little, so all of it is added" if len(whole) else ""
        if once is None or judged is None or helps < query.least_help:
            known = told_of_known_things(reader, eligible, asked)
            if len(known):
                reason += "; what the user told of a thing that the request takes as known is added"
                known_too = with_related(reader, unranked(known, "known"), eligible, told, asked)
                certain = prepended(certain, known_too)
            return reason, certain if len(certain.rows) else None, helps
        best = self._best(reader, once, judged, query, asked, vectors, may_answer, limit)
        reader.passages_of(np.concatenate([certain.rows, best.rows]))  # all that are going to be asked for, at once
        return reason, prepended(certain, with_related(reader, best, may_answer, told, asked)), judged.helps

    def _best(
        self,
        reader: ScopeReader,
        once: RankedRows,
        judged: Relevance,
        query: Query,
        asked: QueryMatches,
        vectors: Vectors | None,
        eligible: Bools,
        limit: int,
    ) -> RankedRows:
        """The passages that answer a question, by what they are worth, and as different as the policy wants them."""
        table, passages, chosen = reader.table, judged.passages, self._chosen()
        boosted = self._boosted(reader, asked, vectors)
        if boosted is not None:  # keys choose among passages; whether any help at all is said by their own texts
            nearer, rejudged = self._ranked(table, with_boost(asked, boosted[0]), eligible, limit)
            if nearer is not None and rejudged is not None:
                once, passages = nearer, rejudged.at(judged.helps)
        if query.plan is not None:
            from palimpsest.core.recall.query_plan import apply_preferences

            passages = apply_preferences(table, once, passages, query.plan)
        best = by_worth(once, passages, table.lengths[once.rows]) if chosen.fusion == "fitted" else keep_order(once)
        best = diversified(best, table.vectors, self._recipe_now.mmr_lambda).part(slice(limit))
        if boosted is not None and (keys := self._keys()) is not None:
            keys.note(boosted[1], best.rows)
        return best

    def _ranked(
        self, table: PassageTable, asked: QueryMatches, eligible: Bools, limit: int
    ) -> tuple[RankedRows | None, Relevance | None]:
        """Rank passages, each message once, and judge them; None: there is nothing to rank."""
        ranked = rank(table, asked, eligible, self._clock(), self._recipe_now)
        once = ranked.part(eligibility.first_of_equals(table, ranked.rows, max(limit, JUDGED_PASSAGES)))
        return (once, relevance(table, asked, once)) if len(once.rows) else (None, None)

    @property
    def _recipe_now(self) -> Recipe:
        return replace(self._recipe, **ORDERS[self._chosen().fusion])

    def _boosted(self, reader: ScopeReader, asked: QueryMatches, vectors: Vectors | None) -> tuple[Floats, Rows] | None:
        """The boost of each passage by items and relations, and the item that gave it; None: they are off."""
        if vectors is None or asked.cosines is None or (keys := self._keys()) is None:
            return None
        words = [*asked.found, *asked.absent]
        return keys.boost(reader.ask, reader.scope, reader.table, words, vectors[0], asked.cosines, self._clock())

    def warm(self) -> asyncio.Task[Vectors]:
        """The examples of needs, being embedded: from when the model is loaded, or the first request waits for them."""
        last = self._examples
        if last is None or (last.done() and (last.cancelled() or last.exception() is not None)):
            self._examples = last = asyncio.create_task(self._embed_examples())
        return last

    async def _needs(self, text: str, question: Floats, *, is_full: bool) -> Needs:
        """What the request may need; nothing until the examples are embedded."""
        examples = self.warm()
        await await_for(examples, EXAMPLES_SECONDS)
        if not examples.done() or examples.cancelled() or examples.exception() is not None:
            return {}
        return needs_of(text, question, examples.result(), is_full=is_full)

    async def _embed_examples(self) -> Vectors:
        """Vectors of the examples of needs, a few at a time: questions of other requests come between."""
        try:
            parts = [await self._aside(EXAMPLES[at : at + AT_ONCE]) for at in range(0, len(EXAMPLES), AT_ONCE)]
        except MemoryFault as fault:
            self._counts.fault("embed_query")
            log.warning("requests are looked up without what their kind needs", reason=str(fault))
            raise
        return np.concatenate(parts)

    async def _vectors(self, text: str) -> Vectors | None:
        """Vectors of a question, and of a short one without its names: (1 or 2, dimensions); None: no model."""
        if not self._embedder.ready and (self._model_loaded is None or not await self._model_loaded()):
            return None
        try:
            forms = dict.fromkeys((text, text if len(text) > NAMED_CHARS else without_names(text)))
            return await self._embedder.embed_queries([*forms])
        except MemoryFault as fault:
            self._counts.fault("embed_query")
            log.warning("recall is lexical only", reason=str(fault))
            return None


def _counts_folder(query: Query) -> bool:
    """Whether the folder of a request counts: it looks at other conversations, and at those of no named project."""
    return query.folder is not None and not query.scope and query.reach is not Reach.CONVERSATION


def _elsewhere(reader: ScopeReader, query: Query, asked: QueryMatches, ranked: RankedRows) -> Bools:
    """Which passages were said in another folder, in a conversation of which one is ranked: (n,)."""
    conversations = reader.table.conversations
    if not _counts_folder(query):
        return np.zeros(len(conversations), np.bool_)
    among = np.unique(conversations[ranked.rows]).tolist()
    others = in_other_folders(reader.ask, reader.scope.tenant, query.folder or 0, asked.own, among)
    return np.isin(conversations, others)


def _candidates(reader: ScopeReader, best: RankedRows) -> tuple[Candidate, ...]:
    """The best passages with their texts, and what each signal said of them, without those that tell nothing."""
    table = reader.table
    ids, before = table.ids[best.rows].tolist(), table.before[best.rows]
    follows = np.where(before >= 0, table.occurrences[before], 0).tolist()
    memories = _memories(reader.texts, dict(zip(ids, follows, strict=True)))
    for signal, part_of in ((WISH, lambda text: (told_from(text), len(text))), (NOTE, noted_part)):
        for id in table.ids[best.rows[best.signals.get(signal, np.zeros(len(best.rows))) > 0]].tolist():
            if id in memories and memories[id].start == 0:
                start, stop = part_of(memories[id].text)
                memories[id] = replace(memories[id], text=memories[id].text[start:stop], start=start, stop=stop)
    signals = {name: values for name, values in best.signals.items() if name != PROBABILITY}
    listed = zip(*(zip(ranks(v).tolist(), v.tolist(), strict=True) for v in signals.values()), strict=True)
    rows = zip(ids, best.scores.tolist(), listed, best.signals[PROBABILITY].tolist(), strict=True)
    return tuple(
        Candidate(memories[id], score, dict(zip(signals, said, strict=True)), probability)
        for id, score, said, probability in rows
        if id in memories and not _is_idle(memories[id])
    )


def _is_idle(memory: Memory) -> bool:
    """Whether a passage only thanks or greets, or is the call of a tool that only looks: its result tells more."""
    return (memory.role == "assistant" and is_look(memory.text)) or read_utterance(memory.text).is_small_talk


def _unseen(found: Iterable[Candidate], seen: Sequence[str]) -> tuple[Candidate, ...]:
    """
    The candidates that no visible text quotes whole, as summaries do, and updates: without its own, an older statement
    would stand as what was said last. Wishes hold in their user's words alone.
    """
    visible = "\n".join(seen)
    new = {
        one.memory.id
        for one in found
        if len(one.memory.text) < QUOTED_CHARS or WISHES in one.memory.tags or one.memory.text not in visible
    }
    oldest = min((one.memory.occurrence for one in found if one.memory.id in new), default=math.inf)
    return tuple(
        one
        for one in found
        if one.memory.id in new or (one.signals.get(UPDATE, (0, 0.0))[1] > 0 and one.memory.occurrence > oldest)
    )


def _memories(texts: PassageTexts, follows: Mapping[int, int]) -> dict[int, Memory]:
    """The memories with these ids, which follow these occurrences. What was forgotten meanwhile is left out."""
    return {
        id: Memory(
            *(id, occurrence, conversation, occurrence, role, text, created_at, start, stop),
            tags=tuple(tags.split()),
            follows=follows[id],
        )
        for id, occurrence, conversation, role, text, created_at, start, stop, tags in texts.of([*follows])
    }
