from collections.abc import Mapping

import pytest
from palimpsest.core.caller.locality import is_local, is_nameless
from palimpsest.domain import RawHeaders

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
