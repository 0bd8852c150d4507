"""A background task that fails is said, counted and run again, and stops nothing but itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from palimpsest.memory.supervision import Supervisor
from palimpsest.telemetry.metrics import Metrics

FIRST_PAUSE_SECONDS = 0.001


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def supervisor(metrics: Metrics) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(metrics, FIRST_PAUSE_SECONDS)
    yield supervisor
    await supervisor.stop()


class Work:
    """Fails as often as it is told to, then runs on."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.recovered = asyncio.Event()

    async def __call__(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.recovered.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("failure", [PermissionError(13, "Permission denied"), asyncio.CancelledError()], ids=repr)
async def test_task_that_fails_is_counted_and_run_again(
    supervisor: Supervisor, metrics: Metrics, failure: BaseException
) -> None:
    work = Work(failure, failure)
    supervisor.start("index", work)
    async with asyncio.timeout(10):
        await work.recovered.wait()
    assert b'palimpsest_faults_total{where="index"} 2.0' in metrics.render()
    (trouble,) = supervisor.troubles
    assert trouble.startswith(f"index failed ({type(failure).__name__})")


async def test_task_that_fails_leaves_the_others_alone(supervisor: Supervisor) -> None:
    failing, sound = Work(ValueError()), Work()
    supervisor.start("failing", failing)
    supervisor.start("sound", sound)
    async with asyncio.timeout(10):
        await failing.recovered.wait()
        await sound.recovered.wait()
    assert repr(supervisor).startswith("<Supervisor [failing, sound; failing failed")


async def test_task_that_returns_has_done_its_work(supervisor: Supervisor) -> None:
    done = asyncio.Event()

    async def once() -> None:
        assert not done.is_set()
        done.set()

    supervisor.start("model", once)
    async with asyncio.timeout(10):
        await done.wait()
    await asyncio.sleep(10 * FIRST_PAUSE_SECONDS)
    assert supervisor.troubles == ()


async def test_stop_ends_what_runs_and_what_waits_to_be_run_again() -> None:
    supervisor = Supervisor(Metrics(), first_pause_seconds=3600)
    running = Work()
    supervisor.start("running", running)
    supervisor.start("waiting", Work(ValueError()))
    async with asyncio.timeout(10):
        await running.recovered.wait()
        await supervisor.stop()
    assert [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
