"""PostgreSQL keeps the store's promises with many writers, and says what is wrong in words."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
import pytest
from palimpsest.domain.errors import DataFault, MemoryFault
from palimpsest.store.engine import Ask, Transaction, nobody
from palimpsest.store.engine.postgres.database import Database
from palimpsest.store.journal import Journal
from palimpsest.store.operation.changes import lease
from palimpsest.store.search.derived import CLAIM, Derived
from palimpsest.store.version import VERSION

from tests.servers import Server
from tests.talking import Talk

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 20.0
RUNNING = """
SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()
"""


@pytest.fixture
async def base(server: Server) -> AsyncIterator[Database]:
    """A database that is open, with the tenants `a` and `b`."""
    database = Database(server.new_database("empty"))
    await database.open()
    await database.write([("INSERT INTO tenant(id, name) VALUES (?, ?)", [(1, "a"), (2, "b")])])
    yield database
    await database.close()


def content(transaction: Transaction, tenant: int, count: int = 1) -> list[int]:
    """New rows of a table with ids of the engine's."""
    ids = [*transaction.new_ids("content", count)]
    rows = [(id, tenant, f"{id}".encode(), "said", "{}") for id in ids]
    transaction.write("INSERT INTO content(id, tenant, digest, text, rest) VALUES (?, ?, ?, ?, ?)", rows)
    return ids


async def ids_of(database: Database) -> list[int]:
    return [id for (id,) in await database.read("SELECT id FROM content ORDER BY id")]


def named(*tenants: str) -> Callable[[Ask], list[str]]:
    return lambda ask: [*tenants]


class Pause:
    """A writer that stops in the middle, when all that it asked for was done, until it may go on."""

    def __init__(self) -> None:
        self.is_there, self._may_go_on = threading.Event(), threading.Event()

    def __call__(self, transaction: Transaction) -> None:
        transaction.read("SELECT 1")
        self.is_there.set()
        assert self._may_go_on.wait(PATIENCE_SECONDS)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self.is_there.wait, PATIENCE_SECONDS)

    def end(self) -> None:
        self._may_go_on.set()


@pytest.mark.parametrize("steps_before_pause", [0, 1, 2])
async def test_a_cursor_inside_a_tenant_never_passes_an_id_that_is_committed_later(
    base: Database, steps_before_pause: int
) -> None:
    pause, other, third = Pause(), Database(base.url), Database(base.url)
    await asyncio.gather(other.open(), third.open())

    def slow(transaction: Transaction) -> list[int]:
        given = []
        for step in range(3):
            if step == steps_before_pause:
                pause(transaction)
            given += content(transaction, 1)
        return given

    first = asyncio.create_task(base.transact(slow, named("a")))
    await pause.reached()
    second = asyncio.create_task(other.transact(lambda transaction: content(transaction, 1), named("a")))
    of_another = await third.transact(lambda transaction: content(transaction, 2), named("b"))
    assert await ids_of(base) == of_another, "who writes for another tenant does not wait"
    assert not second.done()
    pause.end()
    assert max(await first) < min(await second)
    await asyncio.gather(other.close(), third.close())


async def test_who_names_no_tenant_is_alone(base: Database) -> None:
    pause, other = Pause(), Database(base.url)
    await other.open()
    first = asyncio.create_task(base.transact(lambda transaction: (pause(transaction), content(transaction, 1))[1]))
    await pause.reached()
    others = [
        asyncio.create_task(other.transact(lambda transaction: content(transaction, 2), whose))
        for whose in (named("b"), None)
    ]
    await asyncio.sleep(0.2)
    assert not any(task.done() for task in others)
    pause.end()
    given = await first
    assert max(given) < min(min(some) for some in await asyncio.gather(*others))
    await other.close()


async def test_the_list_that_all_caches_follow_is_in_the_order_of_commits(base: Database) -> None:
    pause, other = Pause(), Database(base.url)
    await other.open()

    def note(transaction: Transaction, memory: int) -> None:
        transaction.keep_order("forgotten")
        transaction.write("INSERT INTO forgotten(memory) VALUES (?)", [(memory,)])
        if memory == 1:
            pause(transaction)

    first = asyncio.create_task(base.transact(lambda transaction: note(transaction, 1), named("a")))
    await pause.reached()
    second = asyncio.create_task(other.transact(lambda transaction: note(transaction, 2), named("b")))
    await asyncio.sleep(0.2)
    assert await base.read("SELECT count(*) FROM forgotten") == [(0,)] and not second.done()
    pause.end()
    await asyncio.gather(first, second)
    assert await base.read("SELECT memory FROM forgotten ORDER BY seq") == [(1,), (2,)]
    await other.close()


