"""What the provider receives is what was sent, and what it answers is what is handed on."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path

import pytest
import structlog
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.domain import RawHeaders
from palimpsest.domain.errors import PolicyError, UpstreamUnreachable
from palimpsest.domain.ports import Body
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.settings.policy import KeyPolicy, UpstreamPolicy
from palimpsest.upstream.passthrough import Passthrough, PassthroughAnswer, authorities, proxy_of_the_network

from tests.own_addresses import OwnAddresses
from tests.running import free_port
from tests.wirelevel import HttpMessage, Line, RawUpstream, answer, chunk, chunked_head

TARGET = "/v1/chat/completions"


def policy(url: str, **fields: object) -> UpstreamPolicy:
    return UpstreamPolicy.model_validate({"url": url, **fields})


async def sent(
    url: str,
    method: str = "POST",
    target: str = TARGET,
    headers: RawHeaders = (),
    body: Body = b"{}",
    keyring: ProxyKeys | None = None,
    **fields: object,
) -> tuple[PassthroughAnswer, bytes]:
    """One request and its whole answer."""
    upstream = policy(url, **fields)
    async with (
        Passthrough([upstream], {"HELD": "sk-held"}, keyring) as way,
        aclosing(await way.send(upstream, method, target, headers, body)) as got,
    ):
        return got, b"".join([data async for data in got])


# --- the request ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "target", "path"),
    [
        ("/v1", "/v1/chat/completions", b"/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions", b"/v1/chat/completions"),
        ("", "/v1/chat/completions", b"/v1/chat/completions"),
        ("/api/v1", "/v1/models", b"/api/v1/models"),
        ("/api", "/v1/models", b"/api/v1/models"),
        ("/v1beta/openai/", "/v1/models", b"/v1beta/openai/models"),
        ("/api/v4", "/v1/chat/completions?a=b", b"/api/v4/chat/completions?a=b"),
        ("/v1/account/anthropic", "/v1/messages/count_tokens", b"/v1/account/anthropic/v1/messages/count_tokens"),
        ("/api/v2/v1", "/v1/models", b"/api/v2/v1/models"),
        ("/accounts/v8f3aa", "/v1/models", b"/accounts/v8f3aa/v1/models"),
        ("/v3", "/v1beta/models", b"/v3/v1beta/models"),
        ("/v1", "/", b"/"),
        ("/v1", "/v1/a%2fb/%C3%A9+c?x=%2F&y=a+b&&z=%zz&q=a?b", b"/v1/a%2fb/%C3%A9+c?x=%2F&y=a+b&&z=%zz&q=a?b"),
    ],
)
async def test_base_and_target_are_joined_without_doubling_or_requoting(base: str, target: str, path: bytes) -> None:
    async with RawUpstream() as upstream:
        await sent(f"http://127.0.0.1:{upstream.port}{base}", target=target)
        assert upstream.requests[0].first == b"POST " + path + b" HTTP/1.1"


async def test_headers_pass_in_order_and_nothing_is_added() -> None:
    given = [
        (b"x-stainless-lang", b"python"),
        (b"cookie", b"a=1; b=2"),
        (b"x-twice", b"1"),
        (b"x-twice", b"2"),
        (b"authorization", b"Bearer sk-client"),
        (b"x-name", "é".encode()),
    ]
    async with RawUpstream() as upstream:
        await sent(upstream.url, headers=given, method="GET", body=b"")
        host = (b"Host", b"127.0.0.1:%d" % upstream.port)
        assert upstream.requests[0].headers == [host, *given]


async def test_a_value_that_is_no_utf_8_keeps_its_characters() -> None:
    async with RawUpstream() as upstream:
        await sent(upstream.url, headers=[(b"x-name", "é".encode("latin-1"))])
        assert upstream.requests[0].values(b"x-name") == ["é".encode()]


async def test_headers_of_one_hop_and_our_own_stay_here() -> None:
    given = [
        (b"host", b"proxy.local"),
        (b"connection", b"keep-alive, X-Private"),
        (b"x-private", b"1"),
        (b"keep-alive", b"timeout=5"),
        (b"te", b"trailers"),
        (b"upgrade", b"h2c"),
        (b"proxy-authorization", b"Basic x"),
        (b"expect", b"100-continue"),
        (b"x-palimpsest-user", b"ann"),
        (b"accept", b"*/*"),
    ]
    async with RawUpstream() as upstream:
        await sent(upstream.url, headers=given)
        assert upstream.requests[0].names == {b"host", b"accept", b"content-length"}
        assert upstream.requests[0].values(b"host") == [b"127.0.0.1:%d" % upstream.port]


@pytest.mark.parametrize("size", [1, 100_000, 20_000_000])
async def test_a_body_arrives_whole_with_its_length(size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    async with RawUpstream() as upstream:
        await sent(upstream.url, body=body, headers=[(b"content-length", b"3")])  # as before it was rewritten
        assert upstream.requests[0].body == body
        assert upstream.requests[0].values(b"content-length") == [b"%d" % len(body)]


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"6")]])
async def test_a_body_in_pieces_is_passed_on_in_pieces(headers: RawHeaders) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"def"

    async with RawUpstream() as upstream:
        await sent(upstream.url, body=pieces(), headers=headers)
        assert upstream.requests[0].body == b"abcdef"
        framing = b"content-length" if headers else b"transfer-encoding"
        assert framing in upstream.requests[0].names


# --- credentials ---------------------------------------------------------------------------------

CREDENTIALS = [(b"authorization", b"Bearer sk-client"), (b"x-api-key", b"sk-client"), (b"api-key", b"sk-client")]


async def test_forwarded_credentials_pass() -> None:
    async with RawUpstream() as upstream:
        await sent(upstream.url, headers=CREDENTIALS)
        assert upstream.requests[0].headers[1:4] == CREDENTIALS


async def test_a_held_key_stands_in_for_every_credential_of_the_client() -> None:
    async with RawUpstream() as upstream:
        await sent(upstream.url, headers=CREDENTIALS, auth="held", key_env="HELD")
        received = upstream.requests[0]
        assert received.values(b"authorization") == [b"Bearer sk-held"]
        assert not any(b"sk-client" in value for _, value in received.headers)


async def test_a_held_key_stands_where_anthropic_reads_it() -> None:
    async with RawUpstream() as upstream:
        await sent(upstream.url, headers=CREDENTIALS, auth="held", key_env="HELD", wire="anthropic")
        received = upstream.requests[0]
        assert received.values(b"x-api-key") == [b"sk-held"]
        assert not any(b"sk-client" in value for _, value in received.headers)


async def test_a_key_of_this_proxy_never_leaves_it() -> None:
    keyring = ProxyKeys({"sk-client": KeyPolicy(name="team", key_env="K")})
    own = (b"x-api-key", b"sk-own")
    async with RawUpstream() as upstream:
        await sent(upstream.url, headers=[CREDENTIALS[0], own, CREDENTIALS[2]], keyring=keyring)
        assert upstream.requests[0].headers[1:2] == [own]
        assert upstream.requests[0].names == {b"host", b"x-api-key", b"content-length"}


# --- the answer ----------------------------------------------------------------------------------


async def test_repeated_headers_and_their_order_and_case_are_kept() -> None:
    given = [(b"Set-Cookie", b"a=1"), (b"X-Odd", b"x"), (b"Set-Cookie", b"b=2"), (b"Server", b"them")]

    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(b"ok", headers=[*given, (b"Connection", b"x-hop"), (b"X-Hop", b"1")]))

    async with RawUpstream(script) as upstream:
        got, body = await sent(upstream.url)
        assert (got.status, body) == (200, b"ok")
        assert got.headers == [*given, (b"Content-Length", b"2")]


async def test_what_another_proxy_like_this_one_says_of_its_memory_is_not_handed_on() -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(headers=[(b"X-Palimpsest-Conversation", b"c-1"), (b"x-palimpsest-note", b"calm")]))

    async with RawUpstream(script) as upstream:
        got, _ = await sent(upstream.url)
        assert got.headers == [(b"Content-Length", b"2")]


async def test_cookies_are_not_kept() -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(headers=[(b"Set-Cookie", b"session=1; Path=/")]))

    async with RawUpstream(script) as upstream:
        only = policy(upstream.url.replace("127.0.0.1", "localhost"))  # an address never gets cookies
        async with Passthrough([only], {}) as way:
            for _ in range(2):
                async with aclosing(await way.send(only, "GET", "/v1/models", [], b"")) as got:
                    assert [data async for data in got] == [b"{}"]
        assert upstream.connections == 1
        assert [request.values(b"cookie") for request in upstream.requests] == [[], []]


@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"307 Temporary", b"308 Permanent"])
async def test_redirects_are_handed_on_not_followed(status: bytes) -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(b"", status=status, headers=[(b"Location", b"/elsewhere")]))

    async with RawUpstream(script) as upstream:
        got, _ = await sent(upstream.url)
        assert got.status == int(status[:3])
        assert (b"Location", b"/elsewhere") in got.headers
        assert len(upstream.requests) == 1


async def test_compressed_bytes_stay_compressed() -> None:
    body = gzip.compress(b"hello " * 100)

    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(body, headers=[(b"Content-Encoding", b"gzip")]))

    async with RawUpstream(script) as upstream:
        got, received = await sent(upstream.url)
        assert received == body
        assert (b"Content-Encoding", b"gzip") in got.headers


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_an_answer_that_has_no_body_announces_none(status: bytes) -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(b"HTTP/1.1 %s\r\nETag: x\r\nContent-Length: 99\r\n\r\n" % status)

    async with RawUpstream(script) as upstream:
        got, body = await sent(upstream.url, method="GET", body=b"")
        assert (got.headers, body) == ([(b"ETag", b"x")], b"")


async def test_long_headers_are_handed_on() -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(answer(headers=[(b"X-Policy", b"x" * 30_000)]))

    async with RawUpstream(script) as upstream:
        got, _ = await sent(upstream.url)
        assert (b"X-Policy", b"x" * 30_000) in got.headers


# --- what goes wrong -----------------------------------------------------------------------------


async def test_a_dead_upstream_is_unreachable() -> None:
    with pytest.raises(UpstreamUnreachable, match="asking upstream 'default': it refused the connection") as caught:
        await sent(f"http://127.0.0.1:{free_port()}/v1")
    assert caught.value.http_status == 502


async def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    with pytest.raises(UpstreamUnreachable) as caught:
        await sent("http://nowhere.invalid/v1")
    assert caught.value.http_status in (502, 504)  # some resolvers fail, others keep silent


async def test_a_silent_upstream_runs_out_of_time() -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.closed()

    async with RawUpstream(script) as upstream:
        with pytest.raises(UpstreamUnreachable, match="sent nothing") as caught:
            await sent(upstream.url, silence_timeout_seconds=0.05)
    assert caught.value.http_status == 504


async def test_silence_in_mid_answer_runs_out_of_time_too() -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(chunked_head() + chunk(b"data: a\n\n"))
        await line.closed()

    async with RawUpstream(script) as upstream:
        with pytest.raises(UpstreamUnreachable, match="sent nothing"):
            await sent(upstream.url, silence_timeout_seconds=0.05)


async def test_garbage_is_no_answer_and_is_not_repeated() -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(b"\x00\x01 not http at all secret\r\n\r\n")
        await line.finish()

    async with RawUpstream(script) as upstream:
        with pytest.raises(UpstreamUnreachable, match="does not speak HTTP") as caught:
            await sent(upstream.url, target=TARGET + "?token=hidden")
    assert "hidden" not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (answer(status=b"999 Odd"), "it answered with status 999, which no client could be given"),
        (answer(status=b"099 Odd"), "it answered with status 99, "),
        (answer(headers=[(b"x-a", b"a\x01b")]), "it does not speak HTTP"),
        (answer(headers=[(b"x-a", b"a" * 70_000)]), "a header of its answer is over 64 kB, or there are over 1,000"),
        (answer(headers=[(b"x-%d" % at, b"a") for at in range(1001)]), "a header of its answer is over 64 kB"),
    ],
)
async def test_what_no_server_could_pass_on_is_no_answer(said: bytes, why: str) -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(said)

    async with RawUpstream(script) as upstream:
        with pytest.raises(UpstreamUnreachable, match=why):
            await sent(upstream.url)


async def test_a_connection_closed_without_an_answer_is_unreachable() -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        line.cut()

    async with RawUpstream(script) as upstream:
        with pytest.raises(UpstreamUnreachable) as caught:
            await sent(upstream.url)
    assert caught.value.http_status == 502


async def test_an_upstream_that_speaks_no_tls_is_unreachable() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        with pytest.raises(UpstreamUnreachable, match="a secure connection") as caught:
            await sent(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert caught.value.http_status == 502


@pytest.mark.parametrize(
    "head",
    [chunked_head() + chunk(b"data: a\n\n"), b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: a\n\n"],
    ids=["chunked", "with a length"],
)
async def test_an_answer_that_breaks_off_is_not_taken_for_whole(head: bytes) -> None:
    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(head)
        await line.finish()

    async with RawUpstream(script) as upstream:
        only = policy(upstream.url)
        way = Passthrough([only], {})
        async with way, aclosing(await way.send(only, "POST", TARGET, [], b"{}")) as got:
            assert await anext(got) == b"data: a\n\n"
            with pytest.raises(UpstreamUnreachable):
                await anext(got)


async def test_closing_an_unfinished_answer_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def script(request: HttpMessage, line: Line) -> None:
        await line.send(chunked_head() + chunk(b"data: a\n\n"))
        await line.closed()
        gone.set()

    async with RawUpstream(script) as upstream:
        only = policy(upstream.url)
        async with Passthrough([only], {}) as way:
            got = await way.send(only, "POST", TARGET, [], b"{}")
            await got.aclose()
            async with asyncio.timeout(10):
                await gone.wait()
    assert upstream.requests and gone.is_set()


ANTHROPIC = UpstreamPolicy(name="anthropic", url="https://api.anthropic.com", wire="anthropic")
PROXY = "http://me:secret@proxy.example.com:3128"


async def ask(environment: Mapping[str, str]) -> int:
    async with Passthrough([ANTHROPIC], environment) as way:
        answer = await way.send(ANTHROPIC, "GET", "/v1/models", [], b"")
        async for _ in answer:
            pass
        return answer.status


async def test_an_upstream_is_asked_through_the_proxy_of_the_network(tmp_path: Path) -> None:
    async with ScriptedUpstream() as upstream, OwnAddresses(upstream, tmp_path) as network:
        assert await ask(network.variables) == 200
        assert [r.headers["Host"] for r in upstream.received] == ["api.anthropic.com"]


async def test_an_authority_that_nobody_named_is_not_trusted(tmp_path: Path) -> None:
    async with ScriptedUpstream() as upstream, OwnAddresses(upstream, tmp_path) as network:
        with pytest.raises(UpstreamUnreachable, match=r"certificate is not trusted .* NODE_EXTRA_CA_CERTS"):
            await ask({"HTTPS_PROXY": network.variables["HTTPS_PROXY"]})
        assert upstream.received == []


async def test_a_proxy_that_refuses_is_said_to(tmp_path: Path) -> None:
    async with ScriptedUpstream() as upstream, OwnAddresses(upstream, tmp_path) as network:
        elsewhere = ANTHROPIC.model_copy(update={"url": "https://elsewhere.example.com"})
        async with Passthrough([elsewhere], network.variables) as way:
            with pytest.raises(UpstreamUnreachable, match="the proxy of the network refused it"):
                await way.send(elsewhere, "GET", "/v1/models", [], b"")


async def test_a_proxy_of_the_network_that_is_not_there_is_told_from_the_provider() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(UpstreamUnreachable, match=r"the proxy of the network \(HTTPS_PROXY\) could not be reached"):
        await ask({"HTTPS_PROXY": f"http://127.0.0.1:{port}"})


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://api.openai.com/v1", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.openai.com/v1", {"https_proxy": PROXY, "NO_PROXY": "localhost,.internal"}, PROXY),
        ("https://api.openai.com/v1", {"ALL_PROXY": PROXY}, PROXY),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": PROXY, "no_proxy": "openai.com"}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        ("https://api.openai.com/v1", {"HTTP_PROXY": PROXY}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "socks5://proxy.example.com"}, None),
        ("http://ollama:11434", {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY}, None),
        ("https://api.openai.com/v1", {}, None),
    ],
)
def test_the_variables_are_read_as_clients_read_them(url: str, environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_of_the_network(url, environment) == proxy


def test_the_log_says_that_a_proxy_of_another_kind_is_not_used() -> None:
    with structlog.testing.capture_logs() as logged:
        proxy_of_the_network("https://api.openai.com/v1", {"ALL_PROXY": "socks5://me:secret@proxy.example.com"})
    assert [(line["log_level"], line["kind"]) for line in logged] == [("warning", "socks5")]
    assert "secret" not in str(logged)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_authorities_that_cannot_be_read_stop_the_start(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "authorities.pem"
    if content:
        file.write_text(content)
    with pytest.raises(PolicyError, match=r"environment: NODE_EXTRA_CA_CERTS: .*; correct it, or unset it"):
        authorities({"NODE_EXTRA_CA_CERTS": str(file)})
