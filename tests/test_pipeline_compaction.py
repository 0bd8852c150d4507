"""Compactions that the proxy answers itself: what the client gets, and what the provider is sent in its place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.history.compaction_seal import PREFIX, seal
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.wire.messages import of_events

from tests.commands.test_cli import palimpsest
from tests.refusals import PROVIDERS, prompt_tokens, within
from tests.running import BLOCK_OPENS, Proxy, as_headers, memory_in, request, rows, until
from tests.test_pipeline_responses import BOAT, FERRY, PATH, READ, Caller, filler, seen, talk, user

TRIGGER = {"type": "compaction_trigger"}
SECRET = "5e" * 32

pytestmark = pytest.mark.usefixtures("words_only")  # those of one test alone; what several share has the model


@pytest.fixture(scope="module")
def answering(shared_upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy that answers compactions."""
    folder = tmp_path_factory.mktemp("answering") / "data"
    with Proxy(folder, shared_upstream.url, {"memory": {"compaction": "answer"}}, PALIMPSEST_SECRET=SECRET) as proxy:
        yield proxy


@pytest.fixture
def caller(answering: Proxy, upstream: ScriptedUpstream, key: str) -> Caller:
    def script(body: Json) -> Reply | str:
        assert TRIGGER not in body["input"]
        noted = f"That is noted as answer {len(str(body))} and will be kept in mind for what comes next."
        return FERRY if len(body["input"]) == 1 else noted

    upstream.script = script
    return Caller(answering, key)


def by_endpoint(caller: Caller, history: list[Json]) -> Json:
    return caller.send(history, path=f"{PATH}/compact").json


def by_trigger(caller: Caller, history: list[Json]) -> Json:
    return caller.send([*history, TRIGGER], tools=[READ]).json


def by_trigger_streamed(caller: Caller, history: list[Json]) -> Json:
    answered = caller.send([*history, TRIGGER], tools=[READ], stream=True)
    events = [orjson.loads(line[6:]) for line in answered.body.splitlines() if line.startswith(b"data: ")]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["type"] == "response.completed" and events[-1]["response"]["output"] == done
    response: Json = events[-1]["response"]
    return response


WAYS = [by_endpoint, by_trigger, by_trigger_streamed]


def item_of(response: Json) -> Json:
    (item,) = [item for item in response["output"] if item["type"] == "compaction"]
    assert item["encrypted_content"].startswith(PREFIX)
    return dict(item)


def refused(caller: Caller, input: list[Json]) -> Json:
    body = orjson.dumps({"model": "gpt-4o", "input": input})
    answered = request(caller.proxy.port, "POST", PATH, body, as_headers(caller.key, {}))
    assert answered.status == 400
    error: Json = answered.json["error"]
    return error


@pytest.mark.parametrize("compact", WAYS)
def test_a_compaction_is_answered_without_the_provider_and_what_it_took_away_is_there(
    caller: Caller, upstream: ScriptedUpstream, compact: Any
) -> None:
    history = talk(caller, 4)
    reached = len(upstream.received)
    response = compact(caller, history)
    assert len(upstream.received) == reached, "the provider was asked"
    assert response["usage"]["total_tokens"] == 0
    kept = [item for item in history if item.get("role") == "user"][-1:]
    answered = caller.send([*kept, item_of(response), user("Thank you, go on.")])
    assert seen(answered) == ("main", "compaction:summary")
    sent = upstream.received[-1]
    assert b"compaction" not in sent.body.partition(BLOCK_OPENS.encode())[0]
    assert PREFIX.encode() not in sent.body
    first, compacted, _ = sent.json["input"]
    assert first == kept[0]
    assert compacted["role"] == "user" and FERRY in compacted["content"][0]["text"]


