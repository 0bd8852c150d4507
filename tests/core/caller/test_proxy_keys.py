"""A proxy key is found wherever clients put credentials, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from proxy.core.caller.proxy_keys import ProxyKeys
from proxy.domain import RawHeaders
from proxy.settings.policy import KeyPolicy

TEAM, OTHER = KeyPolicy(name="team", key_env="T"), KeyPolicy(name="other", key_env="O")
RING = ProxyKeys({"pk-team": TEAM, "pk-öther": OTHER})


@pytest.mark.parametrize(
    "headers, expected",
    [
        ([(b"authorization", b"Bearer pk-team")], TEAM),
        ([(b"authorization", b"BEARER   pk-team ")], TEAM),
        ([(b"authorization", b"pk-team")], TEAM),
        ([(b"x-api-key", "pk-öther".encode())], OTHER),
        ([(b"authorization", b"Bearer sk-own"), (b"api-key", b"pk-team")], TEAM),
        ([(b"authorization", b"Basic pk-team")], None),
        ([(b"authorization", b"Bearer")], None),
        ([(b"authorization", b"Bearer pk-teams")], None),
        ([(b"x-api-key", b"")], None),
        ([(b"cookie", b"pk-team")], None),
        ([], None),
    ],
)
def test_a_key_opens_what_it_names(headers: RawHeaders, expected: KeyPolicy | None) -> None:
    assert RING.find(headers) is expected


def test_an_empty_ring_opens_nothing() -> None:
    assert not ProxyKeys({})
    assert ProxyKeys({}).find([(b"authorization", b"Bearer ")]) is None


@pytest.mark.parametrize(
    ("credential", "expected"),
    [(b"Bearer pk-team", TEAM), (b"pk-team", TEAM), (b"Bearer sk-own", None), (b"Basic pk-team", None), (b"", None)],
)
def test_one_value_of_a_header_is_told_to_be_a_key_or_not(credential: bytes, expected: KeyPolicy | None) -> None:
    assert RING.opens(credential) is expected
