"""A copy of a database has every row of it, also where it was interrupted, and refuses to be mixed with another."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine import Engine
from palimpsest.store.engine.last_ids import last_ids
from palimpsest.store.engine.postgres.database import Database as Server
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.migration import Copied, migrate

from tests.remembered import Past
from tests.servers import Server as Servers
from tests.store.engine.test_secret_mark import MINE, again

pytestmark = pytest.mark.sqlite


class Killed(Exception):
    """The process that copied has ended."""


def quietly(_table: str, _rows: int) -> None:
    pass


def by_table(copied: list[Copied]) -> dict[str, tuple[int, str]]:
    return {one.table: (one.rows, one.digest) for one in copied}


async def filled(file: Path) -> Database:
    database = Database(file)
    await database.open()
    past = Past(database)
    for number in range(3):
        await past.say(f"The lighthouse number {number} keeps the blue lantern.", conversation=f"c-{number}")
    await past.index()
    return database


@pytest.fixture
async def on_server(server: Servers) -> Engine:
    database = Server(server.new_database())
    await database.open()
    return database


@pytest.mark.parametrize("killed_at", ["conversation", "occurrence", "memory_text"])
async def test_a_copy_that_was_interrupted_goes_on_where_it_was(
    tmp_path: Path, on_server: Engine, killed_at: str
) -> None:
    source = await filled(tmp_path / "one.db")
    back = Database(tmp_path / "two.db")
    await back.open()

    def die(table: str, rows: int) -> None:
        if table == killed_at and rows:
            raise Killed

    for one, other in ((source, on_server), (on_server, back)):
        with pytest.raises(Killed):
            await migrate(one, other, die)
        with pytest.raises(MemoryFault, match="repeat `palimpsest migrate`"):
            await again(other, MINE).open()
        copied = by_table(await migrate(one, other, quietly))
        assert copied["memory_text"][0] > 0 and copied["turn"][0] > 0
        assert await other.ask(last_ids) == await source.ask(last_ids)
    third = await empty(tmp_path / "three.db")
    assert copied == by_table(await migrate(back, third, quietly))
    for database in (source, on_server, back, third):
        await database.close()


async def empty(file: Path) -> Database:
    database = Database(file)
    await database.open()
    return database


async def test_a_database_that_holds_something_else_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    source, other = await filled(tmp_path / "one.db"), await filled(tmp_path / "two.db")
    before = await other.read("SELECT count(*) FROM turn")
    with pytest.raises(MemoryFault, match="it is not empty"):
        await migrate(source, other, quietly)
    assert await other.read("SELECT count(*) FROM turn") == before
    half, third = await empty(tmp_path / "half.db"), await filled(tmp_path / "three.db")

    def die(table: str, rows: int) -> None:
        if rows:
            raise Killed

    with pytest.raises(Killed):
        await migrate(source, half, die)
    with pytest.raises(MemoryFault, match="it holds a part of"):
        await migrate(third, half, quietly)
    for database in (source, other, half, third):
        await database.close()


async def test_a_row_that_differs_is_told(tmp_path: Path) -> None:
    source, target = await filled(tmp_path / "one.db"), await empty(tmp_path / "two.db")

    def die(table: str, _rows: int) -> None:
        if table == "turn":
            raise Killed

    with pytest.raises(Killed):
        await migrate(source, target, die)
    await target.write([("UPDATE content SET text = 'something else' WHERE id = 1", [()])])
    with pytest.raises(MemoryFault, match="content differs"):
        await migrate(source, target, quietly)
    for database in (source, target):
        await database.close()
