"""A conversation that outgrows its model's window, through the running proxy, on each wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.evaluation.scripted.rules import violations
from palimpsest.wire.trimming import STUB

from tests.overflowing import CHAT, MESSAGES, RESPONSES
from tests.refusals import PROVIDERS, prompt_tokens, within
from tests.running import Answered, Proxy, as_headers, memory_in, own_texts, request, rows, texts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_only")]

WINDOW_TOKENS = 6000
TRIM: Json = {"overflow": "trim"}
FACT = "The gate code of the harbour warehouse in Trieste is KESTREL-4471, and Marta keeps the spare key."
QUESTION = "What is the gate code of the harbour warehouse in Trieste?"
LAST = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input"}
WORDS = "harbour lantern copper meadow velvet timber cascade anchor prism quartz saddle ember tunnel willow granite"


@pytest.fixture
def trimming(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    with Proxy(tmp_path / "data", upstream.url, TRIM) as running:
        yield running


class Talk:
    """A client that keeps all of its history, on any wire."""

    def __init__(self, proxy: Proxy, path: str, key: str, model: str = "local-model", **extra: Any) -> None:
        self.proxy, self.path, self.key, self.extra = proxy, path, key, extra
        self.model, self.history = model, list[Json]()
        self.refused, self.listing = 0, LISTING

    def body(self) -> Json:
        limit = {"max_tokens": 300} if self.path == MESSAGES else {}
        return {"model": self.model, LAST[self.path]: self.history, **limit, **self.extra}

    def say(self, text: str) -> Answered:
        """Say something, and answer all calls of the model's."""
        self.history.append({"role": "user", "content": text})
        while True:
            answered = self.send(self.path)
            self.refused += answered.status != 200
            if answered.status != 200 or not self._answer(answered.json):
                return answered

    def send(self, path: str) -> Answered:
        return request(self.proxy.port, "POST", path, orjson.dumps(self.body()), as_headers(self.key, {}))

    def _answer(self, told: Json) -> bool:
        """Keep what the model said, and the results of its calls; whether there were any."""
        if self.path == CHAT:
            message = told["choices"][0]["message"]
            calls = message.get("tool_calls") or []
            results = [{"role": "tool", "tool_call_id": call["id"], "content": self.listing} for call in calls]
            self.history += [{k: v for k, v in message.items() if v is not None}, *results]
        elif self.path == MESSAGES:
            calls = [part for part in told["content"] if part["type"] == "tool_use"]
            self.history.append({"role": "assistant", "content": told["content"]})
            results = [{"type": "tool_result", "tool_use_id": call["id"], "content": self.listing} for call in calls]
            self.history += [{"role": "user", "content": results}] if results else []
        else:
            calls = [item for item in told["output"] if item["type"] == "function_call"]
            self.history += told["output"]
            self.history += [
                {"type": "function_call_output", "call_id": call["call_id"], "output": self.listing} for call in calls
            ]
        return bool(calls)


LISTING = "\n".join(f"crate {number} of the east pier: {WORDS}" for number in range(6))


