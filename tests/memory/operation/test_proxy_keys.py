"""Keys are made, shown once, kept as hashes, and open nothing once they are revoked or have expired."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.proxy_keys import digest_of
from palimpsest.domain.errors import PolicyError
from palimpsest.memory.operation.key_service import KeyService, key_json, stored_tenant
from palimpsest.memory.operation.proxy_keys import KnownKeys
from palimpsest.store.engine.sqlite.database import Database

from tests.clock import Clock
from tests.databases import is_held

DAY = 86_400


async def test_a_key_opens_what_was_said_until_it_is_revoked(database: Database) -> None:
    clock = Clock(1_000.0)
    desk, known = KeyService(database, clock), KnownKeys(database, clock)
    secret, key = await desk.create("laptop", "acme", ["ada", "ada"], ["lab"], read_only=True)
    assert not known.are_read
    await known.learn()
    assert known.are_read and known.active() == {digest_of(secret.encode()): key}
    assert (key.tenant, key.users, key.scopes, key.read_only) == ("key:acme", ("ada",), ("lab",), True)
    revoked = await desk.revoke(key.id)
    assert revoked is not None and revoked.revoked_at == clock.now
    await known.learn()
    assert known.active() == {}
    clock.now += 1
    assert await desk.revoke(key.id) == revoked, "the first time counts"


async def test_a_key_expires_without_being_read_again(database: Database) -> None:
    clock = Clock(1_000.0)
    desk, known = KeyService(database, clock), KnownKeys(database, clock)
    await desk.create("short", expires="1d")
    await desk.create("long")
    await known.learn()
    clock.now += DAY - 1
    assert len(known.active()) == 2
    clock.now += 1
    assert [key.name for key in known.active().values()] == ["long"]


async def test_the_key_itself_is_kept_nowhere(database: Database) -> None:
    secret, key = await KeyService(database, Clock(1_000.0)).create("laptop")
    assert secret.startswith("plm_") and len(secret) > 40 and secret not in str(key_json(key))
    assert secret.startswith(key.shown) and len(key.shown) == 10
    assert is_held(database, key.shown) and not is_held(database, secret[10:])


async def test_keys_differ_and_are_listed_with_those_that_are_gone(database: Database) -> None:
    clock = Clock(1_000.0)
    desk, secrets = KeyService(database, clock), set[str]()
    for name in ("one", "two", "three"):
        clock.now += 1
        secrets.add((await desk.create(name))[0])
    await desk.revoke((await desk.list_keys())[0].id)
    assert len(secrets) == 3
    assert [(key.name, key.revoked_at is None) for key in await desk.list_keys()] == [
        *(("three", False), ("two", True), ("one", True))
    ]
    assert await desk.revoke("k-unknown") is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": " "}, "name: must be one line of text"),
        ({"name": "x" * 201}, "name: must be one line of text"),
        ({"name": "a\x1bb"}, "name: must be one line of text"),
        ({"name": "x", "tenant": "\n"}, "tenant: must be one line of text"),
        ({"name": "x", "users": [""]}, "users: must be one line of text"),
        ({"name": "x", "scopes": [""]}, "scopes: must be one line of text"),
        ({"name": "x", "expires": "soon"}, "expires: 'soon' is not allowed; allowed: a number followed by"),
    ],
)
async def test_what_cannot_be_used_is_said(database: Database, given: dict[str, str], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        await KeyService(database, Clock(1_000.0)).create(**given)  # type: ignore[arg-type]
    assert await KeyService(database, Clock(1_000.0)).list_keys() == []


def test_a_tenant_is_named_as_in_the_policy_or_as_it_is_stored() -> None:
    assert [stored_tenant(name) for name in ("acme", "key:acme", "static:me", "key:")] == [
        *("key:acme", "key:acme", "static:me", "key:key:")
    ]
