"""Providers that speak no wire of the client's are asked through LiteLLM, and the client notices nothing of it."""

from __future__ import annotations

import http.client
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.refusals import PROVIDERS
from tests.running import (
    BLOCK_OPENS,
    PATIENCE_SECONDS,
    ROOT,
    Answered,
    Conversation,
    Proxy,
    as_headers,
    free_port,
    request,
    stored_texts,
    until,
    upstream_on_a_thread,
)
from tests.upstream.providers import Gemini, Ollama

pytestmark = pytest.mark.slow

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
KEYS = {"CLAUDE_KEY": "sk-claude", "GEMINI_KEY": "sk-gemini", "OTHER_KEY": "sk-other"}
OFF = "off"
LOOK = {"name": "look", "parameters": {"type": "object", "properties": {"where": {"type": "string"}}}}
CALL = ToolCall("call_1", "look", '{"where":"here"}')
LONG = "A story that is told by many and comes to no end. " * 10
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


@dataclass
class House:
    """One proxy in front of every kind of provider."""

    proxy: Proxy
    providers: dict[str, ScriptedUpstream]  # by the beginning of the models that they serve

    def provider(self, model: str) -> ScriptedUpstream:
        return next(provider for start, provider in self.providers.items() if model.startswith(start))

    def ask(self, path: str, body: Json, key: str = "sk-client", **headers: str) -> Answered:
        """One request without memory."""
        headers = {"x_palimpsest_memory": OFF} | headers
        return request(self.proxy.port, "POST", path, orjson.dumps(body), as_headers(key, headers))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with ExitStack() as opened:
        kinds = {"claude": ScriptedUpstream(), "gemini": Gemini(), "llama": Ollama(), "gpt": ScriptedUpstream()}
        up = {name: opened.enter_context(upstream_on_a_thread(kind)) for name, kind in kinds.items()}
        base = {name: provider.url.removesuffix("/v1") for name, provider in up.items()}
        fallback = {"model": "anthropic/claude-spare", "api_base": base["claude"], "api_key": "os.environ/OTHER_KEY"}
        upstreams = [
            {
                "name": "claude",
                "models": ["claude-*"],
                "litellm": "anthropic/*",
                "url": base["claude"],
                "key_env": "CLAUDE_KEY",
            },
            {
                "name": "gemini",
                "models": ["gemini-*"],
                "litellm": "gemini/*",
                "url": base["gemini"],
                "key_env": "GEMINI_KEY",
            },
            {"name": "llama", "models": ["llama*"], "litellm": "ollama_chat/*", "url": base["llama"]},
            {"name": "gpt", "models": ["gpt-*"], "litellm": "openai/*", "url": up["gpt"].url, "auth": "forward"},
            {
                "name": "stubborn",
                "models": ["claude_stubborn"],
                "litellm": "anthropic/claude-x",
                "url": base["claude"],
                "key_env": "CLAUDE_KEY",
                "settings": {"num_retries": 2},
            },
            {
                "name": "spared",
                "models": ["gpt_spared"],
                "litellm": "openai/gpt-4o",
                "url": up["gpt"].url,
                "key_env": "OTHER_KEY",
                "settings": {"fallbacks": [fallback]},
            },
            {
                "name": "hasty",
                "models": ["gemini_hasty"],
                "litellm": "gemini/gemini-2.5-flash",
                "url": base["gemini"],
                "key_env": "GEMINI_KEY",
                "silence_timeout_seconds": 0.3,
            },
            {
                "name": "dead",
                "models": ["dead"],
                "litellm": "openai/gpt-4o",
                "url": f"http://127.0.0.1:{free_port()}/v1",
                "key_env": "OTHER_KEY",
            },
            {"name": "plain", "models": ["plain"], "url": up["gpt"].url},
        ]
        data = tmp_path_factory.mktemp("litellm") / "data"
        running = opened.enter_context(Proxy(data, "", {"upstreams": upstreams}, **KEYS))
        yield House(running, up)


