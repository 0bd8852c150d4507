"""Conversations, as they are listed and shown."""

from __future__ import annotations

from math import inf

import pytest
from palimpsest.core.history.link_keys import id_print
from palimpsest.store.engine import Transaction
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.turns.cleared import cleared_in

from tests.edge.admin.asking import ACME, House
from tests.talking import NOW, Talk


async def test_a_conversation_is_shown_with_what_it_is_about(house: House) -> None:
    shown = await house.get("conversations/c-1")
    assert shown == {
        "conversation": "c-1",
        "tenant": "key:acme",
        "user": "ann/office",
        "scope": "site",
        "role": "main",
        "parent": "",
        "title": "first in c-1",
        "created_at": NOW,
        "last_at": NOW,
        "turns": 2,
        "memories": 4,
        "events": {"start": 1, "append": 1},
        "models": ["m"],
    }
    assert (await house.get("conversations"))["conversations"][2] == shown


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("", ["c-9", "c-2", "c-1"]),
        ("tenant=key:globex", ["c-9"]),
        ("tenant=nobody", []),
        ("user=ann/office", ["c-2", "c-1"]),
        ("user=ann", []),
        ("scope=site&role=main", ["c-2", "c-1"]),
        ("role=side", []),
    ],
)
async def test_conversations_are_listed_by_whose_they_are(house: House, asked: str, found: list[str]) -> None:
    listed = (await house.get(f"conversations?{asked}"))["conversations"]
    assert [one["conversation"] for one in listed] == found


async def test_an_unknown_conversation_is_404(house: House) -> None:
    for path in ("conversations/c-9", "conversations/c-7", "conversations/c-9/turns"):
        assert (await house.ask(f"/memory/v1/{path}", ACME))[0] == 404


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("<system-reminder>be brief</system-reminder>\n\nMend  the\ntest", "Mend the test"),
        ("<env>a</env><rules x='1'>b</rules> go", "go"),
        ("a < b and <b>c</b>", "a < b and <b>c</b>"),
        ("w " * 60, "w " * 39 + "w…"),
        ("<env>only this</env>", ""),
    ],
)
async def test_a_title_is_what_the_user_says_first(house: House, said: str, title: str) -> None:
    await Talk(house.journal, "key:acme", "c-5").say(said)
    assert (await house.get("conversations/c-5"))["title"] == title


async def test_a_key_is_told_its_own_tenant_and_the_operator_all(house: House) -> None:
    assert (await house.get("tenants"))["tenants"] == [
        {"tenant": "key:globex", "conversations": 1},
        {"tenant": "key:acme", "conversations": 2},
    ]
    assert [one["tenant"] for one in (await house.get("tenants", ACME))["tenants"]] == ["key:acme"]


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
