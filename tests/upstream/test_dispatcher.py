"""A login goes where it is good, on every path, and is never shown to anybody else."""

from __future__ import annotations

import asyncio

import orjson
from palimpsest.settings.policy import UpstreamPolicy

from tests.edge.serving import edge
from tests.edge.test_tunnel import CONSENT, HANDSHAKE
from tests.running import PATIENCE_SECONDS
from tests.wirelevel import Headers, HttpMessage, Line, RawUpstream, answer, connected, request

LOGIN: Headers = [(b"authorization", b"Bearer a.b.c"), (b"chatgpt-account-id", b"acct-1")]
OPENAI = {"chatgpt-account-id": "https://chatgpt.com/backend-api/codex"}


async def says_yes(request: HttpMessage, line: Line) -> None:
    await line.send(answer(b'{"data": []}'))


async def sent(
    upstreams: list[dict[str, object]], target: bytes, headers: Headers, method: bytes = b"POST", body: bytes = b""
) -> HttpMessage:
    with edge(upstreams) as port:
        async with connected(port) as line:
            await line.send(request(target, method=method, headers=headers, body=body))
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await line.message()


async def test_every_path_of_a_login_goes_to_its_own_address_and_a_key_to_the_api() -> None:
    async with RawUpstream(says_yes) as api, RawUpstream(says_yes) as login:
        codex = login.url.removesuffix("/v1") + "/backend-api/codex"
        upstreams = [{"url": api.url, "logins": {"chatgpt-account-id": codex}}]
        for method, target in (
            (b"POST", b"/v1/responses"),
            (b"POST", b"/v1/responses/compact"),
            (b"GET", b"/v1/models?client_version=0.169.0"),
            (b"POST", b"/v1/memories/trace_summarize"),
        ):
            await sent(upstreams, target, LOGIN, method, b"{}" if method == b"POST" else b"")
        await sent(upstreams, b"/v1/responses", LOGIN[:1], b"POST", b"{}")
    lines = [got.first.split()[1] for got in login.requests]
    assert lines == [
        b"/backend-api/codex/responses",
        b"/backend-api/codex/responses/compact",
        b"/backend-api/codex/models?client_version=0.169.0",
        b"/backend-api/codex/memories/trace_summarize",
    ]
    assert {tuple(got.values(b"authorization")) for got in login.requests} == {(b"Bearer a.b.c",)}
    assert {tuple(got.values(b"chatgpt-account-id")) for got in login.requests} == {(b"acct-1",)}
    assert [got.first.split()[1] for got in api.requests] == [b"/v1/responses"]


async def test_a_websocket_of_a_login_goes_there_too() -> None:
    async def consents(request: HttpMessage, line: Line) -> None:
        await line.send(CONSENT)

    async with RawUpstream(consents) as login:
        codex = login.url.removesuffix("/v1") + "/backend-api/codex"
        upstreams: list[dict[str, object]] = [{"logins": {"chatgpt-account-id": codex}}]
        assert (await sent(upstreams, b"/v1/responses", [*HANDSHAKE, *LOGIN], b"GET")).status == 101
    assert login.requests[0].first == b"GET /backend-api/codex/responses HTTP/1.1"


async def test_a_login_is_shown_to_nobody_else() -> None:
    async with RawUpstream(says_yes) as one, RawUpstream(says_yes) as other:
        refused = await sent([{"url": one.url}], b"/v1/responses", LOGIN, body=b'{"model": "m"}')
        upstreams = [{"name": "one", "url": one.url}, {"name": "other", "url": other.url, "models": ["x"]}]
        listed = await sent(upstreams, b"/v1/models", LOGIN, b"GET")
    assert (one.requests, other.requests) == ([], [])
    assert (refused.status, listed.status) == (404, 404)
    error = orjson.loads(refused.body)["error"]
    assert error["code"] == "login_not_served"
    assert "upstreams.logins" in error["message"] and "chatgpt-account-id" in error["message"]


async def test_where_several_upstreams_are_listed_a_login_sees_the_list_of_its_own() -> None:
    async with RawUpstream(says_yes) as other, RawUpstream(says_yes) as login:
        upstreams: list[dict[str, object]] = [
            {"name": "other", "url": other.url, "models": ["x"]},
            {"name": "openai", "logins": {"chatgpt-account-id": login.url}},
        ]
        assert (await sent(upstreams, b"/v1/models", LOGIN, b"GET")).status == 200
    assert other.requests == []
    assert login.requests[0].first == b"GET /v1/models HTTP/1.1"


def test_only_openais_own_address_takes_chatgpt_logins_unless_told() -> None:
    assert UpstreamPolicy().logins == UpstreamPolicy(url="https://api.openai.com").logins == OPENAI
    assert UpstreamPolicy(url="https://gateway.example/v1").logins == {}
    assert UpstreamPolicy(logins={}).logins == {}
