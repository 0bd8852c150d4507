"""An upstream is reached as its clients would reach it: through the network's proxy, trusting whom they trust."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from palimpsest.domain.errors import PolicyError, UpstreamUnreachable
from palimpsest.scripted import ScriptedUpstream
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.upstream.network import authorities, proxy_of_the_network
from palimpsest.upstream.passthrough import Passthrough

from tests.own_addresses import OwnAddresses

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
        with pytest.raises(UpstreamUnreachable, match="a secure connection could not be made"):
            await ask({"HTTPS_PROXY": network.variables["HTTPS_PROXY"]})
        assert upstream.received == []


async def test_a_proxy_that_refuses_is_said_to(tmp_path: Path) -> None:
    async with ScriptedUpstream() as upstream, OwnAddresses(upstream, tmp_path) as network:
        elsewhere = ANTHROPIC.model_copy(update={"url": "https://elsewhere.example.com"})
        async with Passthrough([elsewhere], network.variables) as way:
            with pytest.raises(UpstreamUnreachable, match="the proxy of the network refused it"):
                await way.send(elsewhere, "GET", "/v1/models", [], b"")


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


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_authorities_that_cannot_be_read_stop_the_start(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "authorities.pem"
    if content:
        file.write_text(content)
    with pytest.raises(PolicyError, match=r"environment: NODE_EXTRA_CA_CERTS: .*; correct it, or unset it"):
        authorities({"NODE_EXTRA_CA_CERTS": str(file)})
