"""Sessions: a cookie opens what its key or token opens, in every process with the same secret, for a working day."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.edge.access import Access, Caller
from palimpsest.features.page.sessions import SESSION_SECONDS, Sessions
from palimpsest.settings.policy import KeyPolicy

SECRET = b"a secret of thirty-two bytes ....."
KEYS = {
    "acme-key": KeyPolicy(name="acme", key_env="K", read_only=True),
    "anns-key": KeyPolicy(name="ann", key_env="K", users=("ann",)),
}


def sessions(
    token: str | None = "t0ken", keys: dict[str, KeyPolicy] = KEYS, secret: bytes = SECRET, now: float = 1000.0
) -> Sessions:
    return Sessions(secret, Access(token, ProxyKeys(keys), is_loopback=False), lambda: now)


@pytest.mark.parametrize(("shown", "opens"), [("t0ken", Caller()), ("acme-key", Caller("key:acme", is_read_only=True))])
def test_a_cookie_of_one_process_opens_the_same_in_another(shown: str, opens: Caller) -> None:
    cookie = sessions().begin(shown)
    assert shown not in cookie
    assert sessions().caller(cookie) == opens


@pytest.mark.parametrize("shown", ["wrong", "", "anns-key"])
def test_nothing_begins_for_who_may_not_see_a_whole_tenant(shown: str) -> None:
    assert sessions().begin(shown) == ""


def test_a_session_ends_by_itself() -> None:
    cookie = sessions().begin("t0ken")
    assert sessions(now=1000.0 + SESSION_SECONDS - 1).caller(cookie) == Caller()
    assert sessions(now=1000.0 + SESSION_SECONDS).caller(cookie) is None


def test_a_changed_token_a_revoked_key_and_another_secret_end_it() -> None:
    of_token, of_key = sessions().begin("t0ken"), sessions().begin("acme-key")
    assert sessions(token="another").caller(of_token) is None
    assert sessions(token=None).caller(of_token) is None
    assert sessions(keys={}).caller(of_key) is None
    assert sessions(secret=b"another secret of an installation").caller(of_token) is None
    assert sessions(token="another").caller(of_key) is not None, "a key is not the token's"


def test_a_cookie_that_was_made_up_or_changed_opens_nothing() -> None:
    cookie = sessions().begin("t0ken")
    changed = [cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1 :] for at in range(len(cookie) - 1)]
    for one in ("", "x", "AAAA", "\u00e4", cookie[:-3], *changed):
        assert sessions().caller(one) is None, one