def strict(path: str, window_tokens: int = WINDOW_TOKENS) -> Callable[[Json], Reply | str]:
    """A provider that refuses what is too long or out of order, and calls a tool where it is asked to."""
    calls = 0

    def say(asked: Json) -> Reply | str:
        nonlocal calls
        if wrong := violations(path, asked):
            return Reply(f"invalid: {wrong[0]}", status=400)
        last = (asked.get("messages") or asked.get("input"))[-1]
        if last.get("role") == "user" and "crates" in texts({"messages": [last]}):
            calls += 1
            arguments = orjson.dumps({"pier": f"{calls} {WORDS}"}).decode()
            return Reply(
                calls=(ToolCall(f"call_{calls}", "list_crates", arguments),), prompt_tokens=prompt_tokens(asked)
            )
        return Reply(f"As for that: {WORDS}.", prompt_tokens=prompt_tokens(asked))

    words = PROVIDERS["anthropic" if path == MESSAGES else "llama.cpp"]
    return within(window_tokens, words, say)


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_conversation_of_many_windows_meets_no_error_and_loses_nothing(
    trimming: Proxy, upstream: ScriptedUpstream, key: str, path: str
) -> None:
    upstream.script = strict(path)
    talk = Talk(trimming, path, key)
    assert talk.say("We keep the log of the move here.").status == talk.say(FACT).status == 200
    for turn in range(60):
        answered = talk.say(f"Turn {turn}: which crates are there? {WORDS * 6}")
        assert answered.status == 200, answered.body
    assert len(orjson.dumps(talk.history)) / 4 > 4 * WINDOW_TOKENS, "it has grown far beyond"
    assert int(answered.said("trimmed-tokens")) > 3 * WINDOW_TOKENS
    trimming.settle(vectors=False)
    asked = talk.say(QUESTION)
    got = upstream.received[-1].json
    assert asked.status == 200 and FACT in texts(got)
    assert trimming.metric("palimpsest_overflow_total", what="cut") >= 4
    cuts, repeated = (trimming.metric("palimpsest_overflow_total", what=what) for what in ("cut", "repeated"))
    assert repeated > 2 * cuts
    told = orjson.loads(trimming.get(f"/memory/v1/turns/{asked.said('turn')}").body)
    assert told["explain"]["overflow"]["dropped"] > 0


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_result_longer_than_the_window_meets_no_error_and_keeps_both_ends(
    trimming: Proxy, upstream: ScriptedUpstream, key: str, path: str
) -> None:
    upstream.script = strict(path)
    talk = Talk(trimming, path, key)
    talk.listing = f"first crate\n{LISTING * 70}\nlast crate"
    assert len(talk.listing) / 4 > 2 * WINDOW_TOKENS
    for turn in range(3):
        answered = talk.say(f"Turn {turn}: which crates are there?")
        assert answered.status == 200, answered.body
        got = texts(upstream.received[-1].json)
        assert "first crate" in got and "last crate" in got and "it is longer than the context window" in got
    refused = [got for got in upstream.received if prompt_tokens(got.json) > WINDOW_TOKENS]
    assert len(refused) == 1, "the first refusal told the window"


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        (
            MESSAGES,
            "input length and `max_tokens` exceed context limit: {n} + {b} > {w}, decrease input length or "
            "`max_tokens` and try again",
        ),
        (
            CHAT,
            "This model's maximum context length is {w} tokens. However, you requested {b} output tokens and your "
            "prompt contains at least {n} input tokens, for a total of at least {t} tokens.",
        ),
    ],
)
def test_answer_that_is_too_long_is_reduced_and_the_history_stays(
    trimming: Proxy, upstream: ScriptedUpstream, key: str, path: str, refusal: str
) -> None:
    window, wanted = 20_000, 9000

    def script(asked: Json) -> Reply:
        tokens, answer = int(prompt_tokens(asked) * 0.62), asked["max_tokens"]  # some 1.1 times fewer than we count
        if tokens + answer <= window:
            return Reply("As you said.", prompt_tokens=tokens)
        said = refusal.format(n=tokens, b=answer, w=window, t=tokens + answer)
        return Reply(status=400, body=orjson.dumps({"type": "error", "error": {"message": said}}))

    upstream.script = script
    talk = Talk(trimming, path, key, model="gpt-4o", max_tokens=wanted)
    for number in range(100):
        role = "assistant" if number % 2 else "user"
        talk.history.append({"role": role, "content": f"Number {number}. {WORDS * 8}"})
    talk.history.append({"role": "user", "content": "And now?"})
    assert talk.send(path).status == 200
    refused, sent = (got.json for got in upstream.received)
    assert sent["messages"] == refused["messages"] == talk.history and sent["max_tokens"] < wanted