@pytest.mark.sqlite
@pytest.mark.parametrize("compact", WAYS)
def test_what_a_compaction_is_asked_for_is_stored_once(caller: Caller, compact: Any) -> None:
    history = talk(caller, 4)
    history[2] |= {"content": [{"type": "input_text", "text": "This was said in other words before."}]}
    compact(caller, history)
    caller.proxy.settle(vectors=False)
    newest = "FROM turn WHERE role = 'side' ORDER BY id DESC LIMIT 1"
    ((number, messages),) = rows(caller.proxy.data, f"SELECT id, messages {newest}")
    brought = rows(caller.proxy.data, f"SELECT position FROM occurrence WHERE turn = {number} ORDER BY position")
    assert messages == len(history)
    assert [at for (at,) in brought] == [2, messages - 1, messages], "what is new, the last one, and the answer"
    assert palimpsest("check", "--data", str(caller.proxy.data)).returncode == 0


def test_the_endpoint_gives_back_what_the_user_said(caller: Caller) -> None:
    history = talk(caller, 2)
    output = by_endpoint(caller, history)["output"]
    said = [item["content"] for item in output if item.get("role") == "user"]
    assert said == [item["content"] for item in history if item.get("role") == "user"]
    assert [item["type"] for item in output] == ["message"] * len(said) + ["compaction"]


