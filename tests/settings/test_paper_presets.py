"""The presets that run a paper's method, each as a proxy that was started with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.settings.load import PRESETS, load

from tests.commands.test_cli import palimpsest
from tests.running import ROOT, Conversation, Proxy, memory_in, rows, upstream_on_a_thread

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_folder")]

KEY = "sk-paper"
ANN = {"x_palimpsest_user": "ann"}
LOST = "For the staging worker I decided that the collector listens on port 7431."
FILLER = [f"Tell me something about the {name}." for name in ("weather", "tides", "stars", "moss", "rain", "owls")]


@contextmanager
def serving(folder: Path, preset: str) -> Iterator[tuple[Proxy, ScriptedUpstream]]:
    with upstream_on_a_thread() as upstream:
        upstream.script = lambda _: "Noted."
        proxy = Proxy(folder / "data", upstream.url)
        proxy.words = ["--config", preset]
        with proxy:
            yield proxy, upstream


def told(proxy: Proxy) -> Conversation:
    """A conversation in which something is decided, and then other things are spoken of."""
    talk = Conversation(proxy, KEY, headers=ANN)
    for text in (LOST, *FILLER):
        talk.say(text)
    proxy.settle()
    return talk


def sent(upstream: ScriptedUpstream) -> Any:
    return upstream.received[-1].json


def test_lantern_restores_what_a_compaction_took_without_a_model_and_stays_in_its_conversation(tmp_path: Path) -> None:
    with serving(tmp_path, "paper-lantern") as (proxy, upstream):
        talk = told(proxy)
        talk.keep_last(4, summary="They spoke of a staging worker.")
        calls = len(upstream.received)
        talk.say("On which port does the collector of the staging worker listen?")
        assert "7431" in memory_in(sent(upstream)) and len(memory_in(sent(upstream))) <= 6000
        Conversation(proxy, KEY, headers=ANN | {"x_palimpsest_conversation": "other"}).say(
            "On which port does the collector listen?"
        )
        assert memory_in(sent(upstream)) == "" and len(upstream.received) == calls + 2


async def remember(proxy: Proxy, fact: dict[str, str]) -> None:
    headers = {"authorization": f"Bearer {KEY}", "x-palimpsest-user": "ann"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{proxy.port}/mcp", http_client=http)) as client,
    ):
        assert {tool.name for tool in (await client.list_tools()).tools} >= {
            "search_memory",
            "recall_facts",
            "forget_fact",
        }
        assert not (await client.call_tool("remember_fact", fact)).is_error


async def test_calmem_tells_facts_that_the_agent_wrote_and_passages_in_the_system_prompt(tmp_path: Path) -> None:
    with serving(tmp_path, "paper-calmem") as (proxy, upstream):
        told(proxy)
        await remember(proxy, {"subject": "user", "slot": "diet", "value": "no cashews at all", "category": "note"})
        other = Conversation(proxy, KEY, headers=ANN | {"x_palimpsest_conversation": "other"})
        other.say("On which port does the collector of the staging worker listen?")
        told_by_system = [message for message in sent(upstream)["messages"] if message["role"] == "system"]
        assert "7431" in memory_in({"messages": told_by_system})
        other.say("Thanks, and what should I cook tonight?")
        assert "no cashews at all" in memory_in(sent(upstream))


@pytest.mark.parametrize("preset", ["paper-whenloss", "paper-lightmem3", "paper-lightmem-slm"])
def test_writers_keep_items_of_what_was_said_and_recall_goes_by_them(tmp_path: Path, preset: str) -> None:
    with serving(tmp_path, preset) as (proxy, upstream):
        told(proxy)
        palimpsest("consolidate", "--config", preset, "--data", str(proxy.data)).check_returncode()
        kept = rows(proxy.data, "SELECT writer, text FROM item")
        assert all(writer.startswith(load([Path(preset)], {}, {}).consolidation.writer) for writer, _ in kept)
        assert any("7431" in text for _, text in kept)
        Conversation(proxy, KEY, headers=ANN | {"x_palimpsest_conversation": "other"}).say(
            "On which port does the collector listen?"
        )
        assert "7431" in memory_in(sent(upstream))


def test_whoever_names_a_preset_wrongly_is_told_its_name() -> None:
    assert {name for name in PRESETS if name.startswith("paper-")} == {
        file.stem for file in (ROOT / "config").glob("paper-*.yaml")
    }
