"""Sessions: a cookie opens what its key or token opens, in every process with the same secret, until it is ended."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.edge.access import Access, Caller
from palimpsest.features.page.sessions import SESSION_SECONDS, Sessions
from palimpsest.settings.policy import KeyPolicy
from palimpsest.store.engine.sqlite.database import Database

SECRET = b"a secret of thirty-two bytes ....."
KEYS = {
    "acme-key": KeyPolicy(name="acme", key_env="K", read_only=True),
    "anns-key": KeyPolicy(name="ann", key_env="K", users=("ann",)),
}


class Process:
    """One of the processes that share a database; each call makes what it needs anew."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __call__(
        self, token: str | None = "t0ken", keys: dict[str, KeyPolicy] = KEYS, secret: bytes = SECRET, now: float = 1e9
    ) -> Sessions:
        access = Access(token, ProxyKeys(keys), is_loopback=False)
        return Sessions(secret, access, self._database, lambda: now)


@pytest.fixture
def sessions(database: Database) -> Process:
    return Process(database)


@pytest.mark.parametrize(("shown", "opens"), [("t0ken", Caller()), ("acme-key", Caller("key:acme", is_read_only=True))])
async def test_a_cookie_of_one_process_opens_the_same_in_another(sessions: Process, shown: str, opens: Caller) -> None:
    cookie = sessions().begin(shown)
    assert shown not in cookie
    assert await sessions().caller(cookie) == opens


@pytest.mark.parametrize("shown", ["wrong", "", "anns-key"])
async def test_nothing_begins_for_who_may_not_see_a_whole_tenant(sessions: Process, shown: str) -> None:
    assert sessions().begin(shown) == ""


async def test_a_session_ends_by_itself(sessions: Process) -> None:
    cookie = sessions().begin("t0ken")
    assert await sessions(now=1e9 + SESSION_SECONDS - 1).caller(cookie) == Caller()
    assert await sessions(now=1e9 + SESSION_SECONDS).caller(cookie) is None


async def test_a_changed_token_a_revoked_key_and_another_secret_end_it(sessions: Process) -> None:
    of_token, of_key = sessions().begin("t0ken"), sessions().begin("acme-key")
    assert await sessions(token="another").caller(of_token) is None
    assert await sessions(token=None).caller(of_token) is None
    assert await sessions(keys={}).caller(of_key) is None
    assert await sessions(secret=b"another secret of an installation").caller(of_token) is None
    assert await sessions(token="another").caller(of_key) is not None, "a key is not the token's"


async def test_a_session_that_is_ended_opens_nothing_in_any_process_and_others_go_on(sessions: Process) -> None:
    one, other = sessions().begin("t0ken"), sessions().begin("t0ken")
    assert one != other
    await sessions().end(one, everywhere=False)
    assert await sessions().caller(one) is None
    assert await sessions().caller(other) == Caller()


async def test_all_sessions_of_a_token_are_ended_and_those_begun_later_are_not(sessions: Process) -> None:
    before, of_key = [sessions().begin("t0ken") for _ in range(2)], sessions().begin("acme-key")
    await sessions(now=1e9 + 1).end(before[0], everywhere=True)
    assert [await sessions(now=1e9 + 1).caller(one) for one in before] == [None, None]
    assert await sessions(now=1e9 + 1).caller(of_key) is not None
    after = sessions(now=1e9 + 2).begin("t0ken")
    assert await sessions(now=1e9 + 2).caller(after) == Caller()


async def test_what_was_ended_is_kept_until_it_would_be_out_of_date(sessions: Process, database: Database) -> None:
    await sessions().end(sessions().begin("t0ken"), everywhere=False)
    later = sessions(now=1e9 + SESSION_SECONDS)
    await later.end(later.begin("t0ken"), everywhere=False)
    ((kept,),) = await database.read("SELECT count(*) FROM ended_session")
    assert kept == 1


async def test_a_cookie_that_was_made_up_or_changed_opens_and_ends_nothing(
    sessions: Process, database: Database
) -> None:
    cookie = sessions().begin("t0ken")
    changed = [cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1 :] for at in range(len(cookie) - 1)]
    for one in ("", "x", "AAAA", "\u00e4", cookie[:-3], *changed):
        assert await sessions().caller(one) is None, one
        await sessions().end(one, everywhere=True)
    assert await database.read("SELECT * FROM ended_session") == []
