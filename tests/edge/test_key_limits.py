"""A key that is for some users or projects opens nothing to a request that names another."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain import Json, ProxyKey
from palimpsest.edge.key_limits import INLINE_BYTES, RequestRefused, refuse_others
from palimpsest.settings.policy import KeyPolicy

from tests.core.driving import client_table

SIGNALS = client_table()
ADA = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme", users=("ada", "eve"), scopes=("lab",))
ANYBODY = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme")


async def check(key: ProxyKey | KeyPolicy | None, headers: Json, body: bytes | None = None) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await refuse_others(ReceivedRequest(raw, body, key), SIGNALS)


@pytest.mark.parametrize("headers", [{}, {"x-palimpsest-user": "eve"}, {"x-palimpsest-scope": "lab"}])
async def test_what_it_is_for_passes(headers: Json) -> None:
    await check(ADA, headers, b'{"messages": []}')


@pytest.mark.parametrize(
    ("headers", "body", "words"),
    [
        ({"x-palimpsest-user": "bob"}, None, "not for user 'bob'; allowed: ada, eve, or naming none"),
        ({"x-palimpsest-scope": "home"}, b"{}", "not for scope 'home'; allowed: lab"),
        ({}, b'{"user": "bob"}', "not for user 'bob'"),
        ({}, b'{"user": "bob", "pad": "%s"}' % (b"x" * INLINE_BYTES), "not for user 'bob'"),
    ],
)
async def test_whoever_else_is_named_is_refused_wherever_it_stands(headers: Json, body: bytes, words: str) -> None:
    with pytest.raises(RequestRefused, match=words):
        await check(ADA, headers, body)


@pytest.mark.parametrize("body", [b"no JSON", b"[]", orjson.dumps({"user": ["bob"]})])
async def test_a_body_that_names_nobody_that_memory_would_read_passes(body: bytes) -> None:
    await check(ADA, {}, body)


@pytest.mark.parametrize("key", [None, ANYBODY, KeyPolicy(name="acme", key_env="K")])
async def test_others_name_whom_they_like(key: ProxyKey | KeyPolicy | None) -> None:
    await check(key, {"x-palimpsest-user": "bob"}, b'{"user": "bob"}')


async def test_a_key_of_the_policy_may_be_limited_too() -> None:
    with pytest.raises(RequestRefused):
        await check(KeyPolicy(name="acme", key_env="K", users=("ada",)), {"x-palimpsest-user": "bob"})
