"""
No client is worse off behind the proxy: what it sends is what it sends to its provider's own address.

The table in `docs/clients.md` says for each client what differs all the same; each row is measured here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.evaluation.scripted.reply import Received

from tests.clients.cli.own_provider import ADDRESSED, WRAPPED
from tests.clients.cli.program import Program, installed
from tests.clients.many_tools import FLAGS, TOOLS
from tests.clients.parity import betas_of, differences, main_requests, tools
from tests.clients.recipes import DOCUMENTS, ENVIRONMENTS, LIBRARIES, at
from tests.own_addresses import OwnAddresses, own_addresses
from tests.running import ROOT, Proxy, texts

pytestmark = pytest.mark.slow

KEY = "sk-parity"
FIRST, TENTH = 0, 9
NOTES, ANSWER = "The staging cluster has four nodes.", "Noted."
HEADING = "## What differs behind the proxy"
ADDRESS_ARGUMENT = re.compile(r'(, )?\b(base_url|api_base)="[^"]*"(, )?')


@dataclass(frozen=True)
class Row:
    """A client's line in the table: the tools of the first and the tenth request, and what differs."""

    tools: str
    differing: frozenset[str]


def _table() -> dict[str, Row]:
    section = DOCUMENTS["docs/clients.md"].partition(HEADING)[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)]
    return {row[0]: Row(row[2], frozenset(re.findall(r"`([^`]+)`", row[3]))) for row in cells[2:]}


@pytest.fixture(scope="module")
def network(shared_upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnAddresses]:
    with own_addresses(shared_upstream, tmp_path_factory.mktemp("network")) as network:
        yield network


@pytest.fixture(scope="module")
def proxy_before_providers(network: OwnAddresses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy with the default upstreams."""
    with Proxy(tmp_path_factory.mktemp("parity") / "data", "", {}, **network.variables) as proxy:
        yield proxy


def lead(program: Program, network: OwnAddresses, proxy: Proxy | None) -> Program:
    """A program on this network; with a proxy, in `palimpsest wrap`."""
    program.network = dict(network.variables)
    if proxy:
        program.network |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "proxy")])}
        assert Proxy.fork_server is not None
        wrap = [
            str(Proxy.fork_server.python()),
            "-m",
            "palimpsest",
            "wrap",
            "--port",
            str(proxy.port),
            "--data",
            str(proxy.data),
            "--",
        ]
        program.through = wrap
    return program


def ten_requests(program: Program, upstream: ScriptedUpstream) -> list[Received]:
    """
    The first ten requests of a conversation: eight tool calls in its first turn, if the client has tools.

    The client shows the answers, and sends what its tools have read.
    """
    files = [f"notes-{number}.txt" for number in range(8 if program.continues else 9)]  # one that repeats itself ends
    for file in files:
        (program.work / file).write_text(NOTES)
    calls = [program.reading(file) for file in files]
    left = [replace(call, id=f"call_{number}") for number, call in enumerate(calls) if call]
    has_tools = bool(left)

    def script(body: Json) -> Reply | str:
        return Reply(calls=(left.pop(),)) if left and body.get("tools") else ANSWER

    upstream.received.clear()
    upstream.script = script
    turns = 10 if not has_tools else 2 if program.continues else 1
    assert ANSWER in program.say_all([f"Please look at the notes, part {turn}." for turn in range(turns)])
    received = main_requests(upstream.received)
    assert (NOTES in texts(received[TENTH].json)) == has_tools
    return received


def compare(client: str, own: Sequence[Received], ours: Sequence[Received]) -> None:
    row = _table()[client]
    assert len(own) > TENTH and len(ours) > TENTH, "there is no tenth request"
    assert row.tools == f"{tools(own[FIRST])}, {tools(own[TENTH])}" == f"{tools(ours[FIRST])}, {tools(ours[TENTH])}"
    assert differences(own[FIRST], ours[FIRST]) | differences(own[TENTH], ours[TENTH]) == row.differing


@pytest.mark.parametrize("client", WRAPPED)
def test_a_wrapped_client_asks_as_it_asks_its_provider(
    client: str, network: OwnAddresses, proxy_before_providers: Proxy, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    home = tmp_path / "home"  # the same for both: its path is in what they send
    own = ten_requests(lead(WRAPPED[client](home, "", KEY), network, None), upstream)
    rmtree(home)
    ours = ten_requests(lead(WRAPPED[client](home, "", KEY), network, proxy_before_providers), upstream)
    compare(client, own, ours)


@pytest.mark.parametrize("client", ADDRESSED)
def test_a_client_with_our_address_asks_as_it_asks_its_provider(
    client: str, network: OwnAddresses, proxy_before_providers: Proxy, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    own = ten_requests(lead(ADDRESSED[client](home, "", KEY), network, None), upstream)
    rmtree(home)
    ours = ten_requests(lead(ADDRESSED[client](home, proxy_before_providers.url, KEY), network, None), upstream)
    compare(client, own, ours)


@pytest.mark.parametrize("client", LIBRARIES)
def test_a_library_with_our_address_asks_as_it_asks_its_provider(
    client: str, network: OwnAddresses, proxy_before_providers: Proxy, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    python = installed(f"{ENVIRONMENTS[client]}/bin/python") if client in ENVIRONMENTS else sys.executable
    env = os.environ | network.variables | {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    env |= {"OPENAI_AGENTS_DISABLE_TRACING": "1"}
    upstream.received.clear()
    upstream.script = lambda _: ANSWER
    before = proxy_before_providers.metric("palimpsest_requests_total")
    runs = (ADDRESS_ARGUMENT.sub("", LIBRARIES[client]), at(LIBRARIES[client], proxy_before_providers.url))
    ten_times = "    for _ in range(10):\n        exec(run, names := {})"  # what they import takes seconds
    program = f"for run in {runs!r}:\n{ten_times}\nprint(names['answer'])"
    ended = subprocess.run([python, "-c", program], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ANSWER in ended.stdout, "the recipe has no answer"
    received = main_requests(upstream.received)
    through = int(proxy_before_providers.metric("palimpsest_requests_total") - before)
    assert 2 * through == len(received), "as many at the provider's address as at ours"
    compare(client, received[:through], received[through:])


def test_the_table_has_all_clients_that_are_run() -> None:
    assert _table().keys() == WRAPPED.keys() | ADDRESSED.keys() | LIBRARIES.keys()


def test_claude_code_declares_as_few_of_many_tools_as_without_the_proxy(
    network: OwnAddresses, proxy_before_providers: Proxy, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    """Of a server with 60 tools, each in full would be more than all else that it sends."""
    home, asked = tmp_path / "home", []
    for proxy in (None, proxy_before_providers):
        rmtree(home, ignore_errors=True)
        program = lead(WRAPPED["Claude Code"](home, "", KEY), network, proxy)
        upstream.received.clear()
        upstream.script = lambda _: ANSWER
        program.run("-p", *FLAGS, "--", "hello")
        asked.append(main_requests(upstream.received)[0])
    own, ours = asked
    assert own.body.count(b"mcp__many__") >= TOOLS, "the server was not there yet"
    assert (len(own.body), tools(own)) == (len(ours.body), tools(ours))
    assert tools(own) < TOOLS
    assert betas_of(own) - betas_of(ours) == _table()["Claude Code"].differing
    assert betas_of(ours) <= betas_of(own)
