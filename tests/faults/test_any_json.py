"""Any JSON on any wire: the upstream gets the client's bytes, the client the upstream's, and nothing of ours breaks."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.wire.registry import WIRES

from tests.examples import examples
from tests.running import Proxy, as_headers, request

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(
    ("model", "messages", "input", "instructions", "system", "tools", "role", "content", "type", "text", "id")
) | st.sampled_from(
    ("name", "call_id", "tool_use_id", "tool_call_id", "tool_calls", "function", "arguments", "output", "source", "url")
)
WORDS = st.sampled_from(
    ("user", "assistant", "system", "developer", "tool", "text", "input_text", "image_url", "tool_use", "tool_result")
) | st.sampled_from(
    ("message", "reasoning", "function_call", "function_call_output", "compaction", "compaction_trigger", "thinking")
)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=5),
    max_leaves=15,
)
SAID = st.lists(
    st.fixed_dictionaries({"role": WORDS}, optional={"content": WORDS | VALUES, "type": WORDS, "call_id": WORDS})
    | st.dictionaries(NAMES, VALUES, max_size=5)
    | VALUES,
    max_size=5,
)
HELD = st.fixed_dictionaries({}, optional={"previous_response_id": VALUES, "conversation": VALUES, "thread": VALUES})
BODIES = VALUES | st.builds(
    lambda said, more, held: {"messages": said, "input": said} | more | held,
    SAID,
    st.dictionaries(NAMES, VALUES, max_size=3),
    HELD,
)
OURS = ("pipeline", "archivist", "journal", "history", "recall")  # where a fault would be ours; `unreadable` is none
PATHS = [path for path in WIRES if not path.endswith("/compact")]  # that one the scripted provider answers by itself
QUICK = {"max_examples": examples(60), "deadline": None, "suppress_health_check": list(HealthCheck)}


def faults(proxy: Proxy) -> float:
    return sum(proxy.metric("palimpsest_faults_total", where=where) for where in OURS)


@pytest.mark.parametrize("path", PATHS)
def test_any_json_passes_and_breaks_nothing(proxy: Proxy, key: str, upstream: ScriptedUpstream, path: str) -> None:
    before = faults(proxy)

    @settings(**QUICK)
    @given(BODIES, BODIES)
    @example({"input": [], "messages": []}, {"output": [], "content": [], "choices": []})
    def passes(asked: Any, said: Any) -> None:
        body, answer = json.dumps(asked).encode(), json.dumps(said).encode()
        upstream.script = lambda _: Reply(body=answer)
        got = request(proxy.port, "POST", path, body, as_headers(key, {}))
        assert got.said("added-tokens") in ("", "0") and upstream.received[-1].body == body
        assert (got.status, got.body) == (200, answer) or got.status >= 400, "the scripted provider may refuse ids"

    passes()
    proxy.settle(vectors=False)
    assert faults(proxy) == before


def events_of(said: bytes) -> bytes:
    return b"".join(b"event: message\ndata: " + line + b"\n\n" for line in said.splitlines())


@pytest.mark.parametrize("path", PATHS)
def test_any_event_is_streamed_as_it_came(proxy: Proxy, key: str, upstream: ScriptedUpstream, path: str) -> None:
    before = faults(proxy)
    asked = orjson.dumps({"model": "m", "stream": True, "messages": [{"role": "user"}], "input": "hi"})

    @settings(**QUICK)
    @given(st.lists(VALUES, max_size=4))
    def passes(said: list[Any]) -> None:
        sent = events_of(b"\n".join(json.dumps(event).encode() for event in said))
        upstream.script = lambda _: Reply(body=sent, headers={"content-type": "text/event-stream"})
        assert request(proxy.port, "POST", path, asked, as_headers(key, {})).body == sent

    passes()
    proxy.settle(vectors=False)
    assert faults(proxy) == before