async def test_writers_of_many_tenants_lose_nothing(base: Database) -> None:
    databases = [base, Database(base.url), Database(base.url)]
    await asyncio.gather(*(database.open() for database in databases))
    whose = [("a",), ("b",), ("a", "b"), ("b", "a"), None]
    given = await asyncio.gather(
        *(
            databases[number % 3].transact(
                partial(content, tenant=2 if whose[number % 5] == ("b",) else 1, count=3),
                named(*names) if (names := whose[number % 5]) else None,
            )
            for number in range(30)
        )
    )
    assert await ids_of(base) == sorted(id for some in given for id in some)
    assert len({id for some in given for id in some}) == 90
    for database in databases[1:]:
        await database.close()


async def test_a_deadlock_is_undone_and_done_again(base: Database) -> None:
    other = Database(base.url)
    both = threading.Barrier(2, timeout=PATIENCE_SECONDS)
    tries = []

    def rename(first: int, then: int) -> Callable[[Transaction], None]:
        def work(transaction: Transaction) -> None:
            tries.append(first)
            transaction.write("UPDATE tenant SET name = name || 'x' WHERE id = ?", [(first,)])
            transaction.read("SELECT 1")  # the server has done that
            if len(tries) <= 2:
                both.wait()
            transaction.write("UPDATE tenant SET name = name || 'x' WHERE id = ?", [(then,)])

        return work

    await asyncio.gather(base.transact(rename(1, 2), named("c")), other.transact(rename(2, 1), named("d")))
    await other.close()
    assert len(tries) >= 3  # more where the one that was undone comes first again
    assert await base.read("SELECT name FROM tenant ORDER BY id") == [("axx",), ("bxx",)]


async def test_what_raises_leaves_nothing(base: Database) -> None:
    def work(transaction: Transaction) -> None:
        content(transaction, 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        await base.transact(work)
    assert await ids_of(base) == []


async def test_a_record_that_breaks_a_rule_is_told_from_a_server_that_fails_and_not_repeated(base: Database) -> None:
    with pytest.raises(DataFault) as failure:
        await base.write([("INSERT INTO tenant(id, name) VALUES (?, ?)", [(1, "a secret")])])
    assert "UniqueViolation" in str(failure.value) and "secret" not in str(failure.value)
    assert base.is_healthy


async def test_a_read_that_is_cancelled_is_ended_on_the_server(base: Database) -> None:
    reading = asyncio.create_task(base.read("SELECT pg_sleep(?)", (PATIENCE_SECONDS * 3,)))
    await asyncio.sleep(0.3)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await base.read(RUNNING):  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0.05)


async def test_reading_cannot_write(base: Database) -> None:
    with pytest.raises(MemoryFault, match="ReadOnlySqlTransaction"):
        await base.read("DELETE FROM tenant RETURNING id")


async def test_a_server_that_was_restarted_is_used_again_and_one_that_is_away_is_said_to_be(own_server: Server) -> None:
    database = Database(own_server.new_database())
    await database.open()
    await database.write([("INSERT INTO tenant(name) VALUES (?)", [("a",)])])
    own_server.stop()
    with pytest.raises(MemoryFault, match=r"check that the server runs|was stopped"):
        await database.read("SELECT 1")
    with pytest.raises(MemoryFault, match=r"check that the server runs|was stopped"):
        await database.write([("INSERT INTO tenant(name) VALUES (?)", [("b",)])])
    assert not database.is_healthy
    own_server.start()
    await database.write([("INSERT INTO tenant(name) VALUES (?)", [("c",)])])
    assert await database.read("SELECT name FROM tenant ORDER BY id") == [("a",), ("c",)]
    assert database.is_healthy
    own_server.stop()
    own_server.start()
    assert await database.read("SELECT count(*) FROM tenant") == [(2,)], "a restart that nobody saw is not noticed"
    await database.close()


async def test_a_database_that_cannot_be_opened_says_why_without_the_password(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    for url, words in (
        (server.url("missing"), "create the database"),
        ("postgresql://u@127.0.0.1:1/none", "check that the server runs"),
    ):
        database = Database(url, file)
        with pytest.raises(MemoryFault, match=words) as failure:
            await database.open()
        assert "hunter2" not in str(failure.value) and database.error == str(failure.value)
    database = Database(server.url("empty"), tmp_path / "none")
    with pytest.raises(MemoryFault, match=r"store\.password_file"):
        await database.open()


async def test_tables_are_made_once_by_whoever_comes_first(server: Server) -> None:
    url = server.new_database()
    databases = [Database(url) for _ in range(4)]
    await asyncio.gather(*(database.open() for database in databases))
    assert await databases[0].read("SELECT version FROM palimpsest") == [(VERSION,)]
    for database in databases:
        await database.close()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("CREATE TABLE tenant (id INT)", "belongs to another program"),
        ("CREATE TABLE palimpsest (version BIGINT); INSERT INTO palimpsest VALUES (1000)", "install that one"),
    ],
)
async def test_a_database_of_others_is_not_touched(server: Server, script: str, words: str) -> None:
    url = server.new_database()
    server.psql(script, url.rpartition("/")[2])
    database = Database(url)
    with pytest.raises(MemoryFault, match=words):
        await database.open()
    with closing(psycopg.connect(url)) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchall() == [(1,)]