@pytest.fixture(autouse=True)
def _nothing_received(house: House) -> None:
    for provider in house.providers.values():
        provider.received.clear()
        provider.abandoned = 0
        provider.play()


def events(answered: Answered) -> list[Json]:
    return [orjson.loads(line[6:]) for line in answered.body.splitlines() if line.startswith(b"data: {")]


def chat(model: str, **more: object) -> Json:
    return {"model": model, "messages": [{"role": "user", "content": "On which port?"}], **more}


ON_EACH_WIRE = [
    pytest.param(CHAT, {"messages": [{"role": "user", "content": "On which port?"}]}, id="chat"),
    pytest.param(RESPONSES, {"input": "On which port?"}, id="responses"),
    pytest.param(
        MESSAGES, {"messages": [{"role": "user", "content": "On which port?"}], "max_tokens": 50}, id="messages"
    ),
]
MODELS = ["claude-x", "gemini-2.5-flash", "llama3", "gpt-4o"]


# --- chat completions in, the provider's words out, and back -------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
def test_a_chat_is_answered_by_whichever_provider(house: House, model: str, stream: bool) -> None:
    house.provider(model).play("The worker listens on port 7431 in staging, and nowhere else.")
    answered = house.ask(CHAT, chat(model, stream=stream))
    assert (answered.status, answered.broken) == (200, False)
    assert answered.text == "The worker listens on port 7431 in staging, and nowhere else."
    if stream:
        assert answered.headers["content-type"].startswith("text/event-stream")
        assert answered.body.endswith(b"data: [DONE]\n\n")
        assert len({event["id"] for event in events(answered)}) == 1
        assert events(answered)[-1]["choices"][0]["finish_reason"] == "stop"
        assert not any("usage" in event for event in events(answered))
    else:
        assert answered.json["choices"][0]["finish_reason"] == "stop"
        assert answered.json["usage"]["prompt_tokens"] > 0


def test_usage_is_streamed_where_it_is_asked_for(house: House) -> None:
    for model in MODELS:
        house.provider(model).play("7431")
        answered = house.ask(CHAT, chat(model, stream=True, stream_options={"include_usage": True}))
        assert events(answered)[-1]["usage"]["prompt_tokens"] > 0


def test_each_provider_is_asked_in_its_own_words_with_its_own_key(house: House) -> None:
    said = {"role": "system", "content": "Be brief."}
    for model in MODELS:
        house.provider(model).play("7431")
        body = chat(model, max_tokens=7, temperature=0.5)
        house.ask(CHAT, body | {"messages": [said, *body["messages"]]})
    claude, gemini, llama, gpt = (house.provider(model).received[0] for model in MODELS)
    assert claude.path == "/v1/messages"
    assert claude.headers["x-api-key"] == "sk-claude"
    assert (claude.json["model"], claude.json["max_tokens"], claude.json["temperature"]) == ("claude-x", 7, 0.5)
    assert claude.json["system"][0]["text"] == "Be brief."
    assert gemini.path == "/models/gemini-2.5-flash:generateContent"
    assert gemini.headers["x-goog-api-key"] == "sk-gemini"
    assert gemini.json["system_instruction"]["parts"][0]["text"] == "Be brief."
    assert llama.path == "/api/chat"
    assert llama.json["options"] == {"temperature": 0.5, "num_predict": 7}
    assert gpt.path == "/v1/chat/completions"
    assert gpt.headers["Authorization"] == "Bearer sk-client"
    for received in (claude, gemini, llama):
        assert not any("sk-client" in value for value in received.headers.values())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
