"""Memory says how it is in one voice, and whatever becomes of a part of it, the rest goes on and can be closed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import structlog
from palimpsest.core.recall.needs import EXAMPLES
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Vectors
from palimpsest.features.registry import FEATURES
from palimpsest.memory.service import BEHIND, LOADING, MISSING, MemoryService, MemoryState
from palimpsest.settings.policy import Policy
from palimpsest.store.data_dir import DATABASE_FILE
from palimpsest.telemetry.metrics import Metrics

from tests.remembered import WordEmbedder
from tests.talking import Talk, record, user

SECRET = b"s" * 32
PATIENCE_SECONDS = 30.0


class Model(WordEmbedder):
    """A model that is there, is not there, or fails at whatever a test names."""

    def __init__(self) -> None:
        super().__init__()
        self.is_loading = False
        self.fails: set[str] = set()
        self.watched = 0
        self.aside: list[str] = []

    def _do(self, what: str) -> None:
        if what in self.fails:
            raise RuntimeError(f"{what} fails")

    async def loaded(self, seconds: float) -> bool:
        return self.ready

    async def watch(self) -> None:
        self.watched += 1
        self._do("watch")

    async def embed_aside(self, texts: Sequence[str]) -> Vectors:
        self.aside += texts
        return await super().embed_aside(texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self._do("embed")
        return await super().embed_passages(texts)

    def forget(self) -> None:
        self._do("forget")

    async def close(self) -> None:
        self._do("close")


class House:
    """A service with a data folder and a model of its own."""

    def __init__(self, data: Path, mode: str = "on", **consolidation: str) -> None:
        self.data, self.model, self.metrics = data, Model(), Metrics()
        policy = Policy.model_validate({"data": data, "memory": {"mode": mode}, "consolidation": consolidation})
        self.service = MemoryService(policy, SECRET, self.metrics, model=self.model, sources=FEATURES)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[MemoryService]:
        try:
            await self.service.open()
            yield self.service
        finally:
            await self.service.close()

    async def state_with(self, reason: str) -> MemoryState:
        return await self.until(lambda state: any(reason in one for one in state.reasons))

    async def until(self, holds: Callable[[MemoryState], bool]) -> MemoryState:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds(state := await self.service.state()):  # noqa: ASYNC110 - it knows nothing of us
                await asyncio.sleep(0.01)
        return state


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "data")


async def test_memory_that_works_has_nothing_to_say(house: House) -> None:
    async with house.running() as service:
        assert await service.state() == MemoryState("ready", "ready", 0)
        service.archivist.note(record((user("hello"),)).turn)
        await house.until(lambda state: state.pending == 0)
        text = house.metrics.render().decode()
    assert "palimpsest_store_up 1.0" in text and "palimpsest_embedder_ready 1.0" in text
    assert "palimpsest_pending 0.0" in text


@pytest.mark.parametrize(("loads", "says", "reason"), [(True, "loading", LOADING), (False, "missing", MISSING)])
async def test_without_the_model_memory_is_ready_and_says_so(house: House, loads: bool, says: str, reason: str) -> None:
    house.model.ready, house.model.is_loading = False, loads
    async with house.running() as service:
        state = await service.state()
        assert (state.is_ready, state.embedder, state.reasons) == (True, says, (reason,))
        assert "palimpsest_embedder_ready 0.0" in house.metrics.render().decode()


async def test_what_each_request_is_compared_with_is_embedded_before_the_first(house: House) -> None:
    async with house.running():
        await house.until(lambda _: [*house.model.aside] == [*EXAMPLES])


async def test_indexing_that_falls_behind_says_so_in_steps(house: House) -> None:
    async with house.running() as service:
        house.model.fails.add("embed")
        for number in range(2):
            service.archivist.note(record([user(f"told {number} {at}") for at in range(BEHIND)]).turn)
            state = await house.state_with("indexing is behind: more than 1,000 passages wait")
        assert state.is_ready and state.pending is not None and state.pending >= BEHIND
        house.model.fails.clear()
        house.model.ready = False
        assert not [reason for reason in (await service.state()).reasons if "behind" in reason], "that is said already"


async def test_without_the_store_it_is_not_ready_tells_no_path_and_comes_back(house: House) -> None:
    house.data.write_text("a file stands in the way")
    async with house.running() as service:
        state = await service.state()
        assert (state.is_ready, state.store, state.pending) == (False, "failed", None)
        assert "the store does not answer" in state.reasons[0] and str(house.data) not in str(state)
        assert "palimpsest_store_up 0.0" in house.metrics.render().decode()
        service.archivist.note(record((user("hello"),)).turn)
        await house.state_with("turns cannot be written")
        house.data.unlink()
        await house.until(lambda state: state.store == "ready" and state.pending == 0)


@pytest.mark.parametrize(("mode", "writer"), [("on", "epc"), ("on", "off"), ("read-only", "epc")])
async def test_items_are_kept_and_consolidated_only_where_the_policy_says_so(
    tmp_path: Path, mode: str, writer: str
) -> None:
    is_on = (mode, writer) == ("on", "epc")
    house = House(tmp_path / "data", mode, writer=writer, when="idle" if writer == "epc" else "off")
    past = House(tmp_path / "data")
    async with past.running() as service:
        service.archivist.note(record((user("The harbour of Leith opens at 9 on Sundays."),), user="ann").turn)
        await past.until(lambda state: state.pending == 0)
    async with house.running() as service:
        await service.state()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while is_on and not await service.database.read("SELECT 1 FROM item"):  # noqa: ASYNC110 - it knows nothing of us
                await asyncio.sleep(0.01)
        written = await service.database.read(
            "SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM item_progress),"
            " (SELECT count(*) FROM task WHERE name = 'consolidation')"
        )
    assert (written[0][0] > 0, written[0][1] > 0) == (is_on, is_on)
    assert is_on or written == [(0, 0, 0)]


async def test_memory_that_is_off_opens_nothing_and_is_no_failure(tmp_path: Path) -> None:
    house = House(tmp_path / "data", mode="off")
    async with house.running() as service:
        state = await service.state()
    assert (state.is_ready, state.store, state.embedder) == (True, "off", "off")
    assert "memory.mode" in state.reasons[0]
    assert not house.data.exists() and house.model.watched == 0


async def test_what_is_wrong_is_logged_once_and_so_is_its_end(house: House) -> None:
    house.model.ready = False
    async with house.running() as service:
        with structlog.testing.capture_logs() as lines:
            for ready in (False, False, True, True):
                house.model.ready = ready
                await service.state()
    said = [(line["event"], line.get("reason")) for line in lines]
    assert said == [("memory is impaired", MISSING), ("memory has recovered", None)]


async def test_background_task_that_fails_is_said_and_run_again_while_the_others_go_on(house: House) -> None:
    house.model.fails = {"watch"}
    async with house.running() as service:
        state = await house.state_with("model failed (RuntimeError)")
        assert state.is_ready
        service.archivist.note(record((user("hello"),)).turn)
        await house.until(lambda state: state.pending == 0)
        house.model.fails.clear()
        await house.until(lambda state: house.model.watched > 1)


async def test_model_that_fails_in_an_unforeseen_way_loses_no_passage(house: House) -> None:
    house.model.fails = {"embed"}
    async with house.running() as service:
        service.archivist.note(record((user("hello"),)).turn)
        await house.state_with("index failed (RuntimeError)")
        assert await service.journal.pending() == 1
    assert 'palimpsest_faults_total{where="index"}' in house.metrics.render().decode()


async def test_everything_is_closed_whatever_part_of_it_fails_to(house: House) -> None:
    house.model.fails = {"close"}
    with pytest.raises(RuntimeError, match="close fails"):
        async with house.running() as service:
            service.archivist.note(record((user("hello"),)).turn)
    with pytest.raises(MemoryFault, match="not open"):
        await house.service.journal.pending()
    again = House(house.data)
    async with again.running() as service:
        assert (await service.journal.stats())["turns"] == 1


async def test_erasure_elsewhere_that_this_process_cannot_follow_is_said_and_tried_again(house: House) -> None:
    house.model.fails = {"forget"}

    async with house.running() as service:
        await Talk(service.journal).say("one", "two")
        await asyncio.sleep(1.0)  # it has looked once by then
        with closing(sqlite3.connect(house.data / DATABASE_FILE, isolation_level=None)) as elsewhere:
            elsewhere.execute("INSERT INTO erasure(at) VALUES (0)")
        await house.state_with("forgetting failed (RuntimeError)")
        assert (await service.state()).is_ready


async def test_memory_asks_itself_nothing_unless_the_policy_says_so(house: House) -> None:
    async with house.running() as service:
        assert "probes" not in repr(service.supervisor)
        await Talk(service.journal).say("The metrics exporter of the home server listens on port 9417.", "Noted.")
        often = Policy.model_validate({"data": house.data, "gaps": {"probes_per_hour": 3600}})
        assert (await service.database.read("SELECT count(*) FROM probe"))[0][0] == 0
        await service.apply(often)
        assert "probes" in repr(service.supervisor)
        await house.until(lambda state: "palimpsest_gap{" in house.metrics.render().decode())
        assert (await service.database.read("SELECT count(*) FROM probe"))[0][0] > 0
        assert 'palimpsest_stage_seconds_count{stage="recall"}' not in house.metrics.render().decode()
