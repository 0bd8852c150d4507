"""Keys over HTTP: the operator's alone, shown once, and gone when they are revoked."""

from __future__ import annotations

from tests.edge.admin.asking import ACME, House


async def test_a_key_is_made_listed_and_revoked(house: House) -> None:
    status, made = await house.ask("/memory/v1/keys", method="POST", body={"name": "bot", "users": ["ada"]})
    assert status == 201 and made["key"].startswith(made["shown"]) and made["tenant"] == "key:bot"
    secret = made.pop("key")
    assert (await house.get("keys"))["keys"] == [made] and secret not in str(made)
    status, revoked = await house.ask(f"/memory/v1/keys/{made['id']}", method="DELETE")
    assert status == 200 and revoked["revoked_at"] is not None


async def test_what_is_wrong_with_a_new_key_is_said(house: House) -> None:
    for body, words in (({"name": "x", "expires": "soon"}, "expires"), ({"name": " "}, "name"), ({}, "name")):
        status, said = await house.ask("/memory/v1/keys", method="POST", body=body)
        assert status == 400 and words in said["error"]["message"]
    assert (await house.ask("/memory/v1/keys/k-1", method="DELETE"))[0] == 404


async def test_keys_are_the_operators(house: House) -> None:
    for method, path in (("GET", "keys"), ("POST", "keys"), ("DELETE", "keys/k-1")):
        assert (await house.ask(f"/memory/v1/{path}", ACME, method=method, body={"name": "x"}))[0] == 403