def test_tools_go_both_ways(house: House, model: str, stream: bool) -> None:
    provider = house.provider(model)
    provider.play(Reply("Let me look.", calls=(CALL,)), "It is there.")
    tools = [{"type": "function", "function": LOOK}]
    answered = house.ask(CHAT, chat(model, stream=stream, tools=tools, tool_choice="auto"))
    assert "look" in provider.received[0].body.decode()
    if stream:
        deltas = [call for e in events(answered) for call in e["choices"][0]["delta"].get("tool_calls") or ()]
        name = next(delta["function"]["name"] for delta in deltas if delta["function"].get("name"))
        call_id = next(delta["id"] for delta in deltas if delta.get("id"))
        arguments = "".join(delta["function"].get("arguments") or "" for delta in deltas)
        finish = events(answered)[-1]["choices"][0]["finish_reason"]
    else:
        (choice,) = answered.json["choices"]
        (call,) = choice["message"]["tool_calls"]
        name, call_id, arguments = call["function"]["name"], call["id"], call["function"]["arguments"]
        finish = choice["finish_reason"]
    assert (name, orjson.loads(arguments), finish) == ("look", {"where": "here"}, "tool_calls")
    asked = chat(model, tools=tools)
    call_said = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}
    asked["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call_said]},
        {"role": "tool", "tool_call_id": call_id, "content": "a lighthouse"},
    ]
    assert house.ask(CHAT, asked).text == "It is there."
    assert "a lighthouse" in provider.received[1].body.decode()


@pytest.mark.parametrize("model", MODELS)
def test_images_arrive(house: House, model: str) -> None:
    house.provider(model).play("A pixel.")
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}],
    }
    assert house.ask(CHAT, asked).text == "A pixel."
    assert PIXEL in house.provider(model).received[0].body.decode()


@pytest.mark.parametrize("model", MODELS)
def test_an_image_opens_nothing_inside(house: House, model: str) -> None:
    with upstream_on_a_thread() as inside:
        for url in (f"{inside.url}/private.png", "file:///etc/hostname", "/etc/hostname"):
            house.provider(model).play("An image.")
            image = {"type": "image_url", "image_url": {"url": url}}
            house.ask(CHAT, {"model": model, "messages": [{"role": "user", "content": [image]}]})
        assert inside.received == []
    hostname = Path("/etc/hostname")
    inner = b64encode(hostname.read_bytes().strip()).decode() if hostname.is_file() else "nothing to leak"
    sent = " ".join(received.body.decode() for received in house.provider(model).received)
    assert inner[:8] not in sent


def test_what_changes_no_answer_is_left_out_where_the_provider_does_not_know_it(house: House) -> None:
    hints = {"user": "u", "store": False, "parallel_tool_calls": True, "prompt_cache_key": "k", "service_tier": "auto"}
    for model in MODELS:
        house.provider(model).play("7431")
        assert house.ask(CHAT, chat(model, **hints)).status == 200, model


def test_no_field_of_a_request_says_where_it_goes_or_with_which_key(house: House) -> None:
    elsewhere = f"http://127.0.0.1:{free_port()}"
    takeover = {
        **{"api_base": elsewhere, "base_url": elsewhere, "api_key": "sk-mine", "custom_llm_provider": "openai"},
        **{
            "mock_response": "not from the provider",
            "fallbacks": ["openai/gpt-4o"],
            "num_retries": 5,
            "timeout": 0.001,
        },
        **{"extra_headers": {"x-evil": "1"}, "metadata": {"a": "b"}, "extra_body": {"evil": True}},
    }
    for path, body in ((param.values[0], param.values[1]) for param in ON_EACH_WIRE):
        house.providers["claude"].play("From the provider.")
        answered = house.ask(path, {"model": "claude-x"} | body | takeover)
        assert (answered.status, b"From the provider." in answered.body) == (200, True)
        received = house.providers["claude"].received[-1]
        assert received.headers["x-api-key"] == "sk-claude"
        assert "evil" not in str(received.headers) + received.body.decode()


def test_a_model_that_is_a_url_is_none(house: House) -> None:
    answered = house.ask(CHAT, chat("claude-https://elsewhere/x"))
    assert (answered.status, answered.json["error"]["code"]) == (404, "model_not_found")
    assert house.providers["claude"].received == []


