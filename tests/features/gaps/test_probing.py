"""Memory asks itself for what it has stored, and tells a loss in writing from one in recall."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from palimpsest.core.recall.gaps import GapEstimate, ProbeStage
from palimpsest.domain.ports import Retriever
from palimpsest.evaluation.bench_gaps import Swapped
from palimpsest.features.gaps.probing import NoCounts, Prober
from palimpsest.memory.archive import Archive
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.recall import Recall
from palimpsest.memory.traffic import Traffic
from palimpsest.settings.policy import Policy
from palimpsest.store.operation.probes import KEPT, live_estimate, save
from palimpsest.telemetry.metrics import Metrics

from tests.remembered import Past, WordEmbedder
from tests.talking import NOW

PROBES = 60
TOWNS = ("Lisbon", "Bergen", "Utrecht", "Porto", "Graz", "Turin", "Cork", "Malmo", "Ghent", "Sopot")
THINGS = ("greenhouse", "violin", "printer", "bicycle", "lantern", "kettle", "tractor", "easel", "canoe", "loom")


def facts(count: int) -> list[str]:
    """Statements that each name one number, which nothing else does."""
    return [
        f"The {THINGS[at % 10]} that we keep in {TOWNS[at // 10 % 10]} carries the inventory label {7001 + 13 * at}."
        for at in range(count)
    ]


class House:
    """An archive, and what asks it."""

    def __init__(self, folder: Path) -> None:
        self.policy = Policy(data=folder)
        self.metrics = Metrics()
        self.model = WordEmbedder()
        self.archive = Archive(self.policy, self.metrics, self.model, lambda: NOW)
        self.past = Past(self.archive.database)

    def prober(self, damage: Callable[[Retriever], Retriever] = lambda retriever: retriever) -> Prober:
        def recall(tables: PassageTables) -> Retriever:
            return damage(Recall(self.archive.database, tables, self.model, NoCounts(), lambda: NOW))

        archive = self.archive
        return Prober(archive.database, archive.tables, recall, lambda: self.policy, lambda: NOW, Random(42), 0.01)

    async def estimate(self, damage: Callable[[Retriever], Retriever] = lambda retriever: retriever) -> GapEstimate:
        return await self.prober(damage).probe_now(PROBES)

    async def rows(self, table: str) -> int:
        return int((await self.archive.database.read(f"SELECT count(*) FROM {table}"))[0][0])

    def counts(self) -> list[bytes]:
        """The metrics of requests and of memory."""
        return [line for line in self.metrics.render().splitlines() if line.startswith(b"palimpsest")]

    async def drop(self, share: float) -> None:
        """Remove the passages of so many messages."""
        rows = await self.archive.database.read("SELECT id FROM memory ORDER BY id")
        await self.past.forget([id for (id,) in Random(1).sample(rows, round(share * len(rows)))])


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    await house.archive.database.open()
    yield house
    await house.archive.close()


async def tell(house: House, texts: Sequence[str], **more: str) -> None:
    for start in range(0, len(texts), 10):
        said = [line for text in texts[start : start + 10] for line in (text, "Noted.")]
        await house.past.say(*said, **more)
    await house.past.index()


@pytest.mark.parametrize("share", [0.25, 0.5])
async def test_dropped_entries_move_the_write_gap_alone(house: House, share: float) -> None:
    await tell(house, facts(100))
    before = await house.estimate()
    await house.drop(share)
    after = await house.estimate()
    assert (before.probes, before.write) == (PROBES, 0)
    assert after.write == pytest.approx(share, abs=0.13)
    assert after.retrieval <= before.retrieval + 0.02
    assert after.verdict == "write"


@pytest.mark.parametrize("share", [0.25, 0.5])
async def test_swapped_ranks_move_the_retrieval_gap_alone(house: House, share: float) -> None:
    await tell(house, facts(100))
    before = await house.estimate()
    after = await house.estimate(lambda retriever: Swapped(retriever, share))
    assert after.write == before.write == 0
    assert after.retrieval >= before.retrieval + 0.3
    assert after.verdict == "retrieval"


async def only_stage(house: House) -> ProbeStage:
    """The stage at which all answers got lost."""
    found = await house.estimate()
    (stage,) = (stage for stage, count in found.stages.items() if count)
    return stage


async def test_what_is_stored_and_near_is_found(house: House) -> None:
    await tell(house, facts(1))
    assert await only_stage(house) is ProbeStage.FOUND


async def test_what_was_redacted_was_never_stored(house: House) -> None:
    await tell(house, ["The deploy key of the staging machine is [redacted:openai] since our last rotation."])
    assert await only_stage(house) is ProbeStage.REDACTED


async def test_without_a_passage_it_was_not_indexed(house: House) -> None:
    await tell(house, facts(1))
    await house.drop(1.0)
    assert await only_stage(house) is ProbeStage.INDEXED


async def test_turns_that_could_not_be_stored_count_as_lost_in_writing(house: House) -> None:
    await tell(house, facts(10))
    row = ("t-1", "request", "broken", 100, b"x", NOW)
    add = "INSERT INTO quarantine(turn, part, reason, chars, digest, created_at) VALUES (?, ?, ?, ?, ?, ?)"
    await house.archive.database.write([(add, [row] * 10)])
    found = await house.estimate()
    assert found.stages[ProbeStage.STORED] / found.probes == pytest.approx(0.5, abs=0.2)


async def test_a_level_of_generosity_that_is_too_sure_loses_at_the_judge(house: House) -> None:
    await tell(house, facts(100))
    generous, sparing = {"generosity": "generous"}, {"generosity": "sparing"}
    lost = []
    for level in (generous, sparing):
        house.policy = Policy.model_validate({"data": house.policy.data, "memory": level})
        lost.append((await house.estimate()).retrieval)
    assert lost[0] <= lost[1]


async def test_nothing_is_asked_of_what_was_erased_or_is_switched_off(house: House) -> None:
    await tell(house, facts(5), tenant="acme")
    house.policy = Policy.model_validate({"data": house.policy.data, "memory": {"off_for_tenants": ["ac*"]}})
    assert (await house.estimate()).probes == 0
    house.policy = Policy(data=house.policy.data)
    await house.archive.database.write([("INSERT INTO switch(tenant, reason, at) VALUES ('', 'x', 1)", [()])])
    assert (await house.estimate()).probes == 0
    await house.archive.database.write([("DELETE FROM switch", [()]), ("UPDATE occurrence SET flags = 256", [()])])
    assert (await house.estimate()).probes == 0


async def test_probes_leave_no_word_no_row_and_no_count(house: House) -> None:
    await tell(house, facts(30))
    listed = await house.archive.database.read("SELECT name FROM sqlite_schema WHERE type = 'table'")
    tables = [name for (name,) in listed]
    before = {name: await house.rows(name) for name in tables}
    counts = house.counts()
    assert (await Prober.of(house.archive, house.model).probe_now(20)).probes == 20
    assert {name: await house.rows(name) for name in tables} == before
    assert house.counts() == counts
    assert house.model.asked == []  # those that a model keeps


async def test_a_round_keeps_stages_and_tells_the_metrics(house: House) -> None:
    await tell(house, facts(30))
    house.policy = Policy.model_validate({"data": house.policy.data, "gaps": {"probes_per_hour": 3600}})

    def may_probe() -> bool:
        house.policy = Policy(data=house.policy.data)  # it ends when the policy allows nothing any more
        return True

    await house.prober().run(Traffic(), house.metrics, may_probe)
    live = await house.archive.database.ask(live_estimate)
    assert live.probes == await house.rows("probe") == 5
    told = house.metrics.render().decode()
    assert 'palimpsest_gap{gap="write"} 0.0' in told and "palimpsest_probes_total{stage=" in told


async def test_the_newest_probes_of_all_processes_make_the_estimate(house: House) -> None:
    for at in range(KEPT + 30):
        stage = "packed" if at < 30 else "found"
        await house.archive.database.transact(lambda transaction, stage=stage: save(transaction, NOW, stage))  # type: ignore[misc]
    live = await house.archive.database.ask(live_estimate)
    assert (live.probes, live.retrieval) == (KEPT, 0)


async def test_what_requests_keep_in_memory_stays_as_it_is(house: House) -> None:
    await tell(house, facts(5))
    assert (await house.prober().probe_now(5)).probes == 5
    assert "0 scopes" in repr(house.archive.tables)