def test_it_says_how_the_work_stood_last_also_what_came_with_the_request_alone(
    caller: Caller, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda _: Reply(calls=(ToolCall("call-1", "read", '{"path": "tides.txt"}'),))
    asked = [user("Read the tide table.")]
    called = caller.send(asked, tools=[READ]).json["output"]
    result = {"type": "function_call_output", "call_id": "call-1", "output": "High water at 04:17 and 16:42."}
    item = item_of(by_trigger(caller, [*asked, *called, result]))
    upstream.script = lambda _: "Noted."
    caller.send([*asked, item])
    assert "High water at 04:17" in memory_in(upstream.received[-1].json)


def test_what_stands_last_is_not_quoted_a_second_time(caller: Caller, upstream: ScriptedUpstream) -> None:
    history = talk(caller, 3)
    caller.send([item_of(by_trigger(caller, history)), user("Go on.")])
    last = history[-1]["content"][0]["text"]
    assert memory_in(upstream.received[-1].json).count(last) == 1


def test_what_stands_last_in_a_compaction_is_not_quoted_behind_it(caller: Caller, upstream: ScriptedUpstream) -> None:
    item = item_of(by_trigger(caller, talk(caller, 3)))
    caller.proxy.settle()
    caller.send([item, user(BOAT)])
    assert upstream.received[-1].body.count(FERRY.encode()) == 1


def test_the_provider_sees_the_same_bytes_at_each_later_request_and_after_a_restart(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    upstream.script = lambda body: FERRY if len(body["input"]) == 1 else "That is noted and will be kept in mind."
    own_proxy.config.write_text(own_proxy.config.read_text().replace("memory:", "memory:\n  compaction: answer", 1))
    caller = Caller(own_proxy.start(), key)
    item = item_of(by_trigger(caller, talk(caller, 3)))
    window = [item, user("Go on with the sails.")]

    def prefix() -> bytes:
        return orjson.dumps(upstream.received[-1].json["input"][0])

    window += caller.send(window).json["output"]
    first = prefix()
    caller.send([*window, user("And then?")])
    assert prefix() == first
    own_proxy.stop()
    own_proxy.start()
    caller.send([*window, user("And what comes after that?")])
    assert prefix() == first and FERRY in first.decode()


def test_a_policy_that_forwards_again_still_writes_its_items_out(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    upstream.script = lambda body: FERRY if len(body["input"]) == 1 else "That is noted and will be kept in mind."
    forwards = own_proxy.config.read_text()
    own_proxy.config.write_text(forwards.replace("memory:", "memory:\n  compaction: answer", 1))
    caller = Caller(own_proxy.start(), key)
    item = item_of(by_trigger(caller, talk(caller, 3)))
    own_proxy.stop()
    own_proxy.config.write_text(forwards)
    own_proxy.start()
    caller.send([item, user("Go on.")])
    assert FERRY in memory_in(upstream.received[-1].json)


def test_five_compactions_in_a_row_lose_nothing_that_is_asked_for(caller: Caller, upstream: ScriptedUpstream) -> None:
    window = talk(caller, 3)
    for number in range(5):
        item = item_of(by_trigger(caller, window))
        window = [item, user(filler(100 + 10 * number))]
        window += caller.send(window).json["output"]
        for each in range(3):
            window.append(user(filler(101 + 10 * number + each)))
            window += caller.send(window).json["output"]
    caller.proxy.settle()
    answered = caller.send([*window, user(BOAT)])
    assert seen(answered)[0] == "main"
    assert "quarter past nine" in memory_in(upstream.received[-1].json)


def long_after(item: Json) -> list[Json]:
    """A history that goes on behind a compaction for some 12,000 tokens."""
    answers = [{"role": "assistant", "content": f"Noted {number}: " + filler(number) * 4} for number in range(60)]
    return [item, *(said for number, answer in enumerate(answers) for said in (user(filler(number) * 4), answer))]


def test_what_goes_on_behind_an_item_is_cut_where_it_outgrows_the_window_and_the_item_stays(
    upstream: ScriptedUpstream, key: str, tmp_path: Path
) -> None:
    settings: Json = {"overflow": "trim", "memory": {"compaction": "answer"}}
    upstream.script = lambda body: FERRY if len(body["input"]) == 1 else "That is noted and will be kept in mind."
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        caller = Caller(proxy, key)
        item = item_of(by_endpoint(caller, talk(caller, 4)))
        upstream.script = within(8_000, PROVIDERS["openai"], lambda _: "Fine.")
        history = long_after(item)
        for more in ([user("And now?")], [user("And now?"), {"role": "assistant", "content": "Fine."}, user("Then?")]):
            caller.send([*history, *more])
        sent = upstream.received[-3:]
        assert [prompt_tokens(got.json) > 8_000 for got in sent] == [True, False, False], "refused once, then cut"
        for got in sent:
            assert PREFIX.encode() not in got.body and FERRY in str(got.json["input"][0])


def test_what_is_only_counted_is_counted_as_the_provider_would_get_it(
    caller: Caller, upstream: ScriptedUpstream
) -> None:
    item = item_of(by_endpoint(caller, talk(caller, 4)))
    caller.send([item, user("Go on.")], path=f"{PATH}/input_tokens")
    counted = upstream.received[-1]
    caller.send([item, user("Go on.")])
    assert counted.json["input"][0] == upstream.received[-1].json["input"][0]
    assert PREFIX.encode() not in counted.body


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text[:-4] + ("AAAA" if not text.endswith("AAAA") else "BBBB"), "compaction_item_invalid"),
        (lambda text: PREFIX + "Zm9yZ2Vk", "compaction_item_invalid"),
        (lambda text: PREFIX + "not base64!", "compaction_item_invalid"),
    ],
)
def test_a_forged_item_is_refused_in_words(caller: Caller, upstream: ScriptedUpstream, change: Any, code: str) -> None:
    item = item_of(by_trigger(caller, talk(caller, 1)))
    reached = len(upstream.received)
    item["encrypted_content"] = change(item["encrypted_content"])
    error = refused(caller, [item, user("Go on.")])
    assert error["code"] == code and "begin a new session" in error["message"]
    assert len(upstream.received) == reached


def test_an_item_of_another_tenant_is_refused(caller: Caller, upstream: ScriptedUpstream) -> None:
    item = item_of(by_trigger(caller, talk(caller, 1)))
    reached = len(upstream.received)
    error = refused(Caller(caller.proxy, f"{caller.key}-other"), [item, user("Go on.")])
    assert error["code"] == "compaction_item_invalid"
    assert len(upstream.received) == reached