# --- Responses and Messages ----------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
def test_responses_are_bridged(house: House, model: str, stream: bool) -> None:
    house.provider(model).play(Reply("It is port 7431.", calls=(CALL,)))
    tools = [{"type": "function"} | LOOK]
    asked = {"model": model, "input": "On which port?", "instructions": "Be brief.", "tools": tools, "stream": stream}
    answered = house.ask(RESPONSES, asked)
    assert answered.status == 200
    if stream:
        said = events(answered)
        assert [event["sequence_number"] for event in said] == list(range(len(said)))
        assert said[0]["type"] == "response.created" and said[-1]["type"] == "response.completed"
        assert answered.body.startswith(b"event: response.created\ndata: ")
        deltas = [event["delta"] for event in said if event["type"] == "response.output_text.delta"]
        assert "".join(deltas) == "It is port 7431."
        response = said[-1]["response"]
    else:
        response = answered.json
    kinds = {item["type"]: item for item in response["output"]}
    assert kinds["message"]["content"][0]["text"] == "It is port 7431."
    assert (kinds["function_call"]["name"], orjson.loads(kinds["function_call"]["arguments"])) == (
        "look",
        {"where": "here"},
    )
    assert "Be brief." in house.provider(model).received[0].body.decode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
def test_messages_are_bridged(house: House, model: str, stream: bool) -> None:
    house.provider(model).play(Reply("It is port 7431.", calls=(CALL,)))
    tools = [{"name": "look", "input_schema": LOOK["parameters"]}]
    messages = [{"role": "user", "content": [{"type": "text", "text": "On which port?"}]}]
    asked = {"model": model, "messages": messages, "system": "Be brief.", "max_tokens": 50, "tools": tools}
    answered = house.ask(MESSAGES, asked | {"stream": stream, "metadata": {"user_id": "u-1"}})
    assert answered.status == 200
    if stream:
        said = events(answered)
        assert [event["type"] for event in said][:2] == ["message_start", "content_block_start"]
        assert said[-1]["type"] == "message_stop"
        assert answered.body.startswith(b"event: message_start\ndata: ")
        deltas = [event["delta"] for event in said if event["type"] == "content_block_delta"]
        text = "".join(delta.get("text", "") for delta in deltas)
        arguments = "".join(delta.get("partial_json", "") for delta in deltas)
        (ending,) = (event for event in said if event["type"] == "message_delta")
        assert ending["usage"]["input_tokens"] > 0
        reason = ending["delta"]["stop_reason"]
    else:
        blocks = {block["type"]: block for block in answered.json["content"]}
        text, arguments = blocks["text"]["text"], orjson.dumps(blocks["tool_use"]["input"]).decode()
        reason = answered.json["stop_reason"]
    assert (text, orjson.loads(arguments), reason) == ("It is port 7431.", {"where": "here"}, "tool_use")
    assert "Be brief." in house.provider(model).received[0].body.decode()


def test_history_that_nobody_holds_is_not_lost_without_a_word(house: House) -> None:
    for held in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
        answered = house.ask(RESPONSES, {"model": "claude-x", "input": "And then?"} | held)
        assert (answered.status, answered.json["error"]["code"]) == (400, "previous_response_not_found")
    assert house.providers["claude"].received == []
    house.providers["gpt"].play("First.", "Second.")
    first = house.ask(RESPONSES, {"model": "gpt-4o", "input": "And first?"}).json["id"]
    assert house.ask(RESPONSES, {"model": "gpt-4o", "input": "And then?", "previous_response_id": first}).status == 200
    assert house.providers["gpt"].received[1].json["previous_response_id"].startswith("resp_")


def test_other_paths_are_not_found(house: House) -> None:
    answered = house.ask("/v1/embeddings", {"model": "claude-x", "input": "x"})
    assert answered.status == 404
    assert "POST /v1/chat/completions, /v1/responses, /v1/messages" in answered.json["error"]["message"]


# --- what goes wrong -----------------------------------------------------------------------------


