from __future__ import annotations

import pytest
from palimpsest.domain import Query, Reach
from palimpsest.store.search.scope import Scope, scope_of

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
