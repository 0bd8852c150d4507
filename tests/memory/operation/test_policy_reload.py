"""The policy follows its file; what is refused changes nothing, and all processes agree on the number of a policy."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from palimpsest.domain.errors import PolicyError
from palimpsest.memory.operation.policy_reload import PolicyReload
from palimpsest.settings import load
from palimpsest.settings.policy import Policy
from palimpsest.settings.source import Source
from palimpsest.store.engine import Engine
from palimpsest.telemetry.metrics import Metrics

from tests.databases import database_in

PATIENCE_SECONDS = 10.0


class Worker:
    """One process's policy, with its file, and what was put into force."""

    def __init__(self, file: Path, database: Engine, **environment: str) -> None:
        self.file, self.applied = file, list[tuple[str, int]]()
        self.fails: Exception | None = None
        self.metrics = Metrics()
        source = Source((file,), {"data": str(file.parent)})
        policy = source.load(environment)
        self.reload = PolicyReload(source, environment, policy, self.apply, database, self.metrics, lambda: 7.0)

    async def apply(self, policy: Policy, number: int) -> None:
        if self.fails:
            raise self.fails
        self.applied.append((policy.memory.reach, number))

    def gauge(self, name: str) -> float:
        lines = self.metrics.render().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"palimpsest_policy_{name} "))


def write(file: Path, text: str | None) -> None:
    """None: remove it."""
    if text is None:
        file.unlink()
    else:
        file.write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "p.yaml"
    file.write_text("memory: {reach: user}")
    return file


async def test_what_the_file_says_comes_into_force_with_the_next_number(file: Path, database: Engine) -> None:
    worker = Worker(file, database)
    await worker.reload.agree()
    assert (worker.applied, worker.gauge("generation")) == ([("user", 1)], 1)
    write(file, "memory: {reach: tenant}\nlisten: {workers: 2}")
    done = await worker.reload.reload()
    assert (done.refused, done.changed, done.waiting) == ("", ("memory.reach",), ("listen.workers",))
    assert worker.applied == [("user", 1), ("tenant", 2)]
    assert (worker.gauge("generation"), worker.reload.policy.listen.workers) == (2, 1)
    again = await worker.reload.reload()
    assert (again.changed, again.waiting, len(worker.applied)) == ((), ("listen.workers",), 2)


async def test_a_file_that_is_refused_changes_nothing_and_is_said_until_one_is_accepted(
    file: Path, database: Engine
) -> None:
    worker = Worker(file, database)
    await worker.reload.agree()
    write(file, "memory: {reach: nowhere}")
    with structlog.testing.capture_logs() as lines:
        done = await worker.reload.reload()
    assert done.refused == f"{file}: memory.reach: 'nowhere' is not allowed; allowed: conversation | user | tenant"
    assert [line["reason"] for line in lines] == [done.refused]
    assert (len(worker.applied), worker.gauge("generation"), worker.gauge("last_reload_successful")) == (1, 1, 0)
    assert "refused, and policy 1 stays in force" in worker.reload.trouble
    assert str(file) not in worker.reload.trouble
    write(file, "memory: {reach: user}")
    assert (await worker.reload.reload()).refused == worker.reload.trouble == ""
    assert worker.gauge("last_reload_successful") == 1
    assert worker.gauge("last_reload_success_timestamp_seconds") == 7


@pytest.mark.parametrize("text", ["memory: [", "- a list", "memory: {reach: user, reach: tenant}", None])
async def test_whatever_is_in_the_file_it_is_refused_with_its_name(
    file: Path, database: Engine, text: str | None
) -> None:
    worker = Worker(file, database)
    write(file, text)
    assert (await worker.reload.reload()).refused.startswith(str(file))
    assert worker.applied == []


@pytest.mark.parametrize(
    ("failure", "words"), [(PolicyError("data: not there"), "data: not there"), (RuntimeError("x"), "RuntimeError")]
)
async def test_what_cannot_be_applied_changes_nothing(
    file: Path, database: Engine, failure: Exception, words: str
) -> None:
    worker = Worker(file, database)
    await worker.reload.agree()
    worker.fails = failure
    write(file, "memory: {reach: tenant}")
    assert words in (await worker.reload.reload()).refused
    assert (worker.reload.policy.memory.reach, worker.reload.number) == ("user", 1)


async def test_workers_agree_on_the_number_whoever_reads_first(file: Path, database: Engine) -> None:
    one, two = Worker(file, database), Worker(file, database)
    for worker in (one, two):
        await worker.reload.agree()
    for reach in ("tenant", "conversation"):
        write(file, f"memory: {{reach: {reach}}}")
        await one.reload.reload()
        await two.reload.agree()
        assert two.reload.policy.memory.reach == "user"
    await two.reload.reload()
    assert one.applied == [("user", 1), ("tenant", 2), ("conversation", 3)]
    assert two.applied == [("user", 1), ("conversation", 3)]


async def test_a_restart_with_the_same_policy_keeps_its_number(file: Path, database: Engine) -> None:
    for _ in range(2):
        worker = Worker(file, database)
        await worker.reload.agree()
        assert worker.reload.number == 1


async def test_without_the_database_policies_are_numbered_until_it_is_there(file: Path, tmp_path: Path) -> None:
    late = database_in(tmp_path, "journal.db")
    worker = Worker(file, late)
    write(file, "memory: {reach: tenant}")
    await worker.reload.reload()
    assert (worker.applied, late.is_healthy) == ([("tenant", 1)], False)
    await late.open()
    await worker.reload.agree()
    assert worker.reload.number == 1
    await late.close()


async def test_a_worker_that_starts_later_begins_with_what_is_in_force(
    file: Path, database: Engine, tmp_path: Path
) -> None:
    environment = {load.POLICY_FILE_ENV: str(tmp_path / "policy.json")}
    worker = Worker(file, database, **environment)
    environment |= load.hand_over(worker.reload.policy)
    assert load.handed_over(environment).memory.reach == "user"
    write(file, "memory: {reach: tenant}")
    await worker.reload.reload()
    write(file, "what is this")
    await worker.reload.reload()
    assert load.handed_over(environment).memory.reach == "tenant"


async def test_a_new_admin_token_comes_into_force_too(file: Path, database: Engine, tmp_path: Path) -> None:
    token = tmp_path / "token"
    write(token, "one")
    worker = Worker(file, database, PALIMPSEST_ADMIN_TOKEN_FILE=str(token))
    write(token, "two")
    await worker.reload.reload()
    assert len(worker.applied) == 1
    write(token, "")
    assert "is empty" in (await worker.reload.reload()).refused


async def test_a_file_that_changes_is_noticed_and_one_that_is_being_written_is_waited_for(
    file: Path, database: Engine
) -> None:
    worker = Worker(file, database)
    watching = asyncio.create_task(worker.reload.watch())
    try:
        for _ in range(8):  # an editor at work: never the same twice, and now and then empty
            write(file, "")
            await asyncio.sleep(0.02)
            write(file, f"memory: {{reach: tenant}} # {_}")
            await asyncio.sleep(0.02)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not worker.applied:  # noqa: ASYNC110 - it knows nothing of us
                await asyncio.sleep(0.01)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    assert [reach for reach, _ in worker.applied] == ["tenant"]