def test_an_item_that_is_out_of_date_is_refused(own_proxy: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    own_proxy.config.write_text(own_proxy.config.read_text() + "tenants: {static: me}\n")
    own_proxy.env["PALIMPSEST_SECRET"] = SECRET
    caller = Caller(own_proxy.start(), key)
    day = 86_400.0
    old = seal("t-00112233445566aa", time.time() - 2 * day, day, tenant_key(SECRET.encode(), "static:me"))
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": old}
    assert refused(caller, [item, user("Go on.")])["code"] == "compaction_item_expired"
    assert upstream.received == []


@pytest.mark.parametrize("what", ["conversation", "matching", "turn"])
def test_what_is_forgotten_does_not_come_back_out_of_an_item(
    caller: Caller, upstream: ScriptedUpstream, what: str
) -> None:
    first = caller.send([user("What do you know of the islands?")])
    history = [user("What do you know of the islands?"), *first.json["output"], user("Go on.")]
    history += caller.send(history).json["output"]
    compaction = caller.send([*history, TRIGGER], tools=[READ])
    item = item_of(compaction.json)
    caller.send([item, user("Go on.")])
    assert FERRY in memory_in(upstream.received[-1].json)
    caller.proxy.settle(vectors=False)
    named = {"conversation": first.said("conversation"), "matching": "quarter past nine", "turn": first.said("turn")}
    given = {what: named[what], "conversation": named["conversation"]} if what == "matching" else {what: named[what]}
    forgotten = request(caller.proxy.port, "POST", "/memory/v1/forget", orjson.dumps(given))
    assert forgotten.status == 200, forgotten.body
    caller.send([item, user("Go on.")])
    sent = upstream.received[-1].body.decode()
    assert FERRY not in sent and PREFIX not in sent
    assert "are forgotten" in sent


def knows(proxy: Proxy, key: str) -> bool:
    return request(proxy.port, "GET", "/v1/models", headers=as_headers(key, {})).status == 200


def test_an_item_of_another_users_is_not_opened_by_a_key_for_some(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "Noted."
    own_proxy.config.write_text(own_proxy.config.read_text().replace("memory:", "memory:\n  compaction: answer", 1))
    own_proxy.start()
    whole, part = ({"name": "all", "tenant": "team"}, {"name": "ann", "tenant": "team", "users": ["ann"]})
    made = [
        request(own_proxy.port, "POST", "/memory/v1/keys", orjson.dumps(asked)).json["key"] for asked in (whole, part)
    ]
    for made_key in made:  # every process learns of them within a second
        until(partial(knows, own_proxy, made_key), "the key to be known")
    bob = Caller(own_proxy, made[0], {"model": "gpt-4o", "user": "bob"})
    item = item_of(by_trigger(bob, talk(bob, 1)))
    bob.send([item, user("Go on.")])
    error = refused(Caller(own_proxy, made[1]), [item, user("Go on.")])
    assert error["code"] == "compaction_item_invalid"


@pytest.mark.sqlite
def test_while_the_archive_does_not_answer_requests_go_on_and_no_item_reaches_the_provider(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    upstream.script = lambda _: "Noted."
    own_proxy.config.write_text(own_proxy.config.read_text().replace("memory:", "memory:\n  compaction: answer", 1))
    caller = Caller(own_proxy.start(), key)
    history = talk(caller, 1)
    item = item_of(by_trigger(caller, history))
    own_proxy.settle(vectors=False)
    own_proxy.stop()
    for file in own_proxy.data.glob("palimpsest.db*"):
        file.unlink()
    (own_proxy.data / "palimpsest.db").write_bytes(b"this is no database" * 1000)
    own_proxy.start()
    caller.send([item, user("Go on.")])
    sent = upstream.received[-1].body.decode()
    assert PREFIX not in sent and "cannot be read now" in sent
    caller.send([*history, TRIGGER], tools=[READ])
    assert upstream.received[-1].json["input"][-1] == TRIGGER, "who cannot answer leaves it to the provider"


def test_by_default_a_compaction_is_the_providers(proxy: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    caller = Caller(proxy, key)
    upstream.script = lambda _: "Noted."
    history = talk(caller, 1)
    item = by_trigger(caller, history)["output"][0]
    assert not item["encrypted_content"].startswith(PREFIX)
    assert upstream.received[-1].json["input"] == [*history, TRIGGER]


# --- upstreams that have no compaction -----------------------------------------------------------


def lacking(upstream: ScriptedUpstream, refusal: int = 0) -> None:
    """It answers a trigger as any other request, or refuses it with this status."""

    def script(body: Json) -> Reply | str:
        if refusal and any(item.get("type") == "compaction_trigger" for item in body["input"]):
            return Reply("no such thing here", status=refusal)
        return FERRY if len(body["input"]) == 1 else f"Noted as answer {len(str(body))}, and kept in mind."

    upstream.script = script
    upstream.has_compactions = bool(refusal)


@pytest.fixture
def forwarding(own_proxy: Proxy, upstream: ScriptedUpstream) -> Iterator[Proxy]:
    """By default a compaction is the upstream's."""
    yield own_proxy.start()
    upstream.has_compactions = True


@pytest.mark.parametrize(
    ("compact", "refusal"),
    [(by_endpoint, 0), (by_trigger, 0), (by_trigger_streamed, 0), (by_trigger, 501), (by_trigger_streamed, 400)],
)
def test_an_upstream_without_compactions_is_asked_once_and_then_left_alone(
    forwarding: Proxy, upstream: ScriptedUpstream, key: str, compact: Any, refusal: int
) -> None:
    lacking(upstream, refusal)
    caller = Caller(forwarding, key)
    window = talk(caller, 3)
    reached = len(upstream.received)
    for number in range(2):
        item = item_of(compact(caller, window))
        assert len(upstream.received) == reached + 1, "it is asked the first time alone"
        window = [item, user(filler(number))]
        window += caller.send(window).json["output"]
        assert FERRY in memory_in(upstream.received[-1].json)
        reached = len(upstream.received) - 1
    events = [event for (event,) in settled_rows(forwarding)]
    assert events.count("compaction:summary") == 2


def settled_rows(proxy: Proxy) -> list[Any]:
    proxy.settle(vectors=False)
    return rows(proxy.data, "SELECT event FROM turn WHERE role = 'main'")


@pytest.mark.parametrize("status", [401, 429, 500])
def test_an_upstream_that_only_failed_is_not_taken_for_one_without(
    forwarding: Proxy, upstream: ScriptedUpstream, key: str, status: int
) -> None:
    caller = Caller(forwarding, key)
    lacking(upstream, status)
    history = talk(caller, 1)
    for _ in range(2):
        body = orjson.dumps({"model": "gpt-4o", "input": [*history, TRIGGER]})
        assert request(forwarding.port, "POST", PATH, body, as_headers(key, {})).status == status
        assert upstream.received[-1].json["input"][-1] == TRIGGER


# --- Anthropic's edit ----------------------------------------------------------------------------

BETA = {"anthropic-version": "2023-06-01", "anthropic-beta": "compact-2026-01-12"}
LONG = "Of all the ropes on board, the halyard is the one that is looked after first. " * 180


def asked(messages: list[Json], *, pauses: bool = False, stream: bool = False, trigger: int = 5_000) -> Json:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": trigger}}
    edits = [{"type": "clear_tool_uses_20250919"}, edit | ({"pause_after_compaction": True} if pauses else {})]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": messages, "stream": stream}
    return body | {"context_management": {"edits": edits}}


def message(proxy: Proxy, key: str, body: Json) -> Json:
    """The message of an answer, read from its events if it is streamed."""
    headers = {"x-api-key": key, "content-type": "application/json"} | BETA
    answered = request(proxy.port, "POST", "/v1/messages", orjson.dumps(body), headers)
    assert answered.status == 200, answered.body
    if not body["stream"]:
        return answered.json
    events = [line[6:] for line in answered.body.splitlines() if line.startswith(b"data: ")]
    indexes = [event["index"] for event in map(orjson.loads, events) if event["type"] == "content_block_start"]
    assert indexes == [*range(len(indexes))]
    read, _, _ = of_events(events)
    stops = [event["delta"]["stop_reason"] for event in map(orjson.loads, events) if event["type"] == "message_delta"]
    return (read or {}) | {"stop_reason": stops[-1]}


def anthropic_talk(proxy: Proxy, key: str) -> list[Json]:
    """A history that is long enough, with a fact in its first answer."""
    history: list[Json] = []
    for number, text in enumerate(("What do you know of the islands?", *(f"{number}: {LONG}" for number in range(4)))):
        history.append({"role": "user", "content": text})
        history.append({"role": "assistant", "content": message(proxy, key, asked(history, trigger=90_000))["content"]})
        assert number or history[-1]["content"][0]["text"] == FERRY
    return history


@pytest.fixture
def anthropic(answering: Proxy, upstream: ScriptedUpstream) -> Proxy:
    upstream.script = lambda body: (
        FERRY if len(str(body)) < 500 else f"Noted as answer {len(str(body))} of mine, and it will be kept in mind."
    )
    return answering


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_edit_is_made_by_the_proxy_and_the_model_goes_on(
    anthropic: Proxy, upstream: ScriptedUpstream, key: str, stream: bool
) -> None:
    history = anthropic_talk(anthropic, key)
    history.append({"role": "user", "content": "Now tell me about knots."})
    answered = message(anthropic, key, asked(history, stream=stream))
    compaction, said = answered["content"]
    assert compaction["type"] == "compaction" and compaction["content"].startswith(PREFIX)
    assert said["text"].startswith("Noted as answer") and answered["stop_reason"] == "end_turn"
    sent = upstream.received[-1].json
    assert FERRY in memory_in(sent) and len(sent["messages"]) == 2
    assert sent["messages"][-1] == history[-1]
    assert [edit["type"] for edit in sent["context_management"]["edits"]] == ["clear_tool_uses_20250919"]
    text = sent["messages"][0]
    history += [{"role": "assistant", "content": answered["content"]}, {"role": "user", "content": "Go on."}]
    message(anthropic, key, asked(history))
    later = upstream.received[-1].json["messages"]
    assert later[:2] == [text, {"role": "assistant", "content": [said]}]
    assert later[2]["role"] == "user" and len(later) == 3
    anthropic.settle(vectors=False)
    events = rows(anthropic.data, "SELECT event FROM turn ORDER BY id DESC LIMIT 2")
    assert events == [("compaction:summary",), ("append",)]
    assert PREFIX not in upstream.received[-1].body.decode()


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_pauses_there_gets_the_compaction_alone(
    anthropic: Proxy, upstream: ScriptedUpstream, key: str, stream: bool
) -> None:
    history = anthropic_talk(anthropic, key)
    history.append({"role": "user", "content": "Now tell me about knots."})
    reached = len(upstream.received)
    answered = message(anthropic, key, asked(history, pauses=True, stream=stream))
    assert len(upstream.received) == reached
    assert answered["stop_reason"] == "compaction"
    (compaction,) = answered["content"]
    again = [*history, {"role": "assistant", "content": [compaction]}, history[-1]]
    message(anthropic, key, asked(again))
    sent = upstream.received[-1].json["messages"]
    assert FERRY in memory_in({"messages": sent[:1]}) and len(sent) == 2


def test_results_of_tools_stay_with_their_calls(anthropic: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    history = anthropic_talk(anthropic, key)
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "knots.txt", "size": 1.5}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "The bowline holds."}
    history += [{"role": "user", "content": "Read it."}, {"role": "assistant", "content": [call]}]
    history.append({"role": "user", "content": [result]})
    message(anthropic, key, asked(history))
    assert upstream.received[-1].json["messages"][1:] == history[-2:]


def test_below_its_trigger_the_edit_is_the_providers(anthropic: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    history = anthropic_talk(anthropic, key)
    body = asked([*history, {"role": "user", "content": "Go on."}], trigger=90_000)
    message(anthropic, key, body)
    assert upstream.received[-1].json["context_management"] == body["context_management"]
    assert len(upstream.received[-1].json["messages"]) == len(body["messages"])
