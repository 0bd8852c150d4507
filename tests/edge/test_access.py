from collections.abc import Mapping

import pytest
from palimpsest.core.caller.credentials import is_local
from palimpsest.core.caller.proxy_keys import ProxyKeys, digest_of
from palimpsest.domain import ProxyKey, RawHeaders
from palimpsest.edge.access import Access, Caller, Refusal
from palimpsest.settings.policy import KeyPolicy

LOCAL = {"host": "127.0.0.1:8484"}
ADMIN = {"authorization": "Bearer t0ken"}
ACME = {"authorization": "Bearer acme-key"}
NOBODY = ProxyKeys({})
KEYS = ProxyKeys({f"{name}-key": KeyPolicy(name=name, key_env="K") for name in ("acme", "beta")})


def raw(headers: Mapping[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def status(who: Caller | Refusal) -> int:
    assert isinstance(who, Refusal)
    return who.status


@pytest.mark.parametrize("host", ["127.0.0.1:8484", "127.0.0.1", "localhost:8484", "LOCALHOST", "[::1]:8484", "[::1]"])
def test_without_a_token_this_machine_is_the_operator(host: str) -> None:
    assert Access(None, NOBODY, is_loopback=True).caller(raw({"host": host})) == Caller()


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8484"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "localhost.evil.example:8484"},
        {"host": ""},
        {},
        {**LOCAL, "origin": "http://evil.example"},
        {**LOCAL, "origin": "http://127.0.0.1:3000"},
        {**LOCAL, "origin": "null"},
        {**LOCAL, "origin": ""},
        *({**LOCAL, name: "x"} for name in ("x-forwarded-for", "via", "cf-connecting-ip", "forwarded", "x-real-ip")),
    ],
)
def test_pages_and_reverse_proxies_are_not_this_machine(headers: dict[str, str]) -> None:
    assert not is_local(raw(headers))
    assert status(Access(None, NOBODY, is_loopback=True).caller(raw(headers))) == 403


def test_off_loopback_without_a_token_nobody_is_answered() -> None:
    assert status(Access(None, NOBODY, is_loopback=False).caller(raw(LOCAL))) == 403
    assert status(Access(None, NOBODY, is_loopback=False).caller(raw({**LOCAL, **ADMIN}))) == 403


@pytest.mark.parametrize("is_loopback", [True, False])
def test_with_a_token_only_who_shows_it_is_the_operator(is_loopback: bool) -> None:
    access = Access("t0ken", NOBODY, is_loopback)
    assert access.caller(raw({"host": "proxy.example", **ADMIN})) == Caller()
    assert status(access.caller(raw(LOCAL))) == 401
    assert status(access.caller(raw({**LOCAL, "authorization": "Bearer t0kem"}))) == 401
    assert status(access.caller(raw({**LOCAL, "authorization": "Bearer"}))) == 401


@pytest.mark.parametrize("header", [ACME, {"x-api-key": "acme-key"}, {"api-key": "acme-key"}])
@pytest.mark.parametrize("token", ["t0ken", None])
def test_a_proxy_key_opens_its_own_tenant_and_never_more(header: dict[str, str], token: str | None) -> None:
    assert Access(token, KEYS, is_loopback=False).caller(raw({"host": "proxy.example", **header})) == Caller("key:acme")
    assert Access(token, KEYS, is_loopback=True).caller(raw({**LOCAL, **header})) == Caller("key:acme")


def test_a_key_that_opens_nothing_is_refused() -> None:
    assert status(Access("t0ken", KEYS, is_loopback=True).caller(raw({**LOCAL, "x-api-key": "other"}))) == 401


def test_a_key_counts_wherever_it_is_shown() -> None:
    both = [(b"authorization", b"Bearer acme-key"), (b"authorization", b"Bearer t0ken")]
    assert Access("t0ken", KEYS, is_loopback=False).caller(both) == Caller()
    assert status(Access("t0ken", KEYS, is_loopback=False).caller(raw({"authorization": "Bearer "}))) == 401


def made(secret: str, **opens: object) -> ProxyKeys:
    key = ProxyKey(id="k-1", shown="plm_", name="n", tenant="key:acme", **opens)  # type: ignore[arg-type]
    return ProxyKeys({}, {digest_of(secret.encode()): key})


def test_a_key_that_was_made_opens_its_tenant_as_far_as_it_goes() -> None:
    shown = raw({**LOCAL, "x-api-key": "plm_one"})
    assert Access(None, made("plm_one"), is_loopback=True).caller(shown) == Caller("key:acme")
    read_only = Access("t0ken", made("plm_one", read_only=True), is_loopback=True)
    assert read_only.caller(shown) == Caller("key:acme", is_read_only=True)


@pytest.mark.parametrize("opens", [{"users": ("ada",)}, {"scopes": ("lab",)}])
def test_a_key_for_some_users_opens_no_whole_tenant(opens: dict[str, object]) -> None:
    access = Access("t0ken", made("plm_one", **opens), is_loopback=True)
    assert status(access.caller(raw({**LOCAL, "x-api-key": "plm_one"}))) == 403


def test_a_key_that_opens_nothing_any_more_is_not_taken_for_this_machine() -> None:
    access = Access(None, NOBODY, is_loopback=True)
    assert status(access.caller(raw({**LOCAL, "authorization": "Bearer plm_gone"}))) == 401
