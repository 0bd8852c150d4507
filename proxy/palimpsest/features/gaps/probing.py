"""
Probing: memory asks itself for what it has stored, and counts at which stage the answers get lost.

A probe looks its answer up as an ordinary request would right after its message was lost: the same scope, ranking,
judgement and budget, and nothing visible. It moves no counter that requests move, keeps no word of question or answer,
and gives way to requests at once. Several processes on one folder keep to one budget, as they see each other's probes.

Source: WhenLoss (arXiv 2605.24579), section 3, over a live archive and without a reader.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from time import monotonic

import structlog

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.block.packing import pack
from palimpsest.core.block.pressure import recall_budget
from palimpsest.core.recall.diagnosis import answering
from palimpsest.core.recall.gaps import GapEstimate, ProbeStage, estimate
from palimpsest.core.recall.generosity import demanded
from palimpsest.core.recall.probes import Probe, answers, probe
from palimpsest.domain import BlockKind, Query, Reach, Recalled, Tier, frozen
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock, Counts, Retriever, Vectors
from palimpsest.memory.archive import Archive
from palimpsest.memory.embedding.embedder import LocalEmbedder
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.recall import Recall
from palimpsest.memory.request.decider import RECALL_LIMIT
from palimpsest.memory.traffic import Traffic
from palimpsest.settings.policy import Policy
from palimpsest.store.engine import Ask, Engine, Row, nobody
from palimpsest.store.engine.full_text import counted
from palimpsest.store.operation import probes
from palimpsest.store.operation.switches import EVERYBODY, switched_off
from palimpsest.store.search.scope import Scope

NEWEST_MESSAGES = 5000  # are asked for: the last days, read in some 10 ms
ROUND_PROBES = 5  # of one scope, one after another: its passages are read once for them
TRIES = 12  # messages looked at for each probe: many say nothing that could be asked for
EMPTY_ROUNDS = 10  # one after another in which nothing could be asked for: then there is nothing
RARE_PASSAGES = 3  # of a tenant that may hold an answer's terms: what stands everywhere would be found anywhere
DEEP_LIMIT = 400  # candidates among which what was not ranked is looked for: behind them it is none
LARGE_PASSAGES = 20_000  # a larger scope is probed only where requests have it in memory: it takes .5 s to read
LOOK_SECONDS = 10.0  # between looks whether it is time
HOUR_SECONDS = 3600.0

log = structlog.get_logger()


class NoCounts:
    """Counts nothing: what probes do must not look like requests. Implements `palimpsest.domain.ports.LookupCounts`."""

    def fault(self, where: str) -> None: ...

    def observe(self, stage: str, seconds: float) -> None: ...


class ProbeEmbedder:
    """The embedder of probes, over a model that requests use. Implements `palimpsest.domain.ports.Embedder`."""

    def __init__(self, model: LocalEmbedder) -> None:
        self._model = model
        self.name, self.dimensions = model.name, model.dimensions

    @property
    def ready(self) -> bool:
        return self._model.ready

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self._model.embed_aside(texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return await self._model.embed_passages(texts)


@frozen
class DrawnProbe:
    """A probe of a message, with the passages that hold its answer; `message` None: of a turn that was set aside."""

    message: probes.ProbedMessage | None
    probe: Probe | None = None
    passages: tuple[Row, ...] = ()


@frozen
class _Round:
    """What is asked in one round, and the scope that all of it is in."""

    drawn: tuple[DrawnProbe, ...] = ()
    scope: Scope | None = None
    passages: int = 0  # of the scope, counted up to `LARGE_PASSAGES`


class Prober:
    """Makes probes of one archive. Run `run` in the background, or await `probe_now`."""

    def __init__(
        self,
        database: Engine,
        tables: PassageTables,  # those of requests, used where they hold the scope already
        recall: Callable[[PassageTables], Retriever],  # makes a retriever over tables that counts nothing
        policy: Callable[[], Policy],  # what is in force at the moment that it is called
        clock: Clock,
        chance: random.Random | None = None,  # what is asked for; None: another each time
        look_seconds: float = LOOK_SECONDS,  # between looks whether it is time for a round
    ) -> None:
        self._database = database
        self._tables = tables
        self._recall = recall
        self._policy = policy
        self._clock = clock
        self._chance = chance or random.Random()
        self._look_seconds = look_seconds

    @classmethod
    def of(
        cls,
        archive: Archive,
        model: LocalEmbedder,
        chance: random.Random | None = None,
        assist: Callable[[Retriever], Retriever] = lambda recall: recall,
    ) -> Prober:
        """A prober of an archive, with what assists recall for requests."""

        def recall(tables: PassageTables) -> Retriever:
            parts = archive.database, tables, ProbeEmbedder(model), NoCounts(), archive.clock
            return assist(Recall(*parts, chosen=lambda: archive.current().recall))

        return cls(archive.database, archive.tables, recall, archive.current, archive.clock, chance)

    async def run(self, traffic: Traffic, counts: Counts, may_probe: Callable[[], bool]) -> None:
        """Probe as often as the policy allows, and nothing is more urgent, until it allows nothing."""
        tried_at = -HOUR_SECONDS
        while per_hour := self._policy().gaps.probes_per_hour:
            count = min(ROUND_PROBES, per_hour)
            pause = HOUR_SECONDS * count / per_hour
            if monotonic() - tried_at >= pause and traffic.is_quiet and may_probe():
                try:
                    if self._clock() - (await self.live()).until >= pause:
                        tried_at = monotonic()
                        await traffic.run_beside(self._round(count, counts))
                except MemoryFault as fault:  # the store says so itself
                    log.warning("memory could not be probed now", reason=str(fault))
            await asyncio.sleep(min(self._look_seconds, pause) * random.uniform(0.5, 1.5))  # workers start together

    async def live(self) -> GapEstimate:
        """The estimate from the newest probes of all processes."""
        return await self._database.ask(probes.live_estimate)

    async def probe_now(self, count: int) -> GapEstimate:
        """Make so many probes now, if there are messages for them. Nothing of it is kept."""
        stages: list[ProbeStage] = []
        empty = 0
        while len(stages) < count and empty < EMPTY_ROUNDS:
            more = [stage async for stage in self._stages(min(ROUND_PROBES, count - len(stages)), is_large=True)]
            stages += more
            empty = 0 if more else empty + 1
        now = self._clock()
        return estimate(stages, now, now)

    async def _round(self, count: int, counts: Counts) -> None:
        """Make probes of one scope, store what became of each, and set the metrics."""
        async for stage in self._stages(count):
            await self._database.transact(partial(probes.save, at=self._clock(), stage=stage), nobody)
            counts.add("probes", 1, stage)
            found = await self.live()
            counts.gauge("gap", found.write, "write")
            counts.gauge("gap", found.retrieval, "retrieval")

    async def _stages(self, count: int, is_large: bool = False) -> AsyncIterator[ProbeStage]:
        """Draw probes of one scope, and yield at which stage each gets lost; of a large scope only if asked to."""
        chosen = await self._database.ask(partial(self._draw, count=count))
        tables = self._tables
        if chosen.scope is not None and not tables.holds(chosen.scope):
            if chosen.passages >= LARGE_PASSAGES and not is_large:
                return
            tables = tables.empty()
        retriever = self._recall(tables)
        for drawn in chosen.drawn:
            yield await self._stage(drawn, retriever)

    def _draw(self, ask: Ask, count: int) -> _Round:
        """Draw messages of one scope at random, each with what is asked of it."""
        policy = self._policy()
        off = {one.tenant for one in switched_off(ask)}
        said = [
            one
            for one in probes.newest_messages(ask, NEWEST_MESSAGES)
            if one.tenant_name not in off
            and not any(fnmatchcase(one.tenant_name, pattern) for pattern in policy.memory.off_for_tenants)
        ]
        if not said or EVERYBODY in off:
            return _Round()
        set_aside = probes.set_aside_since(ask, said[0].created_at)
        scope = self._scope(self._chance.choice(said))
        same = [one for one in said if self._scope(one) == scope]
        self._chance.shuffle(same)
        drawn = tuple(self._draw_probes(ask, iter(same[: count * TRIES]), count, set_aside / (set_aside + len(said))))
        condition, args = scope.condition
        return _Round(drawn, scope, probes.passages_in(ask, condition, args, LARGE_PASSAGES))

    def _draw_probes(
        self, ask: Ask, messages: Iterator[probes.ProbedMessage], count: int, set_aside_share: float
    ) -> Iterator[DrawnProbe]:
        """Draw probes; some at random count for messages that were set aside."""
        for _ in range(count):
            if self._chance.random() < set_aside_share:
                yield DrawnProbe(None)
            elif (
                drawn := next(filter(None, (self._probe_of(ask, message) for message in messages)), None)
            ) is not None:
                yield drawn

    def _probe_of(self, ask: Ask, message: probes.ProbedMessage) -> DrawnProbe | None:
        """A probe for one rare thing that a message says; None: it says none."""
        found = answers(probes.text_of(ask, message.occurrence), message.role, self._chance.randrange)
        terms = {term for answer in found for term in query_terms(answer.text)}
        held = counted(ask, message.tenant, sorted(terms))
        rare = [
            one
            for one in found
            if one.is_redacted
            or min((held.get(term, 0) for term in query_terms(one.text)), default=1e9) <= RARE_PASSAGES
        ]
        self._chance.shuffle(rare)
        made = next(filter(None, (probe(answer, self._chance.randrange) for answer in rare)), None)
        if made is None:
            return None
        answer = made.answer
        return DrawnProbe(message, made, tuple(probes.passages_at(ask, message.occurrence, answer.start, answer.stop)))

    async def _stage(self, drawn: DrawnProbe, retriever: Retriever) -> ProbeStage:
        """Look up the answer of a probe, and return the stage at which it gets lost."""
        message, asked = drawn.message, drawn.probe
        if message is None or asked is None:
            return ProbeStage.STORED
        if asked.answer.is_redacted:
            return ProbeStage.REDACTED
        query = replace(self._query(message), text=asked.question)
        recalled = await retriever.recall(query, RECALL_LIMIT)
        if self._is_packed(recalled, asked):
            return ProbeStage.FOUND
        if not drawn.passages:
            return ProbeStage.INDEXED
        holding = {id for id, _ in drawn.passages}
        if any(candidate.memory.id in holding for candidate in recalled.candidates):
            demand = demanded(self._policy().memory.generosity, BlockKind.RECALL)
            return ProbeStage.LIKELY if recalled.helps < demand.least_help else ProbeStage.PACKED
        if not any(has_vector for _, has_vector in drawn.passages):
            return ProbeStage.EMBEDDED
        deeper = await retriever.recall(query, DEEP_LIMIT)
        is_candidate = any(candidate.memory.id in holding for candidate in deeper.candidates)
        return ProbeStage.RANKED if is_candidate else ProbeStage.CANDIDATE

    def _is_packed(self, recalled: Recalled, asked: Probe) -> bool:
        """Whether the block of an ordinary turn would hold the answer."""
        demand, budget = demanded(self._policy().memory.generosity, BlockKind.RECALL), recall_budget(Tier.CALM)
        if recalled.helps < demand.least_help or budget is None:
            return False
        block, _ = pack(recalled.candidates, answering(budget, demand), BlockKind.RECALL, asked.question)
        return block is not None and asked.answer.text in block.text

    def _query(self, message: probes.ProbedMessage) -> Query:
        """The query of a request in that conversation that sees nothing of it."""
        return Query(message.tenant_name, message.public, "", self._reach(message), message.user, message.project)

    def _reach(self, message: probes.ProbedMessage) -> Reach:
        reach = self._policy().memory.reach
        return Reach.CONVERSATION if reach is Reach.USER and not message.user else reach

    def _scope(self, message: probes.ProbedMessage) -> Scope:
        """The scope that such a request would search: see `store/search/scope.scope_of`."""
        reach = self._reach(message)
        if reach is Reach.CONVERSATION:
            return Scope(message.tenant, reach, message.conversation)
        return Scope(message.tenant, reach, user=message.user if reach is Reach.USER else "", project=message.project)