def error_of(answered: Answered, path: str) -> Json:
    error: Json = answered.json["error"]
    assert (answered.json.get("type") == "error") is (path == MESSAGES)
    return error


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("path", "body"), ON_EACH_WIRE)
@pytest.mark.parametrize("model", MODELS)
def test_a_providers_refusal_keeps_its_status_its_words_and_when_to_come_again(
    house: House, model: str, path: str, body: Json, stream: bool
) -> None:
    for status, text in [(401, "bad key"), (404, "no such model"), (429, "too many"), (400, "odd"), (503, "busy")]:
        house.provider(model).play(Reply(text, status=status, headers={"retry-after": "7"}))
        answered = house.ask(path, {"model": model, "stream": stream} | body)
        assert (answered.status, text in error_of(answered, path)["message"]) == (status, True)
        if status == 429:
            assert answered.headers["retry-after"] == "7"
    assert len(house.provider(model).received) == 5, "nothing is tried again by itself"


def test_codes_are_those_that_clients_know(house: House) -> None:
    codes = []
    for status, text in [
        (401, "x"),
        (404, "x"),
        (429, "x"),
        (400, "prompt is too long: 300000 tokens > 200000 maximum"),
    ]:
        house.providers["claude"].play(Reply(text, status=status))
        codes.append(house.ask(CHAT, chat("claude-x")).json["error"]["code"])
    assert codes == ["invalid_api_key", "model_not_found", "rate_limit_exceeded", "context_length_exceeded"]


@contextmanager
def listening(house: House, path: str, body: Json) -> Iterator[tuple[http.client.HTTPResponse, bytes]]:
    """A streamed answer in the middle of which its provider waits for permits, and what was heard of it."""
    provider = house.provider(body["model"])
    provider.permit(6)
    connection = http.client.HTTPConnection("127.0.0.1", house.proxy.port, timeout=PATIENCE_SECONDS)
    asked = orjson.dumps(body | {"stream": True})
    connection.request("POST", path, asked, as_headers("sk-client", {"x_palimpsest_memory": OFF}))
    response = connection.getresponse()
    heard = b""
    while b"A story" not in heard:
        heard += response.read1()
    yield response, heard
    connection.sock.close()
    response.close()
    connection.close()


@pytest.mark.parametrize(("path", "body"), ON_EACH_WIRE)
@pytest.mark.parametrize("model", MODELS)
def test_a_cut_stream_is_no_whole_one(house: House, model: str, path: str, body: Json) -> None:
    house.provider(model).play(Reply(LONG, cut_after=7, lockstep=True))
    with listening(house, path, {"model": model} | body) as (response, heard):
        house.provider(model).permit()
        with pytest.raises(http.client.IncompleteRead) as cut:
            response.read()
    heard += cut.value.partial
    endings = {CHAT: b"[DONE]", RESPONSES: b"response.completed", MESSAGES: b"message_stop"}
    assert endings[path] not in heard
    assert (b"event: error\n" in heard) is (path != CHAT)


@pytest.mark.parametrize(("path", "body"), ON_EACH_WIRE)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_nobody_there_is_a_502_and_silence_a_504(house: House, path: str, body: Json, stream: bool) -> None:
    answered = house.ask(path, {"model": "dead", "stream": stream} | body)
    assert (answered.status, "asking upstream 'dead'" in error_of(answered, path)["message"]) == (502, True)
    house.providers["gemini"].play(Reply("too late", wait_seconds=60.0))
    answered = house.ask(path, {"model": "gemini_hasty", "stream": stream} | body)
    assert (answered.status, "sent nothing" in error_of(answered, path)["message"]) == (504, True)
    until(lambda: house.providers["gemini"].abandoned == 1, "the provider to be told")


