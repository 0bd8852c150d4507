"""What memory adds never makes a request fail: refused for its length, it goes once more as the client sent it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.refusals import PROVIDERS, Words, within
from tests.running import BLOCK_OPENS, Answered, Proxy, as_headers, request, rows, texts

pytestmark = pytest.mark.slow

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PASS = "The gate code of the harbour warehouse in Trieste is KESTREL-4471, and Marta keeps the spare key."
QUESTION = "What is the gate code of the harbour warehouse in Trieste?"
WIDE = {"memory": {"reach": "tenant"}}


@pytest.fixture(scope="module")
def wide(shared_upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(tmp_path_factory.mktemp("wide") / "data", shared_upstream.url, WIDE) as running:
        yield running


@pytest.fixture
def model() -> str:
    """A model that nobody has asked for yet: what is learnt of it stays with one test."""
    return f"m-{uuid4().hex}"


@pytest.fixture
def told(wide: Proxy, upstream: ScriptedUpstream, key: str, model: str) -> str:
    """The key of somebody who told something in an earlier conversation."""
    upstream.script = lambda _: "Noted."
    wide.chat({"model": model, "messages": [{"role": "user", "content": PASS}]}, key)
    wide.settle()
    upstream.received.clear()
    return key


def refuses_blocks(words: Words) -> object:
    """A script that finds every request with a block in it too long."""

    def answer(asked: Json) -> Reply | str:
        if BLOCK_OPENS in orjson.dumps(asked).decode():
            return Reply(status=words.status, body=words.said(2345, 2048))
        return "As you said."

    return answer


def asking(path: str, model: str, stream: bool = False) -> Json:
    said = [{"role": "user", "content": QUESTION}]
    body: Json = {"model": model, "stream": stream, "max_tokens": 50}
    return body | ({"input": said} if path == RESPONSES else {"messages": said})


def ask(proxy: Proxy, key: str, body: Json, path: str = CHAT, **headers: str) -> Answered:
    return request(proxy.port, "POST", path, orjson.dumps(body), as_headers(key, headers))


def explained(proxy: Proxy, answered: Answered) -> Json:
    found = rows(
        proxy.data,
        "SELECT turn.explain FROM turn JOIN conversation ON conversation.id = turn.conversation"
        f" WHERE conversation.public = '{answered.said('conversation')}' ORDER BY turn.id DESC LIMIT 1",
    )
    told: Json = orjson.loads(found[0][0])
    return told


def blocks(proxy: Proxy, answered: Answered) -> int:
    """Blocks of a conversation that would be repeated."""
    found = rows(
        proxy.data,
        "SELECT count(*) FROM block JOIN conversation ON conversation.id = block.conversation"
        f" WHERE conversation.public = '{answered.said('conversation')}' AND block.shed = 0",
    )
    return int(found[0][0])


def test_question_gets_a_block_where_nobody_refuses_it(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str
) -> None:
    answered = ask(wide, told, asking(CHAT, model))
    assert int(answered.said("added-tokens")) > 0 and float(answered.said("added-share")) > 0
    assert BLOCK_OPENS in texts(upstream.received[-1].json)
    assert explained(wide, answered)["added"]["tokens"] == int(answered.said("added-tokens"))
    assert blocks(wide, answered) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_refused_block_is_taken_out_and_the_client_gets_its_answer(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str, provider: str
) -> None:
    upstream.script = refuses_blocks(PROVIDERS[provider])  # type: ignore[assignment]
    before = wide.metric("palimpsest_too_long_total")
    body = asking(CHAT, model)
    answered = ask(wide, told, body)
    assert answered.status == 200 and answered.text == "As you said."
    assert (answered.said("note"), answered.said("added-tokens")) == ("too-long", "0")
    assert (answered.said("added-share"), answered.said("recalled")) == ("0.00", "0")
    first, second = upstream.received
    assert BLOCK_OPENS in texts(first.json) and second.body == orjson.dumps(body)
    assert wide.metric("palimpsest_too_long_total") == before + 1
    assert wide.metric("palimpsest_too_long_tokens_total") > 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_refused_block_is_taken_out_on_every_wire(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str, path: str, stream: bool
) -> None:
    upstream.script = refuses_blocks(PROVIDERS["anthropic" if path == MESSAGES else "openai"])  # type: ignore[assignment]
    body = asking(path, model, stream)
    answered = ask(wide, told, body, path)
    assert answered.status == 200 and b"As you" in answered.body
    assert answered.said("note") == "too-long"
    assert len(upstream.received) == 2 and upstream.received[-1].body == orjson.dumps(body)


@pytest.mark.parametrize(
    ("path", "opening"),
    [
        (CHAT, b": OPENROUTER PROCESSING\n\n"),
        (
            RESPONSES,
            b'event: response.created\ndata: {"type":"response.created","response":{"id":"r"}}\n\n'
            b'event: response.in_progress\ndata: {"type":"response.in_progress","response":{"id":"r"}}\n\n',
        ),
        (MESSAGES, b""),
    ],
)
def test_refusal_inside_a_stream_is_noticed_before_any_of_it_is_passed_on(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str, path: str, opening: bytes
) -> None:
    error = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
    failed = {"type": "response.failed", "response": {"error": error}} if path == RESPONSES else {"error": error}
    kind = b"response.failed" if path == RESPONSES else b"error"
    stream = opening + b"event: %s\ndata: %s\n\n" % (kind, orjson.dumps(failed))

    def answer(asked: Json) -> Reply | str:
        if BLOCK_OPENS in orjson.dumps(asked).decode():
            return Reply(body=stream, headers={"content-type": "text/event-stream"})
        return "As you said."

    upstream.script = answer
    answered = ask(wide, told, asking(path, model, stream=True), path)
    assert b"As you" in answered.body and b"context_length" not in answered.body
    assert answered.said("note") == "too-long" and len(upstream.received) == 2


def test_turn_is_archived_as_it_was_sent_in_the_end_and_its_blocks_are_not_repeated(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str
) -> None:
    upstream.script = refuses_blocks(PROVIDERS["openai responses"])  # type: ignore[assignment]
    body = asking(CHAT, model)
    answered = ask(wide, told, body)
    stored = explained(wide, answered)
    assert stored["note"] == "too-long" and stored["added"]["tokens"] == 0 and "block" not in stored
    assert blocks(wide, answered) == 0
    upstream.received.clear()
    body["messages"] += [{"role": "assistant", "content": answered.text}, {"role": "user", "content": QUESTION}]
    again = ask(wide, told, body)
    assert again.said("conversation") == answered.said("conversation") and again.said("event") == "append"
    assert [got.body for got in upstream.received] == [orjson.dumps(body)]  # the window is known by now


def test_blocks_of_before_that_become_too_much_are_not_repeated(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str
) -> None:
    body = asking(CHAT, model)
    answered = ask(wide, told, body)
    assert blocks(wide, answered) == 1
    upstream.script = refuses_blocks(PROVIDERS["bedrock"])  # type: ignore[assignment]
    body["messages"] += [{"role": "assistant", "content": answered.text}, {"role": "user", "content": "Thanks a lot."}]
    upstream.received.clear()
    again = ask(wide, told, body)
    assert again.status == 200 and again.said("note") == "too-long"
    assert BLOCK_OPENS in texts(upstream.received[0].json) and upstream.received[1].body == orjson.dumps(body)
    assert blocks(wide, again) == 0
    body["messages"] += [{"role": "assistant", "content": again.text}, {"role": "user", "content": "Good night."}]
    upstream.received.clear()
    ask(wide, told, body)
    assert [got.body for got in upstream.received] == [orjson.dumps(body)]


def test_request_that_is_too_long_by_itself_gets_the_refusal_of_its_own_bytes(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str
) -> None:
    words = PROVIDERS["openai"]
    sizes: list[int] = []

    def answer(asked: Json) -> Reply:
        sizes.append(len(orjson.dumps(asked)))
        return Reply(status=400, body=words.said(sizes[-1], 2048))

    upstream.script = answer
    answered = ask(wide, told, asking(CHAT, model))
    assert answered.status == 400 and answered.body == words.said(sizes[1], 2048) and sizes[1] < sizes[0]
    assert answered.said("note") == "too-long"


@pytest.mark.parametrize("status", [400, 429, 500])
@pytest.mark.parametrize("size", [0, 1_000_000])
def test_other_error_passes_byte_for_byte(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str, status: int, size: int
) -> None:
    body = b'{"error":{"message":"no such tool","code":"invalid_value"},"more":"%s"}' % (b"x" * size)
    upstream.play(Reply(status=status, body=body, headers={"x-provider": "yes"}))
    answered = ask(wide, told, asking(CHAT, model))
    assert (answered.status, answered.body, answered.headers["x-provider"]) == (status, body, "yes")
    assert len(upstream.received) == 1 and int(answered.said("added-tokens")) > 0


def test_request_to_which_nothing_was_added_is_not_sent_twice(
    wide: Proxy, upstream: ScriptedUpstream, key: str, model: str
) -> None:
    body = PROVIDERS["openai"].said(9, 8)
    upstream.play(Reply(status=400, body=body))
    answered = ask(wide, key, asking(CHAT, model))
    assert (answered.status, answered.body, len(upstream.received)) == (400, body, 1)


def test_read_only_request_is_sent_once_more_and_leaves_nothing(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str
) -> None:
    upstream.script = refuses_blocks(PROVIDERS["openai"])  # type: ignore[assignment]
    answered = ask(wide, told, asking(CHAT, model), x_palimpsest_memory="read-only")
    assert answered.status == 200 and answered.said("note") == "too-long"
    assert rows(wide.data, f"SELECT 1 FROM conversation WHERE public = '{answered.said('conversation')}'") == []


def test_window_that_a_list_of_models_names_is_learnt(
    wide: Proxy, upstream: ScriptedUpstream, key: str, model: str
) -> None:
    upstream.script = lambda _: "Hello."
    body = asking(CHAT, model)
    before = float(ask(wide, key, body).said("pressure"))
    upstream.windows[model] = 100
    assert model.encode() in wide.get("/v1/models").body
    after = float(ask(wide, key, body).said("pressure"))
    assert before < 0.01 < after


@pytest.mark.parametrize("provider", ["vllm", "ollama"])
def test_long_chat_against_a_small_window_has_no_refusal_of_ours(
    wide: Proxy, upstream: ScriptedUpstream, told: str, model: str, provider: str
) -> None:
    """The client keeps its own prompt within the window, and asks again and again for what memory knows."""
    window = 1024
    upstream.script = within(window, PROVIDERS[provider], lambda asked: f"{PASS} {'That is all. ' * 12}")
    history: list[Json] = []
    notes = []
    for number in range(24):
        history.append({"role": "user", "content": f"{QUESTION} I ask for the {number}th time today."})
        while len(orjson.dumps({"model": model, "messages": history})) // 4 > window - 20:
            del history[:2]
        answered = ask(wide, told, {"model": model, "messages": history})
        assert answered.status == 200
        notes.append(answered.said("note"))
        history.append({"role": "assistant", "content": answered.text})
    assert notes.count("too-long") == 1  # then the window is known
