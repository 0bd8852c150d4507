"""The tables on a server can be partitioned by tenant as they are, and nothing else has to change for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from palimpsest.store.engine.postgres import tables
from palimpsest.store.engine.postgres.database import Database
from palimpsest.store.engine.postgres.tables import NAME
from palimpsest.store.journal import Journal
from palimpsest.store.schema import OF_NO_TENANT
from palimpsest.store.version import VERSION

from tests.servers import Server
from tests.talking import Talk, newest

pytestmark = pytest.mark.slow

PARTITIONS = 4
TENANTS = [f"tenant {number}" for number in range(8)]


def partitioned(sql: str) -> Iterator[str]:
    """A statement and, behind one that makes a table of tenants' rows, those that make its partitions."""
    named = NAME.match(sql)
    if named is None or named[1] in OF_NO_TENANT:
        yield sql
        return
    yield sql.rstrip().removesuffix(";") + " PARTITION BY HASH (tenant)"
    for number in range(PARTITIONS):
        bounds = f"WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
        yield f"CREATE TABLE {named[1]}_{number} PARTITION OF {named[1]} FOR VALUES {bounds}"


async def test_turns_are_kept_in_partitions_by_tenant(server: Server) -> None:
    url = server.new_database()
    made = [one for sql in tables.script() for one in partitioned(sql)]
    with closing(psycopg.connect(url, autocommit=True)) as base:
        for sql in (*made, f"CREATE TABLE palimpsest AS SELECT {VERSION} AS version"):
            base.execute(sql.encode())
    database = Database(url)
    await database.open()
    for tenant in TENANTS:
        talk = Talk(Journal(database), tenant=tenant)
        for number in range(3):
            await talk.say(f"{number}: the scanner of {tenant} is broken")
        head = await newest(talk.journal, talk.history, tenant)
        assert len((await talk.journal.messages(tenant, head.occurrences)).values()) == 6
    held = server.rows(url, "SELECT tableoid, array_agg(DISTINCT tenant) FROM occurrence GROUP BY tableoid")
    assert len(held) > 1 and sorted(one for _, some in held for one in some) == [*range(1, len(TENANTS) + 1)]
    await database.close()