@pytest.mark.parametrize(("path", "body"), ON_EACH_WIRE)
@pytest.mark.parametrize("model", MODELS)
def test_a_client_that_leaves_ends_the_providers_request(house: House, model: str, path: str, body: Json) -> None:
    provider = house.provider(model)
    provider.play(Reply(LONG, lockstep=True))
    with listening(house, path, {"model": model} | body):
        assert provider.abandoned == 0
    until(lambda: provider.abandoned == 1, "the provider to be told")


def test_what_no_provider_could_be_asked_is_refused_as_such(house: House) -> None:
    for path, odd in [(CHAT, {}), (CHAT, {"messages": 7}), (RESPONSES, {}), (MESSAGES, {"messages": 7})]:
        answered = house.ask(path, {"model": "claude-x"} | odd)
        assert (answered.status, bool(error_of(answered, path)["message"])) == (400, True), (path, odd)
    assert house.providers["claude"].received == []


def test_an_answer_that_litellm_cannot_read_is_not_the_clients_fault(house: House) -> None:
    house.providers["claude"].play(Reply(body=b'{"odd": true}'))
    answered = house.ask(CHAT, chat("claude-x"))
    assert (answered.status, answered.json["error"]["code"]) == (500, "upstream_error")
    assert "Traceback" not in answered.json["error"]["message"]


def test_without_a_credential_to_forward_none_of_ours_is_used(house: House) -> None:
    headers = {"content-type": "application/json"}
    answered = request(house.proxy.port, "POST", CHAT, orjson.dumps(chat("gpt-4o")), headers)
    assert (answered.status, answered.json["error"]["code"]) == (401, "invalid_api_key")
    assert house.providers["gpt"].received == []


# --- LiteLLM's own settings ----------------------------------------------------------------------


def test_retries_are_as_many_as_the_settings_say(house: House) -> None:
    claude = house.providers["claude"]
    claude.play(Reply("busy", status=503), Reply("busy", status=503), "At last.")
    assert house.ask(CHAT, chat("claude_stubborn")).text == "At last."
    assert len(claude.received) == 3
    claude.play(Reply("bad key", status=401), "never asked")
    assert house.ask(CHAT, chat("claude_stubborn")).status == 401
    assert len(claude.received) == 4, "what cannot get better is not tried again"


@pytest.mark.parametrize(("path", "body"), ON_EACH_WIRE)
def test_a_fallback_stands_in_with_its_own_key(house: House, path: str, body: Json) -> None:
    house.providers["gpt"].play(Reply("busy", status=503))
    house.providers["claude"].play("I stand in.")
    answered = house.ask(path, {"model": "gpt_spared"} | body)
    assert (answered.status, b"I stand in." in answered.body) == (200, True)
    (received,) = house.providers["claude"].received
    assert (received.json["model"], received.headers["x-api-key"]) == ("claude-spare", "sk-other")


# --- beside the rest of the house ----------------------------------------------------------------


def test_the_list_of_models_names_what_is_served_by_name(house: House) -> None:
    listed = [entry["id"] for entry in house.proxy.get("/v1/models").json["data"]]
    assert {"claude_stubborn", "gpt_spared", "plain"} <= set(listed)
    assert house.proxy.get("/v1/models/claude-any").json["id"] == "claude-any"


def test_memory_is_recalled_into_what_a_litellm_model_is_asked(house: House, key: str) -> None:
    claude = house.providers["claude"]
    told = "The lighthouse keeper's name is Ottoline Marchbanks, and she keeps the spare key."
    claude.play(told, *(f"Harbour fact {number}: ropes are made of hemp, and ships of oak." for number in range(7)))
    talk = Conversation(house.proxy, key, extra={"model": "claude-x", "stream": True})
    talk.say("Who keeps the spare key of the lighthouse at Port Ellery, and what is her name?")
    for number in range(6):
        talk.say(f"Tell me something else about the harbour, number {number}, which is about ships and ropes only.")
    house.proxy.settle(vectors=False)
    talk.keep_last(2, "They talked about a harbour.")
    claude.received.clear()
    answered = talk.say("What was the name of the keeper of the lighthouse at Port Ellery?")
    assert answered.said("event").startswith("compaction:")
    assert int(answered.said("added-tokens")) > 0
    sent = claude.received[-1].body.decode()
    assert BLOCK_OPENS in sent and "Ottoline Marchbanks" in sent.partition(BLOCK_OPENS)[2]
    house.proxy.settle(vectors=False)
    assert told in stored_texts(house.proxy.data)


