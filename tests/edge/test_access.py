import pytest

from proxy.edge.access import Access, Caller, Refusal, is_local

LOCAL = {"host": "127.0.0.1:8484"}
ADMIN = {"authorization": "Bearer t0ken"}
ACME = {"authorization": "Bearer acme-key"}
KEYS = {"acme-key": "acme", "beta-key": "beta"}


def status(who: Caller | Refusal) -> int:
    assert isinstance(who, Refusal)
    return who.status


@pytest.mark.parametrize("host", ["127.0.0.1:8484", "127.0.0.1", "localhost:8484", "LOCALHOST", "[::1]:8484", "[::1]"])
def test_without_a_token_this_machine_is_the_operator(host: str) -> None:
    assert Access(None, {}, is_loopback=True).caller({"host": host}) == Caller()


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
        {**LOCAL, "x-forwarded-for": "203.0.113.9"},
    ],
)
def test_pages_and_reverse_proxies_are_not_this_machine(headers: dict[str, str]) -> None:
    assert not is_local(headers)
    assert status(Access(None, {}, is_loopback=True).caller(headers)) == 403


def test_an_origin_that_is_the_same_host_is_welcome() -> None:
    assert is_local({**LOCAL, "origin": "http://127.0.0.1:8484"})


def test_off_loopback_without_a_token_nobody_is_answered() -> None:
    assert status(Access(None, {}, is_loopback=False).caller(LOCAL)) == 403
    assert status(Access(None, {}, is_loopback=False).caller({**LOCAL, **ADMIN})) == 403


@pytest.mark.parametrize("is_loopback", [True, False])
def test_with_a_token_only_who_shows_it_is_the_operator(is_loopback: bool) -> None:
    access = Access("t0ken", {}, is_loopback)
    assert access.caller({"host": "proxy.example", **ADMIN}) == Caller()
    assert status(access.caller(LOCAL)) == 401
    assert status(access.caller({**LOCAL, "authorization": "Bearer t0kem"})) == 401
    assert status(access.caller({**LOCAL, "authorization": "Bearer"})) == 401


@pytest.mark.parametrize("header", [ACME, {"x-api-key": "acme-key"}, {"api-key": "acme-key"}])
@pytest.mark.parametrize("token", ["t0ken", None])
def test_a_proxy_key_opens_its_own_tenant_and_never_more(header: dict[str, str], token: str | None) -> None:
    assert Access(token, KEYS, is_loopback=False).caller({"host": "proxy.example", **header}) == Caller("acme")
    assert Access(token, KEYS, is_loopback=True).caller({**LOCAL, **header}) == Caller("acme")


def test_a_key_that_opens_nothing_is_refused() -> None:
    assert status(Access("t0ken", KEYS, is_loopback=True).caller({**LOCAL, "x-api-key": "other"})) == 401
