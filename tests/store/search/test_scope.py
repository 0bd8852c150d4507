from __future__ import annotations

import pytest
from palimpsest.domain import Query, Reach, Role
from palimpsest.store.search.scope import Scope, conversations_in, in_other_folders, scope_of

from tests.remembered import Past


@pytest.fixture
async def told(past: Past) -> Past:
    await past.say("alpha one", conversation="c-1", user="lena", scope="shop")
    await past.say("alpha two", conversation="c-2", user="lena", scope="till")
    await past.say("alpha three", conversation="c-3", user="omar", scope="shop")
    await past.say("alpha four", conversation="c-1", tenant="other", user="lena", scope="shop")
    return past


async def of(past: Past, query: Query) -> tuple[Scope, int] | None:
    return await past.database.ask(lambda ask: scope_of(ask, query))


async def within(past: Past, reach: Reach, **more: str) -> list[str]:
    """The texts that a question of conversation c-1 may look at."""
    query = Query("acme", "c-1", "alpha", reach=reach, **more)
    found = await of(past, query)
    assert found is not None
    condition, args = found[0].condition
    rows = await past.database.read(
        "SELECT content.text FROM memory JOIN occurrence ON occurrence.id = memory.occurrence"
        f" JOIN content ON content.id = occurrence.content WHERE {condition} ORDER BY memory.id",
        args,
    )
    return [text for (text,) in rows]


async def test_a_conversation_sees_only_itself_whoever_uses_its_name(told: Past) -> None:
    assert await within(told, Reach.CONVERSATION) == ["alpha one"]


async def test_a_user_sees_its_own_conversations(told: Past) -> None:
    assert await within(told, Reach.USER, user="lena") == ["alpha one", "alpha two"]


async def test_a_project_narrows_user_and_tenant(told: Past) -> None:
    assert await within(told, Reach.USER, user="lena", scope="till") == ["alpha two"]
    assert await within(told, Reach.TENANT, scope="shop") == ["alpha one", "alpha three"]


async def test_a_tenant_sees_everything_of_its_own_and_nothing_else(told: Past) -> None:
    assert await within(told, Reach.TENANT) == ["alpha one", "alpha two", "alpha three"]


async def test_nobody_and_nothing_have_no_scope(told: Past) -> None:
    for query in (
        Query("stranger", "c-1", "alpha"),
        Query("acme", "c-9", "alpha"),
        Query("acme", "c-1", "alpha", reach=Reach.USER),
    ):
        assert await of(told, query) is None


async def test_a_conversation_that_is_not_stored_yet_reaches_the_others(told: Past) -> None:
    found = await of(told, Query("acme", "c-9", "alpha", reach=Reach.TENANT))
    assert found is not None and found[1] == 0


async def test_questions_of_one_user_share_a_scope(told: Past) -> None:
    scopes = {
        (await of(told, Query("acme", name, "alpha", reach=Reach.USER, user="lena")) or ("",))[0]
        for name in ("c-1", "c-2")
    }
    assert len(scopes) == 1


async def in_folder(
    past: Past, folder: int, conversation: str = "", tenant: str = "acme", *, elsewhere: bool = False
) -> set[str]:
    """The main conversations of a tenant in a folder, or in that of a conversation; or all in any other."""
    ids = dict(
        await past.database.read(
            "SELECT public, conversation.id FROM conversation JOIN tenant ON tenant.id = tenant WHERE name = ?",
            (tenant,),
        )
    )
    ((id,),) = await past.database.read("SELECT id FROM tenant WHERE name = ?", (tenant,))
    own = ids.get(conversation, 0)
    found = await past.database.ask(
        lambda ask: (
            in_other_folders(ask, id, folder, own, [*ids.values()])
            if elsewhere
            else conversations_in(ask, id, folder, own)
        )
    )
    return {name for name, number in ids.items() if number in found}


async def test_a_folder_holds_the_main_conversations_of_its_tenant_and_each_keeps_its_first_one(past: Past) -> None:
    await past.say("alpha", conversation="c-1", folder=7)
    await past.say("beta", conversation="c-2")
    await past.say("gamma", conversation="c-3", folder=7, role=Role.SUBAGENT)
    await past.say("delta", conversation="c-1", tenant="other", folder=7)
    assert await in_folder(past, 7) == {"c-1"}
    assert await in_folder(past, 0) == await in_folder(past, 0, "c-2") == set()
    assert await in_folder(past, 8, elsewhere=True) == {"c-1", "c-3"}, "of a folder that holds nothing yet, all others"
    assert await in_folder(past, 0, elsewhere=True) == await in_folder(past, 0, "c-2", elsewhere=True) == set()
    await past.say("later", conversation="c-2", folder=7)
    await past.say("elsewhere", conversation="c-2", folder=8)
    assert await in_folder(past, 7) == await in_folder(past, 0, "c-2") == {"c-1", "c-2"}
    assert await in_folder(past, 8) == await in_folder(past, 7, elsewhere=True) == set()
    assert await in_folder(past, 8, "c-1", elsewhere=True) == {"c-2", "c-3"}, (
        "nor the conversation itself, whatever it names"
    )


async def test_a_folder_that_is_named_goes_before_the_mark_of_a_prompt(past: Past) -> None:
    await past.say("alpha", conversation="c-1", folder=7)
    await past.say("beta", conversation="c-2", folder=-5)
    await past.say("gamma", conversation="c-3", folder=7, scope="shop")
    assert await in_folder(past, 7) == await in_folder(past, -5, "c-1") == {"c-1"}, "once named, it is that one"
    assert await in_folder(past, -5) == {"c-2"}
    assert await in_folder(past, -5, elsewhere=True) == await in_folder(past, 0, "c-2", elsewhere=True) == set()
    await past.say("later", conversation="c-2", folder=7)
    await past.say("later still", conversation="c-2", folder=-6)
    assert await in_folder(past, 7) == {"c-1", "c-2"} and await in_folder(past, -5) == set()
