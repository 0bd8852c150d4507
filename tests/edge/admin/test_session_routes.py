"""What a client's hook tells of a session marks its conversations, in the caller's own tenant alone."""

from __future__ import annotations

from math import inf

import pytest
from palimpsest.core.history.link_keys import id_print
from palimpsest.store.engine import Transaction
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.turns.cleared import cleared_in

from tests.edge.admin.asking import ACME, House

TOLD = {"client": "claude-code", "session": "s-1"}


@pytest.fixture(autouse=True)
async def named(database: Database) -> None:
    """The session is the first tenant's conversation c-1, and bears the same id in the other tenant."""

    def name(transaction: Transaction) -> None:
        for tenant, public in (("key:acme", "c-1"), ("key:globex", "c-9")):
            key = id_print(tenant.encode(), "client", "claude-code:s-1")
            transaction.write(
                "INSERT INTO link SELECT tenant, ?, 'client_id', id, (SELECT max(id) FROM turn WHERE conversation ="
                " conversation.id) FROM conversation WHERE public = ?",
                [(key, public)],
            )

    await database.transact(name)


async def test_a_cleared_session_is_marked_up_to_where_it_stands_and_a_resumed_one_is_not(
    house: House, database: Database
) -> None:
    assert await house.send("POST", "sessions", TOLD | {"event": "cleared"}, ACME) == (200, {"conversations": ["c-1"]})
    (last,) = (
        await database.ask(
            lambda ask: ask(
                "SELECT max(occurrence.id) FROM occurrence JOIN conversation ON "
                "conversation.id = occurrence.conversation WHERE public = 'c-1'"
            )
        )
    )[0]
    assert list((await database.ask(lambda ask: cleared_in(ask, 1, 0, -inf))).values()) == [last]
    await house.send("POST", "sessions", TOLD | {"event": "resumed"}, ACME)
    assert await database.ask(lambda ask: cleared_in(ask, 1, 0, -inf)) == {}


async def test_the_operator_marks_it_in_every_tenant(house: House) -> None:
    assert (await house.send("POST", "sessions", TOLD | {"event": "cleared"}))[1] == {"conversations": ["c-1", "c-9"]}


async def test_a_session_that_is_not_known_is_no_mistake_and_an_event_that_is_not_is_one(house: House) -> None:
    unknown = {"client": "codex", "session": "s-1", "event": "cleared"}
    assert await house.send("POST", "sessions", unknown) == (200, {"conversations": []})
    assert (await house.send("POST", "sessions", TOLD | {"event": "slept"}))[0] == 400