def test_what_the_user_said_first_stays_and_what_was_cut_comes_back(
    trimming: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    upstream.script = strict(CHAT)
    talk = Talk(trimming, CHAT, key)
    talk.say("We plan the move of the warehouse, and this is our log of it.")
    talk.say(FACT)
    for turn in range(30):
        talk.say(f"Turn {turn}: {WORDS * 14}")
    trimming.settle(vectors=False)
    assert talk.say(QUESTION).status == 200
    got = upstream.received[-1].json
    assert "this is our log" in own_texts(got) and FACT not in own_texts(got) and FACT in memory_in(got)


@pytest.mark.parametrize("is_learnt", [False, True], ids=["told", "learnt"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_cut_is_the_same_after_a_restart_and_for_counting(
    upstream: ScriptedUpstream, key: str, path: str, is_learnt: bool, tmp_path: Path
) -> None:
    upstream.script = strict(path)
    settings = TRIM if is_learnt else TRIM | {"pressure": {"window_tokens": {"local-*": WINDOW_TOKENS}}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        named = {"metadata": {"user_id": "ann"}} if path == MESSAGES and is_learnt else {}
        talk = Talk(proxy, path, key, **named)
        while True:
            answered = talk.say(f"{len(talk.history)}: which crates are there? {WORDS * 3}")
            before = upstream.received[-1].json
            if int(answered.said("trimmed-tokens") or 0):
                break
        proxy.settle(vectors=False)
        proxy.stop()
        proxy.start()
        assert talk.say("Which of them is the heaviest?").status == 200
        after = upstream.received[-1].json
        listed = LAST[path]
        assert after[listed][: len(before[listed])] == before[listed], "nothing moved in front"
        refused = [got for got in upstream.received if prompt_tokens(got.json) > WINDOW_TOKENS]
        assert len(refused) == is_learnt, "the window is told once, and known after the restart"
        if path == MESSAGES:
            talk.extra = {}  # what is only counted has no place for a user
            counted = talk.send(f"{path}/count_tokens")
            got = upstream.received[-1].json[listed]
            assert counted.status == 200 and STUB in str(got)
            own = [message for message in after[listed] if not memory_in({listed: [message]})]
            assert all(message in got for message in own)


def test_window_is_learnt_from_the_refusal_and_the_request_is_sent_again_shorter(
    trimming: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    upstream.script = strict(CHAT)
    talk = Talk(trimming, CHAT, key, "brand-new")
    talk.history = [
        {"role": role, "content": f"{at}: {WORDS * 6}"} for at in range(30) for role in ("user", "assistant")
    ]
    answered = talk.say("And now?")
    assert answered.status == 200 and len(upstream.received) == 2
    assert answered.said("note") == "too-long" and int(answered.said("trimmed-tokens")) > 0
    first, second = upstream.received
    assert len(second.body) < len(first.body) / 2 and violations(CHAT, second.json) == []
    talk.say("And then?")
    assert len(upstream.received) == 3, "the window is known by now"
    kept = len(second.json["messages"])
    assert [m["content"] for m in upstream.received[-1].json["messages"]][: kept - 1] == [
        m["content"] for m in second.json["messages"]
    ][:-1]


@pytest.mark.parametrize("names_prompt", [True, False], ids=["counts", "silent"])
@pytest.mark.parametrize("is_learnt", [False, True], ids=["told", "learnt"])
def test_prompt_that_was_counted_too_low_is_sent_again_shorter_and_its_window_holds(
    upstream: ScriptedUpstream, key: str, is_learnt: bool, names_prompt: bool, tmp_path: Path
) -> None:
    words = PROVIDERS["vllm" if names_prompt else "litellm"]
    sizes, refused = list[int](), 0

    def say(asked: Json) -> Reply:
        nonlocal refused
        tokens = len(orjson.dumps(asked)) // 3  # a third more than by our count
        sizes.append(tokens + asked.get("max_tokens", 0))
        refused += sizes[-1] > WINDOW_TOKENS
        if sizes[-1] > WINDOW_TOKENS:
            return Reply(status=words.status, body=words.said(tokens, WINDOW_TOKENS))
        return Reply("So it is.", prompt_tokens=tokens)

    upstream.script = say
    settings = TRIM if is_learnt else TRIM | {"pressure": {"window_tokens": {"local-*": WINDOW_TOKENS}}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        talk = Talk(proxy, CHAT, key, max_tokens=WINDOW_TOKENS * 3 // 4)
        for turn in range(16):
            before = len(sizes)
            answered = talk.say(f"{turn}: {WORDS * 5}")
            assert answered.status == 200, answered.body
            if len(sizes) - before > 1:
                assert sizes[-1] < sizes[-2] and answered.said("note") == "too-long"
        assert 1 <= refused <= (2 if names_prompt else 6), "what is refused teaches how to count"
        other = Talk(proxy, CHAT, key, max_tokens=WINDOW_TOKENS // 4)
        other.history.append({"role": "user", "content": WORDS * 60})
        other.say("Another conversation has all of the window.")
        assert upstream.received[-1].body == orjson.dumps(other.body() | {"messages": other.history[:2]})


def test_number_that_a_refusal_quotes_teaches_nothing_about_tokens(
    trimming: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    upstream.script = lambda _: "As you said."
    talk = Talk(trimming, CHAT, key)
    talk.history.append({"role": "user", "content": WORDS * 100})
    before = talk.send(CHAT)
    said = b"This model's maximum context length is 128000 tokens. You wrote: given: 100,000 subscribers"
    upstream.play(Reply(status=400, body=said))
    talk.send(CHAT)
    upstream.script = lambda _: "As you said."
    assert 0 < float(before.said("pressure")) == float(talk.send(CHAT).said("pressure"))


def test_long_answer_is_asked_for_no_longer_than_the_window(
    upstream: ScriptedUpstream, key: str, tmp_path: Path
) -> None:
    settings = TRIM | {"pressure": {"window_tokens": {"local-*": WINDOW_TOKENS}}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        talk = Talk(proxy, CHAT, key, max_tokens=WINDOW_TOKENS - 100, temperature=0.50)
        answered = talk.say(f"Hello. {WORDS * 8}")
    got = upstream.received[-1]
    limit = got.json["max_tokens"]
    assert limit == int(answered.said("reply-tokens")) < WINDOW_TOKENS - 100
    sent = orjson.dumps(talk.body() | {"messages": talk.history[:1]})
    assert got.body == sent.replace(b'"max_tokens":5900', f'"max_tokens":{limit}'.encode())


@pytest.mark.parametrize("policy", ["forward", "observe"])
def test_request_is_forwarded_as_it_is_unless_the_policy_says_trim(
    upstream: ScriptedUpstream, key: str, policy: str, tmp_path: Path
) -> None:
    settings = {"overflow": policy, "pressure": {"window_tokens": {"local-*": WINDOW_TOKENS}}}
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy:
        talk = Talk(proxy, CHAT, key)
        for turn in range(30):
            talk.history += ({"role": role, "content": f"{turn}: {WORDS * 6}"} for role in ("user", "assistant"))
        answered = talk.say("And now?")
    assert upstream.received[-1].json["messages"] == talk.history[:61]
    assert not answered.said("trimmed-tokens")
    assert bool(answered.said("would-trim-tokens")) == (policy == "observe")


def test_cut_goes_with_its_conversation(trimming: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    upstream.script = strict(CHAT)
    talk = Talk(trimming, CHAT, key)
    for turn in range(30):
        answered = talk.say(f"{turn}: {WORDS * 14}")
    trimming.settle(vectors=False)
    assert b'"cut"' in heads(trimming)
    asked = orjson.dumps({"conversation": answered.said("conversation")})
    gone = request(trimming.port, "POST", "/memory/v1/forget", asked, as_headers(key, {}))
    assert gone.status == 200, gone.body
    assert b'"cut"' not in heads(trimming)


def heads(proxy: Proxy) -> bytes:
    return "".join(state for (state,) in rows(proxy.data, "SELECT state FROM head")).encode()
