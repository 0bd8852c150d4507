"""What happened to the memories of a scope?"""

from __future__ import annotations

from proxy.core.recall.reinforcement import Rounds, scope_name
from proxy.domain import Ending, Reach, Record
from proxy.settings.policy import ReinforcementPolicy
from proxy.store.database import Database
from proxy.store.journal import Journal
from proxy.store.reinforcement import read_rounds
from tests.talking import heard, record, user

ON = ReinforcementPolicy(enabled=True)
HERE = scope_name(Reach.CONVERSATION, "c-1", "", "")


async def rounds(database: Database, scope: str = HERE, tenant: str = "acme") -> Rounds:
    return await database.ask(lambda ask: read_rounds(ask, tenant, scope))


async def said(journal: Journal, text: str, *quoted: int, tenant: str = "acme") -> Record:
    asked = record([user(text)], tenant=tenant, quoted=quoted)
    await journal.write([asked])
    return asked


async def test_a_block_is_a_round_of_its_scope(database: Database) -> None:
    journal = Journal(database, ON)
    await said(journal, "one")
    await said(journal, "two", 1)
    await said(journal, "three", 1, 2)
    found = await rounds(database)
    assert found.newest == (1, 2), "what the request brings itself takes no part"
    assert found.recalled is not None
    assert {id: (s.round, s.accesses, round(s.confidence, 2)) for id, s in found.recalled.items()} == {
        1: (2, 2, 0.8),
        2: (2, 1, 0.65),
    }


async def test_a_round_touches_no_other_tenant_and_no_other_scope(database: Database) -> None:
    journal = Journal(database, ON)
    await said(journal, "one")
    await said(journal, "one", tenant="beta")
    await said(journal, "two", 1)
    assert await rounds(database, tenant="beta") == Rounds((), {})
    assert await rounds(database, scope_name(Reach.CONVERSATION, "c-2", "", "")) == Rounds((), {})


async def test_what_is_written_again_is_no_other_round(database: Database) -> None:
    journal = Journal(database, ON)
    await said(journal, "one")
    again = await said(journal, "two", 1)
    await journal.write([again])
    assert len((await rounds(database)).newest) == 1


async def test_nothing_is_counted_while_it_is_off(database: Database) -> None:
    journal = Journal(database)
    await said(journal, "one")
    await said(journal, "two", 1)
    assert await rounds(database) == Rounds((), {})


async def test_what_is_forgotten_is_forgotten_here_too(database: Database) -> None:
    journal = Journal(database, ON)
    refused = await said(journal, "one")
    await said(journal, "two", 1)
    await journal.write(answers=[heard(refused, None, Ending.REFUSED)])
    assert (await rounds(database)).recalled == {}
