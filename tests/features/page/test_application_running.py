"""The page of a running proxy: there by default, gone where the policy says so, and with a page for every turn."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.features.page.views import LIVE_TURNS

from tests.running import PATIENCE_SECONDS, Answered, Conversation, Proxy, as_headers, request, upstream_on_a_thread
from tests.test_pipeline_responses import PATH, user

pytestmark = pytest.mark.slow

WINDOW_TOKENS = 4_000
RATE, PACED_SECONDS = 50, 4  # requests a second, and for how long: longer than one stream is open
PORT = "We decided that the staging database listens on port 7431."


@pytest.mark.parametrize(("enabled", "status", "begins"), [(True, 200, b"<!doctype html>"), (False, 404, b'{"error"')])
def test_the_policy_says_whether_there_is_a_page(tmp_path: Path, enabled: bool, status: int, begins: bytes) -> None:
    with (
        upstream_on_a_thread(ScriptedUpstream()) as upstream,
        Proxy(tmp_path / "data", f"{upstream.url}/v1", {"page": {"enabled": enabled}}) as proxy,
    ):
        answered = proxy.get("/memory/")
        assert (answered.status, answered.body.startswith(begins)) == (status, True)
        assert proxy.get("/memory/static/nope.css").status == 404
        assert proxy.get("/memory/v1/health").status == 200


@dataclass
class House:
    """A proxy that trims and answers compactions, and its scripted upstream."""

    proxy: Proxy
    upstream: ScriptedUpstream

    def talk(self, key: str = "sk-test") -> Conversation:
        return Conversation(self.proxy, key)

    def page(self, of: Answered) -> str:
        """The page of the turn that this was an answer to."""
        self.proxy.settle(vectors=False)
        shown = self.proxy.get(f"/memory/turns/{of.said('turn')}")
        assert shown.status == 200, shown.body[:500]
        return shown.body.decode()

    def losses(self, of: Answered) -> Json:
        self.proxy.settle(vectors=False)
        return self.proxy.get(f"/memory/v1/turns/{of.said('turn')}/losses").json

    def items(self, input: list[Json], path: str = PATH) -> Answered:
        body = {"model": "gpt-4o", "input": input}
        return request(self.proxy.port, "POST", path, orjson.dumps(body), as_headers("sk-items", {}))


def noted(body: Json) -> str:
    return f"That is noted as answer {len(str(body))} and will be kept in mind."


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    settings: Json = {
        "overflow": "trim",
        "memory": {"compaction": "answer"},
        "pressure": {"window_tokens": {"small*": WINDOW_TOKENS}},
    }
    with (
        upstream_on_a_thread(ScriptedUpstream(noted)) as upstream,
        Proxy(tmp_path_factory.mktemp("running") / "data", f"{upstream.url}/v1", settings) as proxy,
    ):
        yield House(proxy, upstream)


@pytest.fixture
def house(running: House) -> House:
    running.upstream.script = noted
    return running


def test_every_kind_of_turn_has_a_page(house: House) -> None:
    talk = house.talk()
    assert "calm" in house.page(talk.say("Good morning, let us look at the mail step."))
    talk.say(PORT)
    house.upstream.play(Reply(calls=(ToolCall("call-1", "read", '{"path": "mail.py"}'),)))
    assert "read(" in house.page(talk.say("Read mail.py, please."))
    house.upstream.script = noted
    talk.messages[-1] = {"role": "assistant", "content": None, "tool_calls": [_call("call-1", "mail.py")]}
    talk.messages.append({"role": "tool", "tool_call_id": "call-1", "content": "def send(): ..."})
    answered = talk.proxy.chat(talk.body(), talk.key)
    assert "def send" in house.page(answered)
    talk.messages.append({"role": "assistant", "content": answered.text})
    talk.say("And what does that do?")
    order = "Do not call tools. Create a detailed summary of our conversation so far. " + "Be thorough. " * 40
    side = talk.ask(f"{order}\nSummarize what the conversation was about between <summary> tags.")
    assert side.said("role") == "side"
    house.page(side)
    house.upstream.play(Reply("no such model", status=400))
    refused = talk.ask("Is anybody there?")
    assert refused.status == 400
    house.page(refused)
    house.upstream.script = noted
    house.proxy.settle()
    talk.keep_last(2, "They spoke.")
    brought = talk.say("Which port does the staging database listen on?")
    assert "Why these passages" in house.page(brought)
    read_only = talk.ask("And who wrote it?", **{"x-palimpsest-memory": "read-only"})
    assert (read_only.status, read_only.said("turn")) == (200, ""), "it is not archived, and has no page"
    conversation = house.proxy.get(f"/memory/conversations/{brought.said('conversation')}").body
    assert b"And who wrote it?" not in conversation and brought.said("turn").encode() in conversation


def test_what_a_compaction_of_ours_tells_is_not_lost_and_stands_on_the_page(house: House) -> None:
    history: list[Json] = []
    house.upstream.script = lambda body: PORT if len(body["input"]) == 1 else "That is noted, and will be kept in mind."
    for said in (
        "Where does the staging database listen?",
        "Which tables does the mail step read?",
        "Write the migration down.",
        "Thank you.",
    ):
        history.append(user(said))
        history += house.items(history).json["output"]
    house.proxy.settle()
    item = house.items(history, f"{PATH}/compact").json["output"][-1]
    assert item["type"] == "compaction"
    answered = house.items([item, user("Go on with the migration, please.")])
    assert answered.said("event") == "compaction:summary"
    losses = house.losses(answered)
    assert losses["removed_messages"] >= 7
    assert PORT in losses["compacted"]
    assert [one for one in losses["losses"] if "7431" in one["text"]] == []
    page = house.page(answered)
    assert "in the place of a compaction" in page and "port 7431" in page
    compaction = house.proxy.get(f"/memory/conversations/{answered.said('conversation')}").body.decode()
    assert "What the proxy put in its place" in compaction


def test_a_cut_is_an_event_of_its_conversation_and_its_page_says_what_stayed_behind(house: House) -> None:
    talk = house.talk("sk-long")
    talk.extra = {"model": "small-4k"}
    talk.say("Let us look through the tide tables of the harbour.")
    talk.say(f"{PORT} And never touch the harbour lights.")
    cut = None
    for number in range(40):
        answered = talk.say(f"Note {number}: " + f"vessel {number} lies at berth {number}, under way since dawn. " * 12)
        house.proxy.settle(vectors=False)
        turn = house.proxy.get(f"/memory/v1/turns/{answered.said('turn')}").json
        if cut:
            break
        cut = answered if turn["is_cut"] else None
    assert cut is not None
    losses = house.losses(cut)
    assert (losses["cut"], losses["left_behind_messages"] > 2) == (cut.said("turn"), True)
    assert {one["became"] for one in losses["left_behind"]} == {"removed"}
    assert "7431" in {one["text"] for one in losses["losses"]}.__str__()
    page = house.page(cut)
    assert "What stayed behind" in page and "from this request on" in page and "<del>" in page
    conversation = house.proxy.get(f"/memory/conversations/{cut.said('conversation')}").body.decode()
    assert re.search(r"the window was full: [\d,]+ tokens stay behind from here on", conversation)
    later = house.losses(answered)
    assert (later["cut"], later["removed_messages"]) == (cut.said("turn"), 0), "the same cut, and nothing new"
    assert f"turns/{cut.said('turn')}" in house.page(answered)


def test_of_fifty_requests_a_second_each_is_shown_or_counted(house: House) -> None:
    house.proxy.settle(vectors=False)
    before = house.proxy.get(f"/memory/v1/turns?limit={LIVE_TURNS}").json["turns"]
    seen, ids, over = {one["turn"] for one in before}, [f"{before[0]['turn']}:0"], threading.Event()

    def look() -> None:
        """Read the stream as a browser does: again when it ends, from the last event on."""
        while not over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", house.proxy.port, timeout=PATIENCE_SECONDS)
            connection.request("GET", "/memory/live", headers={"last-event-id": ids[-1]})
            for line in connection.getresponse():
                if line.startswith(b"id: "):
                    ids.append(line[4:].decode().strip())
                seen.update(re.findall(r"/memory/turns/(t-\w+)", line.decode()))
            connection.close()

    looking = threading.Thread(target=look)
    looking.start()
    sent: list[str] = []
    callers = [threading.Thread(target=_paced, args=(house, n, sent)) for n in range(10)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    last = house.talk().say("The storm is over.").said("turn")
    while not any(id.startswith(last) for id in ids):
        time.sleep(0.1)
    over.set()
    looking.join()
    shown, missed = len(seen) - len(before), int(ids[-1].partition(":")[2])
    assert len(sent) == RATE * PACED_SECONDS
    assert shown + missed == len(sent) + 1


def _paced(house: House, number: int, sent: list[str]) -> None:
    """A tenth of the requests, each at its time."""
    begun = time.monotonic()
    for at in range(RATE * PACED_SECONDS // 10):
        time.sleep(max(0.0, begun + (number + 10 * at) / RATE - time.monotonic()))
        sent.append(house.talk(f"sk-storm-{number}").say(f"Storm {number}, {at}.").said("turn"))


def _call(id: str, path: str) -> Json:
    arguments = orjson.dumps({"path": path}).decode()
    return {"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}}