@pytest.fixture(scope="module")
def wide(shared_upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy in front of one LiteLLM model that recalls from every conversation of a key."""
    litellm = {"name": "gpt", "litellm": "openai/*", "url": shared_upstream.url, "auth": "forward"}
    settings = {"upstreams": [litellm], "memory": {"reach": "tenant"}}
    with Proxy(tmp_path_factory.mktemp("wide") / "data", shared_upstream.url, settings) as running:
        yield running


@pytest.mark.parametrize(("path", "body"), ON_EACH_WIRE)
@pytest.mark.parametrize("stream", [False, True])
def test_request_that_memory_made_too_long_is_sent_once_more_without_it(
    wide: Proxy, upstream: ScriptedUpstream, key: str, path: str, body: Json, stream: bool
) -> None:
    told = "The lighthouse keeper's name is Ottoline Marchbanks, and she keeps the spare key at Port Ellery."
    question = "Who keeps the spare key of the lighthouse at Port Ellery?"
    words = PROVIDERS["openai"]

    def answer(asked: Json) -> Reply | str:
        is_long = BLOCK_OPENS in orjson.dumps(asked).decode()
        return Reply(status=words.status, body=words.said(2345, 2048)) if is_long else "As you said."

    upstream.script = answer
    wide.chat({"model": key, "messages": [{"role": "user", "content": told}]}, key)
    wide.settle()
    upstream.received.clear()
    said = {name: [{"role": "user", "content": question}] for name in body if name in ("messages", "input")}
    asked = orjson.dumps({"model": key, "stream": stream} | body | said)  # of that model no window is known yet
    answered = request(wide.port, "POST", path, asked, as_headers(key, {}))
    assert answered.status == 200 and b"As you" in answered.body
    assert (answered.said("note"), answered.said("added-tokens")) == ("too-long", "0")
    first, second = upstream.received
    assert BLOCK_OPENS in first.body.decode() and BLOCK_OPENS not in second.body.decode()


@pytest.mark.parametrize(("path", "body"), ON_EACH_WIRE[1:])
def test_what_a_litellm_model_says_is_archived_on_every_wire(house: House, path: str, body: Json, key: str) -> None:
    told = f"An answer that was given on {path} and nowhere else, to be kept word for word."
    house.providers["claude"].play(told)
    answered = house.ask(path, {"model": "claude-x", "stream": True} | body, key, x_palimpsest_memory="on")
    assert (answered.status, answered.said("event")) == (200, "start")
    house.proxy.settle(vectors=False)
    assert told in stored_texts(house.proxy.data)


def test_nobodys_words_reach_the_log(house: House) -> None:
    house.providers["claude"].play(Reply("the provider's secret words", status=500))
    house.ask(CHAT, chat("claude-x") | {"messages": [{"role": "user", "content": "the client's secret words"}]})
    house.ask(CHAT, {"model": "claude-x", "messages": 7})
    log = house.proxy.log.read_text()
    assert "secret words" not in log and "Give Feedback" not in log and "sk-" not in log


def test_a_start_without_such_a_model_imports_nothing_of_litellm(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from palimpsest.settings.policy import UpstreamPolicy\n"
        "from palimpsest.upstream.dispatcher import Upstreams\n"
        "async def start():\n"
        "    async with Upstreams([UpstreamPolicy()], {}):\n"
        "        assert not {'litellm', 'httpx', 'openai'} & set(sys.modules)\n"
        "    async with Upstreams([UpstreamPolicy(litellm='ollama/x')], {}):\n"
        "        assert 'litellm' in sys.modules\n"
        "asyncio.run(start())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
