"""The list of models names each model that can be asked for, once, for whichever SDK reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import orjson
from palimpsest.domain import Api, Json, RawHeaders
from palimpsest.domain.ports import UpstreamAnswer
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.upstream.listing import ModelList

from tests.edge.serving import edge
from tests.running import PATIENCE_SECONDS, free_port
from tests.wirelevel import Headers, HttpMessage, Line, RawUpstream, Script, answer, connected, request

OPENAI_LIST = [{"id": "gpt-4o", "object": "model", "created": 7, "owned_by": "openai"}]
ANTHROPIC_LIST = [
    {"type": "model", "id": "claude-x", "display_name": "Claude X", "created_at": "2025-02-19T00:00:00Z"},
    {"type": "model", "id": "gpt-4o", "display_name": "an impostor", "created_at": "2025-02-19T00:00:00Z"},
]


def listing(entries: Sequence[Json]) -> Script:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(orjson.dumps({"data": entries})))

    return script


def saying(body: bytes, status: bytes = b"200 OK") -> Script:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(body, status=status))

    return script


async def got(
    upstreams: Sequence[Mapping[str, object]], target: bytes = b"/v1/models", headers: Headers | None = None
) -> HttpMessage:
    with edge(upstreams) as port:
        async with connected(port) as line:
            await line.send(request(target, method=b"GET", headers=headers))
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await line.message()


def ids(message: HttpMessage) -> list[str]:
    return [entry["id"] for entry in orjson.loads(message.body)["data"]]


async def test_lists_are_merged_and_each_model_is_the_one_that_would_answer() -> None:
    async with RawUpstream(listing(OPENAI_LIST)) as one, RawUpstream(listing(ANTHROPIC_LIST)) as other:
        told = await got(
            [
                {"name": "one", "url": one.url, "models": ["gpt-*"]},
                {"name": "other", "url": other.url, "models": ["named-by-the-operator", "claude-*", "gpt-*"]},
            ]
        )
    assert ids(told) == ["gpt-4o", "claude-x", "named-by-the-operator"]
    assert orjson.loads(told.body)["data"][0]["created"] == 7


async def test_every_entry_is_read_by_both_kinds_of_sdk() -> None:
    async with RawUpstream(listing(OPENAI_LIST)) as one, RawUpstream(listing(ANTHROPIC_LIST[:1])) as other:
        body = (
            await got([{"name": "one", "url": one.url}, {"name": "other", "url": other.url, "models": ["claude-*"]}])
        ).body
    whole = orjson.loads(body)
    assert (whole["object"], whole["has_more"], whole["first_id"]) == ("list", False, "gpt-4o")
    for entry in whole["data"]:
        assert entry.keys() >= {"id", "object", "created", "owned_by", "type", "display_name", "created_at"}


async def test_an_upstream_that_gives_no_list_is_left_out() -> None:
    async with RawUpstream(listing(OPENAI_LIST)) as one, RawUpstream(saying(b"<html>")) as other:
        told = await got(
            [
                {"name": "one", "url": one.url, "models": ["gpt-*"]},
                {"name": "dead", "url": f"http://127.0.0.1:{free_port()}", "models": ["x-*"]},
                {"name": "other", "url": other.url, "models": ["named-by-the-operator", "*"]},
            ]
        )
    assert (told.status, ids(told)) == (200, ["gpt-4o", "named-by-the-operator"])


async def test_where_nobody_gives_a_list_the_client_hears_why() -> None:
    refusal = b'{"error":{"message":"bad key"}}'
    async with RawUpstream(saying(refusal, b"401 No")) as one, RawUpstream(saying(b"", b"500 Oops")) as other:
        told = await got([{"name": "one", "url": one.url}, {"name": "other", "url": other.url}])
    assert (told.status, told.body) == (401, refusal)
    dead = [{"name": name, "url": f"http://127.0.0.1:{free_port()}"} for name in ("a", "b")]
    assert (await got(dead)).status == 502


async def test_one_passed_through_list_stays_as_it_is_byte_for_byte() -> None:
    body = b'{ "data" : [] , "odd": 1}'
    async with RawUpstream(saying(body)) as only:
        assert (await got([{"url": only.url, "models": ["gpt-*"]}])).body == body
        both = [{"name": "a", "url": only.url, "wire": "openai"}, {"name": "b", "url": only.url, "wire": "anthropic"}]
        assert (await got(both)).body == body


async def test_each_upstream_gets_its_own_credential_and_none_of_anothers() -> None:
    client = [(b"authorization", b"Bearer sk-client"), (b"accept-encoding", b"gzip")]
    async with RawUpstream(listing([])) as one, RawUpstream(listing([])) as other, RawUpstream(listing([])) as third:
        await got(
            [
                {"name": "one", "url": one.url},
                {"name": "other", "url": other.url, "auth": "held", "key_env": "HELD"},
                {"name": "third", "url": third.url, "wire": "anthropic"},
            ],
            b"/v1/models?limit=5",
            client,
        )
    assert one.requests[0].values(b"authorization") == [b"Bearer sk-client"]
    assert other.requests[0].values(b"authorization") == [b"Bearer sk-held"]
    assert one.requests[0].first == other.requests[0].first == b"GET /v1/models?limit=5 HTTP/1.1"
    assert one.requests[0].values(b"accept-encoding") == []
    assert third.requests == []


async def test_one_model_is_looked_up_where_it_is_served() -> None:
    async with RawUpstream() as one, RawUpstream() as other:
        upstreams = [
            {"name": "one", "url": one.url, "models": ["gpt-*"]},
            {"name": "other", "url": other.url, "models": ["meta/*"]},
        ]
        assert (await got(upstreams, b"/v1/models/meta%2Fllama")).status == 200
        assert [len(one.requests), len(other.requests)] == [0, 1]
        assert (await got(upstreams, b"/v1/models/unheard-of")).status == 404


async def test_of_a_litellm_model_the_list_knows_what_the_operator_names() -> None:
    claude = UpstreamPolicy(litellm="anthropic/*", models=("claude-sonnet-4-5", "claude-*"))
    models = ModelList([claude])
    assert models.merges(Api.ANTHROPIC) and not ModelList([UpstreamPolicy()]).merges(Api.OPENAI)

    async def ask(upstream: UpstreamPolicy, headers: RawHeaders) -> UpstreamAnswer:
        raise AssertionError("a LiteLLM model has no list")

    told = await models.answer(False, [], ask)
    body = b"".join([data async for data in told])
    assert [entry["id"] for entry in orjson.loads(body)["data"]] == ["claude-sonnet-4-5"]
