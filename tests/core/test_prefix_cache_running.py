"""What requests cost, through the running proxy: on every API, streamed or not, and why a cache was rebuilt."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Conversation, Proxy, as_headers, database, request, rows, upstream_on_a_thread

pytestmark = pytest.mark.slow

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
LOG = {"log": {"format": "json"}}
IDLE_SECONDS = 1_000.0


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with upstream_on_a_thread() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, upstream: ScriptedUpstream) -> Iterator[Proxy]:
    """One for all; each test has a credential, and so a tenant, of its own."""
    with Proxy(tmp_path_factory.mktemp("costs") / "data", upstream.url, LOG) as proxy:
        yield proxy


def test_a_receipt_can_be_read_before_anything_was_asked(proxy: Proxy) -> None:
    assert costs(proxy) == [] and "no request" in stats(proxy)


def costs(proxy: Proxy, asked: str = "") -> list[Json]:
    found: list[Json] = proxy.get(f"/memory/v1/costs?{asked}").json["costs"]
    return found


def shown(proxy: Proxy, turn: str) -> Json:
    found: Json = proxy.get(f"/memory/v1/turns/{turn}").json
    return found


def cause(proxy: Proxy, turn: str) -> str | None:
    found: str | None = shown(proxy, turn)["rebuild"]
    return found


def ask(proxy: Proxy, key: str, wire: str, messages: list[Json], stream: bool) -> str:
    """One request; the id of its turn."""
    body: Json = {"model": "m", "stream": stream, "max_tokens": 100}
    body |= {"input": messages} if wire == "responses" else {"messages": messages}
    if wire == "chat" and stream:
        body["stream_options"] = {"include_usage": True}
    got = request(proxy.port, "POST", PATHS[wire], orjson.dumps(body), as_headers(key, {}))
    assert got.status == 200, got.body
    return got.said("turn")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", PATHS)
def test_what_each_api_says_of_the_cache_is_told(
    proxy: Proxy, upstream: ScriptedUpstream, wire: str, stream: bool
) -> None:
    replies = [
        Reply("The first answer, long enough to be known again when it comes back later.", prompt_tokens=5_000),
        Reply("The second.", prompt_tokens=6_000, cache_read_tokens=4_992),
    ]
    if wire == "messages":
        replies = [
            Reply(replies[0].text, prompt_tokens=5_000, cache_write_tokens=4_000),
            Reply("The second.", prompt_tokens=6_000, cache_read_tokens=4_000, cache_write_tokens=1_500),
        ]
    elif wire == "chat":
        replies[0] = Reply(replies[0].text, prompt_tokens=5_000, cache_read_tokens=0)
    upstream.script = lambda body: replies[len(body.get("input") or body["messages"]) > 1]
    messages: list[Json] = [{"role": "user", "content": "Where does the archive stand, and who has the key to it?"}]
    first = ask(proxy, f"sk-{wire}-{stream}", wire, messages, stream)
    messages += [{"role": "assistant", "content": replies[0].text}, {"role": "user", "content": "And then?"}]
    second = ask(proxy, f"sk-{wire}-{stream}", wire, messages, stream)
    assert (cause(proxy, first), cause(proxy, second)) == ("first", "none")
    (day,) = costs(proxy, f"tenant={shown(proxy, first)['tenant']}")
    written = 5_500 if wire == "messages" else None
    assert (day["input_tokens"], day["cache_read_tokens"]) == (11_000, 4_000 if written else 4_992)
    assert day["cache_write_tokens"] == written and day["unknown"] == 0
    lines = [orjson.loads(line) for line in proxy.log.read_text().splitlines() if line.startswith("{")]
    told = [line for line in lines if line.get("turn") in (first, second) and line["event"] == "request"]
    assert [line["cache_rebuild"] for line in told] == ["first", "none"]
    assert [line["input_tokens"] for line in told] == [5_000, 6_000]
    assert told[0]["rebuilt_tokens"] == 5_000 and told[1]["cache_read_tokens"] == day["cache_read_tokens"]


def test_what_a_provider_does_not_say_is_unknown_and_not_zero(proxy: Proxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: Reply("An answer without a word about any cache.", prompt_tokens=5_000)
    turn = shown(proxy, Conversation(proxy, "sk-silent").say("hello").said("turn"))
    assert turn["prompt_tokens"] == 5_000
    assert turn["cache_read_tokens"] is turn["cache_write_tokens"] is turn["rebuild"] is turn["rebuilt_tokens"] is None
    (day,) = costs(proxy, f"tenant={turn['tenant']}")
    assert (day["requests"], day["counted"], day["cache_told"], day["unknown"]) == (1, 1, 0, 1)
    assert day["cache_read_tokens"] is None and set(day["rebuilds"].values()) == {0}
    assert "unknown 1" in stats(proxy) and proxy.metric("palimpsest_cache_rebuilds_total", cause="unknown") == 1


def stats(proxy: Proxy, *options: str) -> str:
    ended = palimpsest("stats", "--cost", "--data", str(proxy.data), *options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


class Provider:
    """Counts the prompt, and says that it had none of it, or all that was sent before, in its cache."""

    def __init__(self) -> None:
        self.has_cache = True
        self._before = 0

    def __call__(self, body: Json) -> Reply:
        tokens = 4_000 + len(orjson.dumps(body))
        cached = self._before if self.has_cache else 0
        self._before = tokens
        words = f"Noted as number {len(body['messages'])} of what is to be done for the archive this week."
        return Reply(words, prompt_tokens=tokens, cache_read_tokens=min(cached, tokens))


def test_every_cause_is_told_from_the_others(proxy: Proxy, upstream: ScriptedUpstream) -> None:
    upstream.script = provider = Provider()
    talk = Conversation(proxy, "sk-causes")
    told: list[str | None] = []

    def say(text: str) -> None:
        answered = talk.say(text)
        told.append(cause(proxy, answered.said("turn")))

    say("The archive room is number 3172, and its door opens to the left.")
    for shelf in range(3):
        say(f"Then we went through shelf {shelf} and wrote down every single title on it.")
    assert told == ["first", "none", "none", "none"]
    provider.has_cache = False
    say("One more shelf, the last of the upper floor.")
    wait(proxy)
    say("After lunch we went on with the cellar.")
    talk.system = "You are a careful archivist."
    say("The cellar has eleven shelves.")
    talk.keep_last(2)
    say("What is the number of the archive room?")
    assert told[4:] == ["unexpected", "after-idle", "after-change:client", "after-change:client"]
    row = costs(proxy, "by=conversation")[0]
    assert row["rebuilds"] == {
        "first": 1,
        "after-change:client": 2,
        "after-change:ours": 0,
        "after-idle": 1,
        "unexpected": 1,
    }
    newest = orjson.loads(stats(proxy, "--json", "--by", "conversation", "--limit", "1"))["conversation"]
    assert [(one["conversation"], one["requests"]) for one in newest] == [(row["name"], 8)]
    said = stats(proxy)
    assert (
        "UNEXPECTED 1" in said
        and "after-change:client 2" in said
        and "nothing that memory looks at had changed" in said
    )


def wait(proxy: Proxy) -> None:
    """Let all that was sent have been sent so long ago that a cache forgets it."""
    with closing(sqlite3.connect(database(proxy.data), timeout=60)) as db:
        db.execute("UPDATE cost SET at = at - ?", (IDLE_SECONDS,))
        db.commit()


def test_what_memory_takes_from_the_front_is_its_own_doing(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """With `placement: system` a block stands in front of the history, and not in the next request."""
    upstream.script = provider = Provider()
    with Proxy(tmp_path / "data", upstream.url, {"memory": {"placement": "system"}}) as proxy:
        talk = Conversation(proxy, "sk-one")
        for text in ("The archive room is number 3172.", *(f"Shelf {n} holds what was left over." for n in range(3))):
            talk.say(text)
        proxy.settle()
        talk.keep_last(2)
        answered = talk.say("What is the number of the archive room?")
        assert int(answered.said("added-tokens")) > 0
        provider.has_cache = False
        assert cause(proxy, talk.say("Thank you, that helps.").said("turn")) == "after-change:ours"


def test_costs_go_with_what_is_forgotten(proxy: Proxy, upstream: ScriptedUpstream) -> None:
    upstream.script = Provider()
    gone = Conversation(proxy, "sk-gone").say("The archive room is number 3172.").said("conversation")
    before = len(costs(proxy, "by=conversation"))
    assert len(costs(proxy, f"conversation={gone}")) == 1
    done = request(proxy.port, "DELETE", f"/memory/v1/conversations/{gone}")
    assert done.status == 200, done.body
    assert costs(proxy, f"conversation={gone}") == [] and len(costs(proxy, "by=conversation")) == before - 1
    assert rows(proxy.data, "SELECT count(*) FROM cost WHERE turn NOT IN (SELECT id FROM turn)") == [(0,)]


def test_metrics_tell_causes_and_no_tenants(proxy: Proxy, upstream: ScriptedUpstream) -> None:
    upstream.script = Provider()
    before = proxy.metric("palimpsest_cache_rebuilds_total", cause="first")
    Conversation(proxy, "sk-metrics").say("hello")
    assert proxy.metric("palimpsest_cache_rebuilds_total", cause="first") == before + 1
    labels = [line for line in proxy.get("/metrics").body.decode().splitlines() if "cache_rebuil" in line]
    assert labels and not any("tenant" in line for line in labels)
