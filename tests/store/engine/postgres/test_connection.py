"""Connections wait for the server as seldom as they can, and need nothing that a pooler does not keep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from threading import Barrier
from typing import Any

import psycopg
import pytest
from palimpsest.domain import Candidate, Continuation, HeadFlag, Query
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.recall import Recall
from palimpsest.store.engine import Transaction
from palimpsest.store.engine.postgres import connection
from palimpsest.store.engine.postgres.database import READERS, Database
from palimpsest.store.journal import Journal
from palimpsest.telemetry.metrics import Metrics

from tests.poolers import running_pooler
from tests.relay import Relay, relayed
from tests.remembered import DIMENSIONS, Past, WordEmbedder
from tests.running import PATIENCE_SECONDS
from tests.servers import Server
from tests.talking import NOW, Talk, heard, look, print_of, record, user

pytestmark = pytest.mark.slow

MOST_ROUND_TRIPS = 2  # of a turn, written in one transaction
MOST_STATEMENTS = 8  # of it, beside BEGIN and COMMIT
MOST_OF_RECALL = 5  # scope, passages that hold words of the question, texts; then those that hold words of these, texts
DELAY_SECONDS = 0.05  # of each answer: on a busy machine as well, what is sent without waiting is sent before it comes
MOST_OF_ACCOUNT = 3  # of lost work, looked up meanwhile: its scope, its passages, their texts
SAID = {"acme": "The lamp of hall nine is broken.", "globex": "The quay is closed on Sundays."}  # by tenant
WORDS = "SELECT text FROM content ORDER BY id"
TEXT = "The scanner in hall nine reports error E7706 whenever its lamp is older than two years."


@pytest.fixture(scope="module")
def pooler(server: Server) -> Iterator[int]:
    with running_pooler(server) as port:
        yield port


@pytest.fixture
async def pooled(server: Server, pooler: int) -> AsyncIterator[list[Database]]:
    """Two processes' databases behind a pooler, which has fewer connections than they."""
    url = server.new_database("empty").replace(f":{server.port}/", f":{pooler}/")
    databases = [Database(url), Database(url)]
    for database in databases:
        await database.open()
    yield databases
    for database in databases:
        await database.close()


@asynccontextmanager
async def relayed_database(server: Server) -> AsyncIterator[tuple[Database, Relay]]:
    """A database whose readers are all connected: that they do so counts for no request."""
    with relayed(server.new_database("empty")) as (url, relay):
        database, all_read = Database(url), Barrier(READERS)
        await database.open()
        try:
            await asyncio.gather(*(database.ask(lambda ask: all_read.wait(PATIENCE_SECONDS)) for _ in range(READERS)))
            relay.delay_seconds = DELAY_SECONDS
            yield database, relay
        finally:
            await database.close()


async def test_a_turn_takes_few_statements_and_round_trips(server: Server) -> None:
    async with relayed_database(server) as (database, relay):
        journal, talk = Journal(database), Talk(Journal(database))
        for number in range(3):
            await talk.say(f"{number}: {TEXT}")
        asked = record((*talk.history, user("And the lamp of hall ten?")), talk.head)
        before = relay.round_trips, relay.statements
        await journal.write([asked], [heard(asked, "It was replaced in May.")])
        assert 0 < relay.round_trips - before[0] <= MOST_ROUND_TRIPS
        assert 0 < relay.statements - before[1] - 2 <= MOST_STATEMENTS


async def test_a_request_that_goes_on_is_looked_up_in_one_round_trip_and_an_unknown_one_in_two(server: Server) -> None:
    async with relayed_database(server) as (database, relay):
        journal, talk = Journal(database), Talk(Journal(database))
        for number in range(3):
            asked = await talk.say(f"{number}: {TEXT}")
        before = relay.round_trips
        answer = print_of(talk.tenant, talk.history[-1]).full
        assert (await journal.head(Continuation(talk.tenant, asked.turn.id, answer))).heads
        assert relay.round_trips - before == 1
        assert (await look(journal, talk.history)).heads
        assert relay.round_trips - before == 1 + 2


async def test_a_restore_takes_few_round_trips_whether_its_scope_is_known_or_not(server: Server) -> None:
    port, moved = "Our database is Postgres on port 5432 on heron.", "We moved our database from port 5432 to 5433."
    edited = "src/lamp.py\n```\n<<<<<<< SEARCH\nwatt = 40\n=======\nwatt = 60\n>>>>>>> REPLACE\n```"
    talk = (port, "Good.", *(f"{n}: {TEXT}" for n in range(18)), moved, "Good.", "Set it to 60.", edited)
    async with relayed_database(server) as (database, relay):
        past = Past(database)
        lost = frozenset(await past.say(*talk))
        await past.index()
        await database.write([("UPDATE occurrence SET flags = ? WHERE role = 'user'", [(HeadFlag.USER,)])])

        async def recalled(question: str, recall: Recall, most: int, **more: Any) -> list[Candidate]:
            before = relay.round_trips
            found = await recall.recall(Query("acme", "c-1", question, lost=lost, **more), 100)
            assert 0 < relay.round_trips - before <= most
            assert (found.account is not None) is bool(more)
            return [one for one in found.candidates if one.signals.get("update", (0, 0.0))[1]]

        recall = Recall(database, PassageTables("words", DIMENSIONS), WordEmbedder(), Metrics(), lambda: NOW)
        for _ in range(2):
            assert await recalled("On which port is Postgres?", recall, MOST_OF_RECALL)
        most = MOST_OF_RECALL + MOST_OF_ACCOUNT
        await recalled("On which port is Postgres?", recall, most, account_chars=2000)