async def test_values_are_what_they_are_on_sqlite(base: Database) -> None:
    asked = (1 << 40, True, 0.5, "ä \ud7ff", b"\0\xff", None)
    sql = (
        "SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS DOUBLE PRECISION), CAST(? AS TEXT), CAST(? AS BYTEA),"
        " CAST(? AS TEXT)"
    )
    assert await base.read(sql, asked) == [(1 << 40, 1, 0.5, "ä \ud7ff", b"\0\xff", None)]
    ((total,),) = await base.read("SELECT sum(id) FROM tenant")
    assert (total, type(total)) == (3, int)
    named_twice = "SELECT CAST(:one AS TEXT) || :two || CAST(:one AS TEXT) || ':two'"
    assert await base.ask(lambda ask: ask(named_twice, {"two": "b", "one": "a"})) == [("aba:two",)]
    rows = [("B",), ("c",), ("ä",), ("Z",)]
    await base.write([("INSERT INTO tenant(id, name) VALUES (?, ?)", [(n, *row) for n, row in enumerate(rows, 10)])])
    found = await base.read("SELECT name FROM tenant WHERE name NOT IN ('a', 'b') ORDER BY name")
    assert found == sorted(rows)


@pytest.fixture
async def two(base: Database) -> AsyncIterator[tuple[Database, Database]]:
    """Two processes on one database."""
    other = Database(base.url)
    await other.open()
    yield base, other
    await other.close()


async def test_passages_that_one_process_claims_another_passes_over(two: tuple[Database, Database]) -> None:
    for number in range(6):
        await Talk(Journal(two[0]), "a", f"c-{number}").say(f"The lamp of hall {number} was replaced in May.")
    waiting = {id for (id,) in await two[0].read("SELECT memory FROM unindexed")}
    pause = Pause()

    def claim(transaction: Transaction) -> list[int]:
        claimed = transaction.read(CLAIM, ("one", 2e9, 1e9, 3e9, 4))
        pause(transaction)
        return [id for (id,) in claimed]

    first = asyncio.create_task(two[0].transact(claim, nobody))
    await pause.reached()
    second = await Derived(two[1], lambda: 1e9).claim(100, "two", 60.0, "a model")
    none = await Derived(two[1], lambda: 1e9).claim(100, "three", 60.0, "a model")
    pause.end()
    mine, theirs = set(await first), {one.memory for one in second}
    assert (len(mine), none, mine & theirs, mine | theirs) == (4, (), set(), waiting)


async def test_who_claims_keeps_no_writer_of_a_tenant_waiting(two: tuple[Database, Database]) -> None:
    pause = Pause()
    first = asyncio.create_task(two[0].transact(pause, nobody))
    await pause.reached()
    assert await asyncio.wait_for(two[1].transact(lambda transaction: content(transaction, 1), named("a")), 10)
    alone = asyncio.create_task(two[1].transact(lambda transaction: content(transaction, 1)))
    await asyncio.sleep(0.2)
    assert not alone.done()  # who erases is alone
    pause.end()
    await asyncio.gather(first, alone)


async def test_of_many_that_take_a_lease_at_once_one_has_it(two: tuple[Database, Database]) -> None:
    def take(number: int, now_ms: int) -> Callable[[Transaction], bool]:
        return partial(lease, name="work", mine=0, now_ms=now_ms, until_ms=now_ms + 1000 + number)

    for now_ms in (10_000, 10_500, 12_000):  # nobody's; somebody's; over
        taken = await asyncio.gather(*(two[n % 2].transact(take(n, now_ms), nobody) for n in range(12)))
        assert sum(taken) == (now_ms != 10_500)


async def test_vectors_of_passages_that_are_removed_meanwhile_are_left_out(two: tuple[Database, Database]) -> None:
    for number in range(2):
        await Talk(Journal(two[0]), "a", f"c-{number}").say(f"The lamp of hall {number} was replaced in May.")
    gone, *others = [id for (id,) in await two[0].read("SELECT memory FROM unindexed ORDER BY memory")]
    pause = Pause()

    def remove(transaction: Transaction) -> None:
        for table, key in (("unindexed", "memory"), ("memory", "id")):
            transaction.write(f"DELETE FROM {table} WHERE {key} = ?", [(gone,)])
        pause(transaction)

    first = asyncio.create_task(two[0].transact(remove, named("a")))
    await pause.reached()
    vector = np.ones(64, np.float32)
    second = asyncio.create_task(
        Derived(two[1], lambda: 1e9).save_vectors("a model", dict.fromkeys((gone, *others), vector))
    )
    await asyncio.sleep(0.2)
    assert not second.done()
    pause.end()
    await asyncio.gather(first, second)
    assert [id for (id,) in await two[0].read("SELECT memory FROM vector ORDER BY memory")] == others
