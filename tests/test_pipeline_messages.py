"""Requests of Anthropic's Messages API: compacted by their client, by their provider, or held by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import BLOCK_OPENS, Answered, Proxy, memory_in, request

FACT = "The staging gateway listens on port 8731."
PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGFyYm91cg=="}}
REPLIES = [
    "Noted, I will write the manifest for the gateway accordingly and keep the port in mind.",
    "The retry policy has three attempts with exponential backoff, as the payment provider recommends.",
    "The migration adds the refund ledger and has a down section, so that it stays reversible.",
    "The feature flag is off by default, and Lena is its owner until the rollout is over.",
]
ASKED = [
    f"{FACT} Please remember it.",
    "How often shall the payment client try again?",
    "Write the database migration for the refund ledger.",
    "Add a feature flag for the rollout, owned by Lena.",
]
# A secret chooses one in four runs of eight words to know it by: of forty words it chose too few once in 1,000.
SUMMARY = (
    "The user is moving a checkout service behind a gateway. A retry policy, a migration and a feature flag were made; "
    "now the assistant is looking through the load test's log files, one after the other, for what stopped it. "
    "What is left to do is to name the cause, to repair it, and to run the load test again before the rollout begins."
)
MARK = {"cache_control": {"type": "ephemeral"}}
SUMMARIZE = {"type": "summarize"}


class Agent:
    """A client of the Messages API as coding agents are: its mark for the provider's cache moves with each request."""

    def __init__(self, proxy: Proxy, upstream: ScriptedUpstream, key: str) -> None:
        self._proxy, self._upstream, self._key = proxy, upstream, key
        self.messages: list[Any] = []
        self.sent: Json = {}

    def say(self, *parts: Json, **more: Any) -> Answered:
        """Add a user's message, ask, and keep the answer with everything in it."""
        self.messages.append({"role": "user", "content": list(parts)})
        answered = self.ask(self.messages, **more)
        self.messages.append({"role": "assistant", "content": answered.json["content"]})
        return answered

    def ask(self, messages: list[Any], **more: Any) -> Answered:
        *before, last = messages
        marked = {**last, "content": [*last["content"][:-1], last["content"][-1] | MARK]}
        self.sent = {
            "model": "claude-x",
            "max_tokens": 900,
            "system": [text("You are a coding agent.") | MARK],
            "tools": [{"name": "read", "input_schema": {"type": "object"}}],
            "messages": [*map(as_string, before), marked],
        } | more
        headers = {"x-api-key": self._key, "content-type": "application/json", "anthropic-version": "2023-06-01"}
        return request(self._proxy.port, "POST", "/v1/messages?beta=true", orjson.dumps(self.sent), headers)

    @property
    def reached(self) -> Json:
        """The newest request as it reached the provider."""
        return self._upstream.received[-1].json


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def result(id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": [text(f"Log {id}: nothing but heartbeats."), PIXEL]}


def as_string(message: Json) -> Json:
    """A message loses its parts where one text is all that it says: some clients do so once the mark has left it."""
    match message["content"]:
        case [{"type": "text", "text": str(said)}] if message["role"] == "user":
            return {**message, "content": said}
    return message


def as_parts(body: Json) -> list[tuple[str, list[Json]]]:
    """The messages without marks, a text as one part: what the provider's cache compares."""
    listed = []
    for message in body["messages"]:
        content = message["content"]
        parts = [text(content)] if isinstance(content, str) else content
        listed.append((message["role"], [{k: v for k, v in p.items() if k not in MARK} for p in parts]))
    return listed


def without_memory(said: list[tuple[str, list[Json]]]) -> list[tuple[str, list[Json]]]:
    return [(role, [p for p in parts if BLOCK_OPENS not in p.get("text", "")]) for role, parts in said]


def test_agent_that_is_compacted_in_the_middle_of_its_work_gets_back_what_was_lost(
    proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    """Thoughts, images, calls and their results arrive as they were, and what was cached once stays cached."""
    agent = Agent(proxy, upstream, key)
    calls = [Reply("", (ToolCall(f"toolu_{n}", "read", f'{{"path":"{n}.log"}}'),), f"Now {n}.") for n in range(4)]
    upstream.play(*REPLIES, *calls[:3])
    for asked in ASKED:
        agent.say(text(asked))
    agent.say(text("The load test stopped. Look into its log files."))
    for n in range(2):
        assert agent.say(result(f"toolu_{n}")).said("event") == "tool"
    assert agent.reached == agent.sent, "while nothing is lost, nothing is added"
    proxy.settle()

    upstream.play(SUMMARY)
    order = "Do not call tools. Create a detailed summary of our conversation so far. " + "Be thorough. " * 40
    order += "\nSummarize what the conversation was about between <summary> tags."
    compacting = [*agent.messages, {"role": "user", "content": [result("toolu_2"), text(order)]}]
    assert agent.ask(compacting).said("role") == "side"
    assert agent.reached == agent.sent

    told = f"This conversation goes on from one that ran out of room.\n{SUMMARY}"
    agent.messages[:-1] = [{"role": "user", "content": [text("<reminder>Be careful.</reminder>"), text(told)]}]
    upstream.play(calls[3], "The log files say nothing.", "It listens on that port.")
    assert agent.say(result("toolu_2")).said("event") == "compaction:summary"
    reached = as_parts(agent.reached)
    assert without_memory(reached) == as_parts(agent.sent)
    assert FACT in reached[0][1][-1]["text"], "behind the newest words of a user's, and not between call and result"
    for said in (result("toolu_3"), text("Which port does the staging gateway listen on?")):
        before = reached
        agent.say(said)
        reached = as_parts(agent.reached)
        assert reached[: len(before)] == before
        assert without_memory(reached) == as_parts(agent.sent)


@pytest.mark.slow
def test_instructions_of_ours_stand_where_this_api_has_them(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.play(*REPLIES, "It listens on that port.")
    with Proxy(tmp_path / "data", upstream.url, {"memory": {"placement": "system"}}) as proxy:
        agent = Agent(proxy, upstream, "sk-one")
        for asked in ASKED:
            agent.say(text(asked))
        proxy.settle()
        del agent.messages[:-2]
        agent.say(text("Which port does the staging gateway listen on?"))
    ours, theirs = agent.reached["system"], agent.sent["system"]
    assert ours[:-1] == theirs and FACT in ours[-1]["text"]
    assert agent.reached["messages"] == agent.sent["messages"]


# --- what the provider does itself -----------------------------------------------------------------


def answering(*blocks: Json) -> Reply:
    said = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "content": list(blocks)}
    return Reply(body=orjson.dumps(said))


@pytest.fixture
def talked(proxy: Proxy, upstream: ScriptedUpstream, key: str) -> Agent:
    """Four questions and answers, all found by now."""
    agent = Agent(proxy, upstream, key)
    upstream.play(*REPLIES)
    for asked in ASKED:
        agent.say(text(asked))
    proxy.settle()
    return agent


PORT = text("Which port does the staging gateway listen on?")
COMPACTED = {"type": "compaction", "content": SUMMARY, "signature": "sig"}


def test_what_the_provider_compacted_on_demand_is_given_back(talked: Agent, upstream: ScriptedUpstream) -> None:
    upstream.play(answering(COMPACTED), "It listens on that port.")
    demanded = talked.ask([*talked.messages, {"role": "user", "content": [text("Go on.")]}], compaction=SUMMARIZE)
    assert demanded.said("role") == "side" and talked.reached == talked.sent
    talked.messages[:] = [{"role": "assistant", "content": [COMPACTED]}]
    assert talked.say(PORT).said("event") == "compaction:summary"
    assert FACT in memory_in(talked.reached)
    assert without_memory(as_parts(talked.reached)) == as_parts(talked.sent)
    assert talked.reached["messages"][0] == talked.sent["messages"][0]


def test_what_the_provider_compacted_by_itself_is_given_back(talked: Agent, upstream: ScriptedUpstream) -> None:
    """The client still sends everything; the provider reads it from its own summary on."""
    upstream.play(answering(COMPACTED, text("I go on.")), "It listens on that port.", "It does.")
    assert talked.say(text("Go on.")).said("event") == "append"
    assert talked.say(PORT).said("event") == "compaction:summary"
    assert FACT in memory_in({"messages": talked.reached["messages"][-1:]})
    assert without_memory(as_parts(talked.reached)) == as_parts(talked.sent)
    assert talked.say(text("Are you sure?")).said("event") == "append"


def test_a_history_that_the_provider_holds_goes_on(talked: Agent, upstream: ScriptedUpstream) -> None:
    upstream.play(answering(text("I hold it.")), "I go on.")
    begun = talked.say(text("Go on."), thread={"type": "create"})
    talked.messages.clear()
    upstream.play("It listens on that port.")
    going_on = {"thread": {"type": "continue", "previous_message_id": begun.json["id"]}, "system": None, "tools": None}
    continued = talked.say(text("Please summarize the conversation so far."), **going_on)
    assert continued.said("conversation") == begun.said("conversation")
    assert (continued.said("role"), continued.said("event")) == ("main", "append")


@pytest.mark.usefixtures("words_only")
def test_a_rule_comes_to_any_request_of_a_later_session_in_the_folder_in_which_it_was_told(
    tmp_path: Path, upstream: ScriptedUpstream, key: str
) -> None:
    rule = "Never run the migrations against the production database."

    def in_folder(folder: str) -> Json:
        return {"system": [text("You are a coding agent."), text(f"<env>\nWorking directory: {folder}\n</env>")]}

    with Proxy(tmp_path / "data", upstream.url, {"memory": {"reach": "tenant"}}) as proxy:
        agent = Agent(proxy, upstream, key)
        upstream.play(*REPLIES[:2])
        agent.say(text(f"Add the refund ledger. {rule}"), **in_folder("/home/ann/shop"))
        agent.say(text("Write its tests, too."), **in_folder("/home/ann/shop"))
        proxy.settle(vectors=False)
        for folder, comes in (("/home/ann/blog", False), ("/home/ann/shop", True)):
            later = Agent(proxy, upstream, key)
            upstream.play(REPLIES[2])
            later.say(text("Build the docs page."), **in_folder(folder))
            assert (rule in memory_in(later.reached)) is comes, folder
        upstream.play(REPLIES[3])
        later.say(text("And publish it."), **in_folder("/home/ann/shop"))
        assert rule not in memory_in({"messages": later.reached["messages"][-1:]}), "once in a conversation"


@pytest.mark.usefixtures("words_only")
def test_a_rule_comes_to_a_later_session_of_an_agent_that_names_no_folder_by_its_prompt_once_it_used_tools(
    tmp_path: Path, upstream: ScriptedUpstream, key: str
) -> None:
    rule = "Never restart the broker during the day."
    about = "the operations assistant of a bicycle rental company, and you read its tickets, its logs and its bookings."

    def of(prompt: str) -> Json:
        return {"system": [text(prompt)]}

    with Proxy(tmp_path / "data", upstream.url, {"memory": {"reach": "tenant"}}) as proxy:
        working, talking = Agent(proxy, upstream, key), Agent(proxy, upstream, key)
        call = ToolCall("toolu_1", "read", '{"path":"broker.log"}')
        upstream.play(Reply("", (call,), "I look."), *REPLIES[:2])
        working.say(text(f"Look at the broker. {rule}"), **of(f"On 12 May you are {about}"))
        working.say(result("toolu_1"), **of(f"On 12 May you are {about}"))
        talking.say(text("Never mention prices."), **of(f"On 12 May you are {about}"))
        proxy.settle(vectors=False)
        for prompt, comes in ((f"You train {about}", False), (f"On 3 June you are {about}", True)):
            later = Agent(proxy, upstream, key)
            upstream.play(REPLIES[2])
            later.say(text("What is a monad?"), **of(prompt))
            told = memory_in(later.reached)
            assert (rule in told) is comes and "prices" not in told, prompt