async def test_rows_are_written_once_each_and_in_order_however_many_there_are(server: Server) -> None:
    database = Database(server.new_database("empty"))
    await database.open()
    rows = [(number, f"tenant {number}") for number in range(1, 2 * connection.MOST_ROWS + 8)]
    await database.write([("INSERT INTO tenant(id, name) VALUES (?, ?)", rows)])
    assert await database.read("SELECT id, name FROM tenant ORDER BY id") == rows
    await database.close()


async def test_a_text_that_holds_nul_is_written_and_found_without(server: Server) -> None:
    database = Database(server.new_database("empty"))
    await database.open()
    await database.write([("INSERT INTO tenant(id, name) VALUES (?, ?)", [(1, "a\0b")])])
    assert await database.read("SELECT name FROM tenant WHERE name = ?", ("a\0b",)) == [("a b",)]
    await database.close()


async def test_behind_a_pooler_processes_do_not_mistake_each_others_statements(pooled: list[Database]) -> None:
    """Each asks in an order of its own, so that a statement that was prepared under a name would be another one."""
    sums = [f"SELECT CAST({number} AS BIGINT) + CAST(? AS BIGINT)" for number in range(8)]

    async def ask(database: Database, number: int) -> bool:
        return await database.read(sums[number % 8], (1000,)) == [(1000 + number % 8,)]

    answers = await asyncio.gather(*(ask(pooled[number % 2], number * (1 + number % 2)) for number in range(80)))
    assert all(answers)


async def test_behind_a_pooler_settings_end_with_the_transaction(pooled: list[Database]) -> None:
    named = "SELECT current_setting('statement_timeout'), current_setting('transaction_read_only')"
    writes = await pooled[0].transact(lambda transaction: transaction.read(named))
    assert (writes, await pooled[1].read(named)) == ([("2min", "off")], [("30s", "on")])


async def test_behind_a_pooler_writers_of_a_tenant_wait_for_each_other(pooled: list[Database]) -> None:
    def add(transaction: Transaction) -> list[int]:
        given = [*transaction.new_ids("tenant", 3)]
        transaction.write("INSERT INTO tenant(id, name) VALUES (?, ?)", [(id, f"{id}") for id in given])
        return given

    given = await asyncio.gather(*(pooled[number % 2].transact(add, lambda ask: ["a"]) for number in range(20)))
    assert await pooled[0].read("SELECT id FROM tenant ORDER BY id") == sorted((id,) for some in given for id in some)


@pytest.fixture(params=["server", "pooler"])
async def fenced(request: pytest.FixtureRequest, server: Server, pooler: int) -> AsyncIterator[Database]:
    """A database in which two tenants have said something, also behind a pooler."""
    url = server.new_database("empty")
    database = Database(url if request.param == "server" else url.replace(f":{server.port}/", f":{pooler}/"))
    await database.open()
    for tenant, text in SAID.items():
        talk = Talk(Journal(database), tenant=tenant)
        await talk.say(text)
    yield database
    await database.close()


async def test_a_read_that_lacks_its_condition_finds_rows_of_its_tenant_only(fenced: Database) -> None:
    for tenant, text in SAID.items():
        found = [words for (words,) in await fenced.read(WORDS, (), tenant)]
        assert text in found and not ({*SAID.values()} - {text}) & {*found}
        with pytest.raises(MemoryFault):
            await fenced.read("SELECT 1 / 0", (), tenant)
    assert await fenced.read(WORDS, (), "nobody") == []
    assert {*SAID.values()} <= {words for (words,) in await fenced.read(WORDS)}


async def test_a_write_that_lacks_its_condition_changes_rows_of_its_tenant_only(fenced: Database) -> None:
    def drop(transaction: Transaction) -> None:
        transaction.write("UPDATE turn SET model = 'changed'")
        transaction.write("DELETE FROM link")

    await fenced.transact(drop, lambda ask: ["globex"])
    changed = "SELECT DISTINCT name FROM turn JOIN tenant ON tenant.id = turn.tenant WHERE model = 'changed'"
    linked = "SELECT DISTINCT name FROM link JOIN tenant ON tenant.id = link.tenant"
    assert (await fenced.read(changed), await fenced.read(linked)) == ([("globex",)], [("acme",)])


async def test_rows_cannot_be_written_for_tenants_that_are_not_named(fenced: Database) -> None:
    def add(transaction: Transaction) -> None:
        transaction.write(
            "INSERT INTO content(tenant, digest, text, rest) SELECT id, CAST('x' AS BYTEA), '', '{}' FROM tenant"
            " WHERE name = 'acme'"
        )

    await fenced.transact(add, lambda ask: ["globex", "acme"])
    with pytest.raises(MemoryFault, match="row-level security"):
        await fenced.transact(add, lambda ask: ["globex"])


async def test_whoever_says_nothing_sees_nothing(server: Server) -> None:
    url = server.new_database("empty")
    database = Database(url)
    await database.open()
    await Talk(Journal(database)).say(TEXT)
    with closing(psycopg.connect(url)) as other:
        for table in ("turn", "content", "memory_text", "posting", "term"):
            assert other.execute(f"SELECT count(*) FROM {table}".encode()).fetchall() == [(0,)], table
    assert server.rows(url, "SELECT count(*) > 0 FROM memory_text") == [(True,)]
    await database.close()
