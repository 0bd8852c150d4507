"""An upstream that is dead, slow, cuts the stream or sends garbage; a client that leaves: each side hears the truth."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import Conversation, Proxy, as_headers, free_port, memory_in, rows, stored_texts, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

IMPATIENT = {"upstreams": [{"silence_timeout_seconds": 0.5, "connect_timeout_seconds": 0.5}]}
ENDINGS = "SELECT ending FROM turn ORDER BY id"


@contextmanager
def speaking(raw: bytes) -> Iterator[int]:
    """A server that answers every connection with these bytes, whatever they are; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(raw)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_dead_upstream_is_a_502_that_an_openai_client_understands(tmp_path: Path) -> None:
    with Proxy(tmp_path / "data", f"http://127.0.0.1:{free_port()}/v1") as proxy:
        answered = Conversation(proxy, "sk-one").say("Is anybody there?")
        assert answered.status == 502
        assert set(answered.json["error"]) >= {"message", "type", "code"}
        assert proxy.get("/healthz").status == 200


@pytest.mark.parametrize("status", [400, 413, 422, 429, 503])
def test_what_was_too_long_for_the_model_is_there_when_the_client_has_compacted(
    conversation: Conversation, upstream: ScriptedUpstream, status: int
) -> None:
    talk, script = conversation, upstream.script
    talk.say("Let us plan the move of the archive to its new building.")
    talk.say("First of all we need somebody who counts the shelves.")
    upstream.script = lambda body: Reply("This model's maximum context length is 128000 tokens.", status=status)
    answered = talk.say("The inspector found that the freight elevator takes 3172 kilograms, not more.")
    assert answered.status == status
    upstream.script = script
    talk.proxy.settle(vectors=False)
    del talk.messages[-1]
    talk.keep_last(1, "They plan to move an archive.")
    talk.ask("How many kilograms does the freight elevator take?")
    assert "3172 kilograms" in memory_in(upstream.received[-1].json)


@pytest.mark.parametrize("status", [401, 403])
def test_what_came_with_a_credential_that_is_not_accepted_is_not_kept(
    conversation: Conversation, upstream: ScriptedUpstream, status: int
) -> None:
    conversation.say("Let us plan the move of the archive to its new building.")
    upstream.script = lambda body: Reply("Incorrect API key provided.", status=status)
    conversation.say("The inspector found that nobody may read this sentence again.")
    conversation.proxy.settle(vectors=False)
    assert not any("nobody may read this" in text for text in stored_texts(conversation.proxy.data))


def test_silent_upstream_is_a_504(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play(Reply("too late", wait_seconds=30.0))
    with Proxy(tmp_path / "data", upstream.url, IMPATIENT) as proxy:
        answered = Conversation(proxy, "sk-one").say("Is anybody there?")
        assert answered.status == 504 and answered.json["error"]["message"]
        until(lambda: upstream.abandoned == 1, "the upstream's connection to be closed")


@pytest.mark.parametrize("raw", [b"\x00\xff\x13garbage\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"])
def test_upstream_that_speaks_no_http_is_a_502(tmp_path: Path, raw: bytes) -> None:
    with speaking(raw) as port, Proxy(tmp_path / "data", f"http://127.0.0.1:{port}/v1") as proxy:
        answered = Conversation(proxy, "sk-one").say("Is anybody there?")
        assert answered.status == 502 and answered.json["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"", b"\x00\xff not json", b'{"choices": 7}', b'{"choices": [{"message": null}]}', b"[[[[", b"null"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_garbage_for_an_answer_arrives_as_it_is(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, body: bytes, stream: bool
) -> None:
    kind = "text/event-stream" if stream else "application/json"
    upstream.play(Reply(body=body, headers={"content-type": kind}))
    answered = proxy.chat({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream}, key)
    assert (answered.status, answered.body, answered.broken) == (200, body, False)


@pytest.mark.parametrize(
    "events",
    [
        b"data: {broken json\n\ndata: [DONE]\n\n",
        b": comment\n\nevent: ping\n\ndata:\n\ndata: [DONE]\n\n",
        b'data: {"choices":[{"delta":{"content":"caf\xc3"}}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"delta":{"content":"no end"}}]}',
        b"data: [DONE]\n\ndata: [DONE]\n\ndata: after the end\n\n",
    ],
)
def test_odd_event_streams_arrive_byte_for_byte(
    proxy: Proxy, key: str, upstream: ScriptedUpstream, events: bytes
) -> None:
    upstream.play(Reply(body=events, headers={"content-type": "text/event-stream"}))
    answered = proxy.chat({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}, key)
    assert (answered.body, answered.broken) == (events, False)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_answer_that_the_upstream_cuts_is_cut_for_the_client_and_kept_as_heard(
    own_proxy: Proxy, upstream: ScriptedUpstream, stream: bool
) -> None:
    own_proxy.start()
    talk = Conversation(own_proxy, "sk-one", extra={"stream": stream})
    upstream.play(
        "Welcome to the archive, where every story is kept from its beginning to its end.",
        Reply("The beginning of the story and then it is never told to its end", cut_after=3 if stream else 1),
        "Now the whole story of the archive, as far as it was ever written down by anybody.",
    )
    talk.say("Hello, I have come to the archive to hear a story.")
    assert talk.ask("Tell me the story of the archive.").broken, "a cut must not look like an end"
    until(lambda: rows(own_proxy.data, ENDINGS)[1:] == [("upstream-broke",)], "the ending to be written")
    if stream:
        assert any(text.startswith("The beginning of the story") for text in stored_texts(own_proxy.data))
    again = talk.ask("Tell me the story of the archive.")
    assert (again.status, again.said("event")) == (200, "retry")


def test_client_that_leaves_in_mid_stream_ends_the_upstream_and_what_was_heard_is_kept(
    own_proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    own_proxy.start()
    upstream.play(Reply("Half of a sentence that was on its way to somebody who left", lockstep=True))
    upstream.permit(3)
    body = Conversation(own_proxy, "sk-one", extra={"stream": True}).body({"role": "user", "content": "Tell me more."})
    connection = http.client.HTTPConnection("127.0.0.1", own_proxy.port)
    connection.request("POST", "/v1/chat/completions", orjson.dumps(body), as_headers("sk-one", {}))
    response = connection.getresponse()
    heard = b""
    while b"on its way" not in heard:
        heard += response.read1()
    connection.sock.close()
    response.close()
    connection.close()
    until(lambda: upstream.abandoned == 1, "the upstream to be told")
    until(lambda: rows(own_proxy.data, ENDINGS) == [("client-gone",)], "the ending to be written")
    assert "Half of a sentence that was on its way to somebod"[:40] in " ".join(stored_texts(own_proxy.data))


def test_refused_request_leaves_no_content(own_proxy: Proxy, upstream: ScriptedUpstream) -> None:
    own_proxy.start()
    upstream.play(Reply(status=401, body=b'{"error": {"message": "who are you?"}}'), "welcome to the archive")
    refused = Conversation(own_proxy, "sk-wrong").say("A text that a stranger sent without a valid credential.")
    assert (refused.status, refused.json["error"]["message"]) == (401, "who are you?")
    Conversation(own_proxy, "sk-right").say("A text that came with a valid credential.")
    own_proxy.settle(vectors=False)
    stored = stored_texts(own_proxy.data)
    assert "A text that came with a valid credential." in stored
    assert not any("stranger" in text for text in stored)
    assert rows(own_proxy.data, "SELECT count(*) FROM tenant") == [(1,)]
