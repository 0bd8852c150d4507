"""A proxy key is found wherever clients put credentials, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.proxy_keys import ProxyKeys, digest_of
from palimpsest.domain import ProxyKey, RawHeaders
from palimpsest.settings.policy import KeyPolicy

TEAM, OTHER = KeyPolicy(name="team", key_env="T"), KeyPolicy(name="other", key_env="O")
RING = ProxyKeys({"pk-team": TEAM, "pk-öther": OTHER})


@pytest.mark.parametrize(
    ("headers", "expected"),
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


MADE = ProxyKey(id="k-1", shown="plm_on", name="laptop", tenant="key:team")
BOTH = ProxyKeys({"pk-team": TEAM}, {digest_of(b"plm_one"): MADE})


def shown(key: bytes) -> RawHeaders:
    return [(b"x-api-key", key)]


def test_a_key_that_was_made_while_the_proxy_ran_is_found_beside_those_of_the_policy() -> None:
    assert BOTH.find(shown(b"plm_one")) is MADE and BOTH.find(shown(b"pk-team")) is TEAM
    assert BOTH.tenants == {"key:team"} and len(BOTH) == 2


def test_a_key_of_ours_is_known_for_one_even_when_it_opens_nothing() -> None:
    assert [BOTH.is_ours(key) for key in (b"pk-team", b"Bearer plm_one", b"plm_revoked", b"sk-own")] == [1, 1, 1, 0]
    assert ProxyKeys({}).is_ours(b"Bearer plm_gone")


@pytest.mark.parametrize(
    ("ring", "key", "is_refused"),
    [
        (ProxyKeys({}), b"sk-own", False),
        (ProxyKeys({}), b"plm_revoked", True),
        (ProxyKeys({}, is_required=True), b"sk-own", True),
        (ProxyKeys({}, {digest_of(b"plm_one"): MADE}), b"sk-own", False),
        (ProxyKeys({}, {digest_of(b"plm_one"): MADE}), b"plm_one", False),
        (ProxyKeys({}, {digest_of(b"plm_one"): MADE}, is_required=True), b"plm_one", False),
        (BOTH, b"sk-own", True),
    ],
)
def test_who_is_turned_away(ring: ProxyKeys, key: bytes, is_refused: bool) -> None:
    assert ring.refuses(shown(key), ring.find(shown(key))) is is_refused
