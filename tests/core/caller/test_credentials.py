"""One reading of a request's credentials, for whoever names tenants, opens doors or forwards."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from palimpsest.core.caller.credentials import (
    forwarded_secrets,
    hop_by_hop,
    is_local,
    is_nameless,
    secret_in,
    secrets_of,
)
from palimpsest.domain import RawHeaders


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        *(
            (b"Bearer a", b"a"),
            (b"bearer   a ", b"a"),
            (b"a", b"a"),
            (b" a b ", b"a b"),
            (b"Basic YTpi", b"Basic YTpi"),
        ),
        *((b"", b""), (b"  ", b""), (b"Bearer", b""), (b"bearer  ", b""), (b"BASIC ", b""), (b"basic", b"")),
    ],
)
def test_a_scheme_is_no_secret(value: bytes, secret: bytes) -> None:
    assert secret_in(value) == secret


@pytest.mark.parametrize(
    ("headers", "secrets"),
    [
        ([(b"api-key", b"c"), (b"x-api-key", b"b"), (b"authorization", b"Bearer a")], [b"a", b"b", b"c"]),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer z")], [b"a", b"z"]),
        ([(b"authorization", b"Bearer a"), (b"x-api-key", b"a")], [b"a"]),
        ([(b"authorization", b""), (b"api-key", b"c"), (b"cookie", b"d")], [b"c"]),
        ([], []),
    ],
)
def test_every_secret_is_presented_once_in_order(headers: RawHeaders, secrets: list[bytes]) -> None:
    assert secrets_of(headers) == forwarded_secrets(headers) == secrets


def test_what_connection_names_is_presented_and_not_forwarded() -> None:
    headers = [(b"authorization", b"a"), (b"connection", b"close"), (b"connection", b"X-Y , Authorization")]
    headers += [(b"x-api-key", b"b")]
    assert hop_by_hop(headers) == {b"close", b"x-y", b"authorization"}
    assert (secrets_of(headers), forwarded_secrets(headers)) == ([b"a", b"b"], [b"b"])


HERE = {"host": "127.0.0.1:8484"}


def raw(headers: Mapping[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


@pytest.mark.parametrize("headers", [HERE, {"host": "localhost:8484"}, {**HERE, "origin": "http://127.0.0.1:8484"}])
def test_a_program_and_a_page_of_the_proxy_itself_are_local(headers: dict[str, str]) -> None:
    assert is_local(raw(headers)) and is_nameless(raw(headers))


def test_two_hosts_are_not_this_machine() -> None:
    assert not is_local([(b"host", b"127.0.0.1"), (b"host", b"localhost")])


@pytest.mark.parametrize(
    "more",
    [{"authorization": "Bearer sk-a"}, {"x-api-key": "a"}, {"api-key": "a"}, {"via": "1.1 x"}, {"origin": "null"}],
)
def test_who_shows_a_credential_or_comes_from_elsewhere_is_not_nameless(more: dict[str, str]) -> None:
    assert not is_nameless(raw({**HERE, **more}))


def test_a_credential_that_ends_here_is_one_all_the_same() -> None:
    assert not is_nameless(raw({**HERE, "authorization": "Bearer sk-a", "connection": "authorization"}))


@pytest.mark.parametrize("empty", ["", "  ", "Bearer", "Bearer ", "Basic"])
def test_a_credential_without_a_secret_is_none(empty: str) -> None:
    assert is_nameless(raw({**HERE, "authorization": empty}))
