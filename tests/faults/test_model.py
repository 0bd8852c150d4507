"""The embedding model is missing or broken: recall goes by words, it is said, and the model is used when it arrives."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.memory.embedding.model import locate
from palimpsest.memory.recording.archive_process import MODULE
from palimpsest.settings.embedding_models import embedding_model
from palimpsest.settings.policy import ModelPolicy

from tests.running import Conversation, Proxy, memory_in, rows, until
from tests.tiny_models import build_tiny_model, model_hub

pytestmark = pytest.mark.slow

FACT = "The archive room is number 3172, and its door opens to the left."
QUESTION = "What is the number of the archive room?"
E5_LARGE = "intfloat/multilingual-e5-large"


def cached_model() -> Path:
    """The folder of the installed model."""
    folder = locate(ModelPolicy())
    return folder or pytest.skip("needs the embedding model: run palimpsest model install")


def lose_the_fact(proxy: Proxy, upstream: ScriptedUpstream) -> Conversation:
    upstream.script = lambda body: f"I have read all of your {len(body['messages'])} messages, including the last one."
    talk = Conversation(proxy, "sk-one")
    assert talk.say(FACT).status == 200
    for number in range(3):
        talk.say(f"Then we went through shelf {number} and wrote down every single title on it.")
    proxy.settle(vectors=False)
    talk.keep_last(2)
    return talk


@pytest.mark.parametrize("content", [None, b"", b"this is no model " * 1000], ids=["missing", "empty", "corrupt"])
def test_without_model_memory_goes_by_words_and_says_so(
    tmp_path: Path, upstream: ScriptedUpstream, content: bytes | None
) -> None:
    folder = tmp_path / "model"
    if content is None:
        folder.mkdir()
    else:
        shutil.copytree(cached_model(), folder)
        for graph in folder.rglob("*.onnx"):
            graph.write_bytes(content)
    settings = {"model": {"folder": str(folder), "cache": str(tmp_path / "cache")}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        talk = lose_the_fact(proxy, upstream)
        assert talk.ask(QUESTION).status == 200
        assert "3172" in memory_in(upstream.received[-1].json)
        assert proxy.ready()["embedder"] != "ready"
        assert proxy.metric("palimpsest_embedder_ready") == 0
        until(lambda: b"embedding model" in proxy.log.read_bytes(), "the log to say so")


def test_model_folder_that_cannot_be_looked_into_stops_no_request(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    folder = tmp_path / ("m" * 300)  # a name that the system refuses, as it does a folder of somebody else's
    settings = {"model": {"folder": str(folder), "cache": str(tmp_path / "cache")}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        until(lambda: b"looking for the embedding model in" in proxy.log.read_bytes(), "the log to say so")
        talk = lose_the_fact(proxy, upstream)
        assert talk.ask(QUESTION).status == 200
        assert "3172" in memory_in(upstream.received[-1].json)
        assert proxy.ready()["store"] == "ready"
        assert b"File name too long" in proxy.log.read_bytes()


def test_model_that_arrives_later_is_picked_up(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    source, folder = cached_model(), tmp_path / "model"
    settings = {"model": {"folder": str(folder), "cache": str(tmp_path / "cache")}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        lose_the_fact(proxy, upstream)
        assert proxy.ready()["embedder"] != "ready"
        shutil.copytree(source, tmp_path / "arriving")
        (tmp_path / "arriving").rename(folder)
        until(lambda: proxy.ready()["embedder"] == "ready", "the model to be picked up")
        proxy.settle()
        [(missing,)] = rows(proxy.data, "SELECT count(*) FROM memory WHERE id NOT IN (SELECT memory FROM vector)")
        assert missing == 0


def test_what_is_asked_right_after_a_start_waits_for_the_model(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    cached_model()
    proxy = Proxy(tmp_path / "data", upstream.url)
    with proxy:
        talk = lose_the_fact(proxy, upstream)
        proxy.settle()
    with proxy:
        named = talk.ask(QUESTION).said("turn")
        proxy.settle(vectors=False)
        turn = proxy.get(f"/memory/v1/turns/{named}")
        assert "3172" in memory_in(upstream.received[-1].json)
        assert turn.json["explain"]["lexical_only"] is False


@pytest.mark.usefixtures("unforked")
def test_what_was_just_said_is_found_by_its_meaning_though_nothing_is_indexed(
    own_proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    cached_model()
    with own_proxy as proxy:
        until(lambda: proxy.ready()["embedder"] == "ready", "the model to be loaded")
        assert proxy.process is not None
        started = psutil.Process(proxy.process.pid).children(recursive=True)
        for archiving in (one for one in started if MODULE in " ".join(one.cmdline())):
            for indexing in until(archiving.children, "the process that embeds passages"):
                indexing.suspend()
        talk = lose_the_fact(proxy, upstream)

        def unindexed() -> int:
            named = talk.ask(QUESTION).said("turn")
            proxy.settle(vectors=False)
            told = proxy.get(f"/memory/v1/turns/{named}").json["explain"]
            return int(told.get("unindexed", {}).get("passages", 0))

        until(lambda: unindexed() == 0, "a request to find all by its meaning")
        assert "3172" in memory_in(upstream.received[-1].json)
        assert rows(proxy.data, "SELECT count(*) FROM vector") == [(0,)]


def test_another_model_is_fetched_and_everything_embedded_anew_while_memory_goes_by_words(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    before, after = (embedding_model(name) for name in ("jinaai/jina-embeddings-v2-small-en", E5_LARGE))
    assert before is not None and after is not None
    data, folder = tmp_path / "data", build_tiny_model(before, tmp_path / "before")
    with Proxy(data, upstream.url, {"model": {"name": before.name, "folder": str(folder)}}) as proxy:
        talk = lose_the_fact(proxy, upstream)
        proxy.settle()
        named = talk.ask(QUESTION).said("turn")
        proxy.settle(vectors=False)
        assert proxy.get(f"/memory/v1/turns/{named}").json["explain"]["lexical_only"] is False
    sizes = "SELECT DISTINCT model, length(own) FROM vector"
    assert rows(data, sizes) == [("jinaai/jina-embeddings-v2-small-en/centred", 2 * 512)]
    with model_hub() as hub:
        hub.add(after.source, build_tiny_model(after, tmp_path / "published"))
        hub.serving.clear()
        settings = {"model": {"name": after.name, "cache": str(tmp_path / "cache")}}
        online = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "PALIMPSEST_MODEL__DOWNLOAD": "auto"}
        with Proxy(data, upstream.url, settings, **online) as proxy:
            until(lambda: hub.asked, "the hub to be asked")
            answered = Conversation(proxy, "sk-one", messages=talk.messages).ask(QUESTION)
            assert answered.status == 200
            assert "3172" in memory_in(upstream.received[-1].json)
            assert proxy.ready()["embedder"] == "missing"
            hub.serving.set()
            until(lambda: proxy.ready()["embedder"] == "ready", "the model to be fetched and loaded")
            until(lambda: rows(data, sizes) == [(f"{E5_LARGE}/centred", 2 * 1024)], "everything to be embedded anew")
            proxy.settle()
            named = (
                Conversation(proxy, "sk-one", messages=talk.messages).ask("Which door opens to the left?").said("turn")
            )
            proxy.settle(vectors=False)
            assert proxy.get(f"/memory/v1/turns/{named}").json["explain"]["lexical_only"] is False
