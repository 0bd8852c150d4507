"""One request, from its body to what is forwarded: within the deadline, whatever memory is doing meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import pytest
import structlog
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.core.history.link_keys import NEWEST_CLUES
from palimpsest.domain import Ending, Json, Note, RawHeaders
from palimpsest.domain.ports import Clock, Listener, Prepared, Vectors
from palimpsest.edge.key_limits import refuse_others
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.features.registry import FEATURES
from palimpsest.memory.recording.queue_room import LIMITS, ArchiveLimits
from palimpsest.memory.request.decider import LATE_SECONDS
from palimpsest.memory.request.sized_executor import INLINE_BYTES
from palimpsest.memory.service import HEAVY_THREADS, MemoryService
from palimpsest.pipeline import Pipeline
from palimpsest.settings.policy import KeyPolicy, Policy
from palimpsest.store.turns.reminders import remind
from palimpsest.telemetry.metrics import Metrics
from palimpsest.wire import chat
from palimpsest.wire.json_body import read_object

from tests.core.driving import client_table
from tests.memory.test_service import Model
from tests.running import (
    BLOCK_OPENS,
    PATIENCE_SECONDS,
    Conversation,
    Proxy,
    as_headers,
    memory_in,
    request,
    rows,
    texts,
    until,
)

FERRY = "The ferry to the northern islands leaves from the old pier at a quarter past nine."
SECRET = b"s" * 32
HEADERS: RawHeaders = ((b"authorization", b"Bearer sk-test"),)
READ_ONLY: RawHeaders = (*HEADERS, (b"x-palimpsest-memory", b"read-only"))
STREAM: RawHeaders = ((b"content-type", b"text/event-stream"),)
PATIENT_MS = 1000 * PATIENCE_SECONDS
LONG = "A line of a very long log, with a number.\n" * (2 * INLINE_BYTES // 40)
TURNS = (
    "SELECT turn.key, event, ending, conversation.public FROM turn JOIN conversation ON conversation.id = conversation"
)


def streamed(text: str) -> list[bytes]:
    """The events of an answer."""
    delta = orjson.dumps({"id": "a", "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]})
    end = orjson.dumps({"id": "a", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return [b"data: " + delta + b"\n\n", b"data: " + end + b"\n\n", b"data: [DONE]\n\n"]


class House:
    """A pipeline with a memory of its own, and no server around it."""

    def __init__(
        self,
        data: Path,
        deadline_ms: float = PATIENT_MS,
        limits: ArchiveLimits = LIMITS,
        clock: Clock = lambda: 0.0,
        model: Any = None,
    ) -> None:
        self.data = data
        there = {"download": "never", "cache": data.parent / "no model"}
        policy = Policy.model_validate({"data": data, "memory": {"deadline_ms": deadline_ms}, "model": there})
        self.metrics = Metrics()
        self.memory = MemoryService(policy, SECRET, self.metrics, model=model, limits=limits, sources=FEATURES)
        self.pipeline = Pipeline(policy, client_table(), SECRET, ProxyKeys({}), self.memory, self.metrics, clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            await self.memory.open()
            yield
        finally:
            await self.memory.close()
            await self.pipeline.close()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """The threads that read large bodies have other things to do."""
        free = threading.Event()
        for _ in range(HEAVY_THREADS):
            self.memory.executor.submit(free.wait, PATIENCE_SECONDS)
        try:
            yield
        finally:
            free.set()

    async def prepare(self, *messages: Json, headers: RawHeaders = HEADERS) -> tuple[bytes, Prepared]:
        body = orjson.dumps({"model": "gpt-4o", "messages": messages, "stream": True})
        return body, await self.pipeline.prepare(ReceivedRequest(headers, body, None), chat)

    async def exchange(self, *messages: Json, answer: str) -> Prepared:
        """A whole turn, answered and written."""
        _, prepared = await self.prepare(*messages)
        await hear(prepared, answer)
        return prepared

    async def written(self, turns: int) -> list[tuple[Any, ...]]:
        """The turns, once there are so many and all have ended."""

        def look() -> list[tuple[Any, ...]] | None:
            found = rows(self.data, TURNS)
            return found if len(found) == turns and all(ending != "open" for _, _, ending, _ in found) else None

        return await asyncio.to_thread(until, look, f"{turns} turns to be written")

    async def idle(self) -> None:
        """Return when everything that was taken is written."""
        await asyncio.to_thread(until, lambda: not self.memory.archivist.backlog, "the archive to be idle")

    def metric(self, line: str) -> bool:
        return line in self.metrics.render().decode()


async def hear(prepared: Prepared, text: str) -> None:
    """Let the answer pass its listener, as the edge does."""
    listener = listening(prepared)
    for data in streamed(text):
        listener.feed(data)
    listener.finish(Ending.COMPLETE)
    await listener.committed()


def listening(prepared: Prepared, status: int = 200) -> Listener:
    assert prepared.listen is not None
    return prepared.listen(status, STREAM)


def said(prepared: Prepared, name: str) -> str:
    return dict(prepared.headers).get(f"x-palimpsest-{name}".encode(), b"").decode()


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "data", deadline_ms=1)


@pytest.fixture
def patient(tmp_path: Path) -> House:
    return House(tmp_path / "data", deadline_ms=PATIENT_MS)


async def test_request_that_is_not_read_by_the_deadline_goes_on_as_it_came_and_is_archived_when_it_is(
    house: House,
) -> None:
    async with house.running():
        with house.busy():
            body, prepared = await house.prepare(user(LONG))
            assert (prepared.body, said(prepared, "note")) == (body, "deadline")
            await hear(prepared, FERRY)  # the whole answer comes before anybody knows what was asked
            assert rows(house.data, TURNS) == []
        ((key, event, ending, _),) = await house.written(1)
        texts = {text for (text,) in rows(house.data, "SELECT text FROM content")}
    assert (key, event, ending) == (said(prepared, "turn"), "start", "complete")
    assert texts == {LONG, FERRY}
    assert house.metric('palimpsest_faults_total{where="request_deadline"} 1.0')
    assert house.metric('palimpsest_requests_total{event="start",note="deadline",role="main"} 1.0')


async def test_answer_that_goes_on_while_its_request_is_read_is_archived_with_it(house: House) -> None:
    async with house.running():
        with house.busy():
            _, prepared = await house.prepare(user(LONG))
        listener = listening(prepared)
        first, *rest = streamed(FERRY)
        listener.feed(first)
        await asyncio.to_thread(until, lambda: rows(house.data, TURNS), "the request to be written")
        for data in rest:
            listener.feed(data)
        listener.finish(Ending.COMPLETE)
        ((_, _, ending, _),) = await house.written(1)
    assert ending == "complete"


async def test_late_request_is_archived_in_the_conversation_that_it_continues(tmp_path: Path) -> None:
    patient = House(tmp_path / "data", deadline_ms=PATIENT_MS)
    async with patient.running():
        begun = await patient.exchange(user("When does the ferry leave?"), answer=FERRY)
        await patient.written(1)
    hasty = House(tmp_path / "data", deadline_ms=1)
    async with hasty.running():
        with hasty.busy():
            _, late = await hasty.prepare(user("When does the ferry leave?"), assistant(FERRY), user(LONG))
            await hear(late, "Thank you for that long text, which I have read to its end.")
        _, (_, event, _, conversation) = await hasty.written(2)
    assert (event, conversation) == ("append", said(begun, "conversation"))


@pytest.mark.slow  # waits as long as a look-up may take
async def test_request_that_is_read_very_late_is_archived_in_the_conversation_that_it_continues(house: House) -> None:
    async with house.running():
        asked = user("When does the ferry leave?")
        begun = await house.exchange(asked, answer=FERRY)
        await house.written(1)
        with house.busy():
            _, late = await house.prepare(asked, assistant(FERRY), user(LONG))
            await hear(late, "Thank you for that long text, which I have read to its end.")
            await asyncio.sleep(LATE_SECONDS + 0.5)
        first, second = await house.written(2)
    assert first[0] == said(begun, "turn") and second[1:] == ("append", "complete", first[3])


async def test_request_that_comes_while_the_one_before_is_still_being_read_continues_that_one(house: House) -> None:
    asked, answer = user(LONG), "Thank you for that long text, which I have read to its end."
    async with house.running():
        with house.busy():
            _, first = await house.prepare(asked)
            await hear(first, answer)
            _, second = await house.prepare(asked, assistant(answer), user("When does the ferry leave?"))
            await hear(second, FERRY)
        await house.written(2)
    parents = (
        "SELECT turn.key, before.key FROM turn LEFT JOIN turn AS before ON before.id = turn.parent ORDER BY turn.id"
    )
    assert rows(house.data, parents) == [(said(first, "turn"), None), (said(second, "turn"), said(first, "turn"))]
    assert rows(house.data, "SELECT count(*) FROM occurrence") == [(4,)]


async def test_subagent_whose_parent_still_waits_to_be_written_is_known_as_its_own(house: House) -> None:
    parent, child = (b"thread-id", b"s-1"), ((b"thread-id", b"s-2"), (b"x-codex-parent-thread-id", b"s-1"))
    async with house.running():
        await house.exchange(user("When does the ferry leave?"), answer=FERRY)  # makes the tenant known
        await house.idle()
        await house.prepare(user("Have somebody count the nodes, please."), headers=(*HEADERS, parent))
        assert house.memory.archivist.backlog == 1
        await house.prepare(user("Count the nodes."), headers=(*HEADERS, *child))
        await house.idle()
    _, *seen = rows(house.data, "SELECT role, parent, public FROM conversation ORDER BY id")
    assert [(role, named) for role, named, _ in seen] == [("main", ""), ("subagent", seen[0][2])]


async def test_second_request_continues_a_short_first_one_whose_answer_waits_to_be_written(house: House) -> None:
    """Some clients go on as soon as they know why an answer stopped, and leave the end of the stream unread."""
    hello, answer = user("Hello, the port is 7431."), "Noted: it is 7431."
    async with house.running():
        _, first = await house.prepare(hello)
        hearing = asyncio.create_task(hear(first, answer))
        await asyncio.sleep(0)
        assert house.memory.archivist.backlog == 2
        _, second = await house.prepare(hello, assistant(answer), user("Which one?"))
        await hearing
    assert said(second, "event") == "append"
    assert said(second, "conversation") == said(first, "conversation")


async def test_request_does_not_wait_for_one_that_it_does_not_go_on_from(house: House) -> None:
    async with house.running():
        with house.busy():
            _, late = await house.prepare(user(LONG))
            await hear(late, FERRY)
            other = await house.exchange(user("When does the ferry leave?"), answer=FERRY)
            await house.written(1)
        first, second = await house.written(2)
    assert (first[0], second[0]) == (said(other, "turn"), said(late, "turn"))


async def test_commit_of_an_answer_whose_request_is_still_being_read_is_waited_for_and_not_for_ever(
    tmp_path: Path,
) -> None:
    house = House(tmp_path / "data", deadline_ms=1)
    async with house.running():
        with house.busy():
            _, prepared = await house.prepare(user(LONG))
            await asyncio.wait_for(hear(prepared, FERRY), PATIENCE_SECONDS)
        await house.written(1)


async def test_refused_late_request_leaves_no_content(house: House) -> None:
    async with house.running():
        await house.exchange(user("When does the ferry leave?"), answer=FERRY)
        with house.busy():
            _, prepared = await house.prepare(user(LONG))
            listening(prepared, status=401).finish(Ending.COMPLETE)
        await house.idle()
        assert (FERRY,) in (texts := rows(house.data, "SELECT text FROM content"))
        assert (LONG,) not in texts


@pytest.mark.parametrize("kept", [0, 1])
async def test_late_requests_beyond_their_room_are_not_waited_for_and_that_is_said(tmp_path: Path, kept: int) -> None:
    house = House(tmp_path / "data", 1, ArchiveLimits(late_bytes=kept * 3 * len(LONG) // 2))
    async with house.running():
        with house.busy():
            prepared = [(await house.prepare(user(LONG)))[1] for _ in range(2)]
            assert [said(one, "note") for one in prepared] == ["deadline", "fault"] if kept else ["fault", "fault"]
            assert [one.listen is not None for one in prepared] == [bool(kept), False]
            for one in prepared[:kept]:
                await hear(one, FERRY)
        await house.idle()
        assert len(rows(house.data, TURNS)) == kept
    assert house.metric(f"palimpsest_turns_lost_total {2 - kept}.0")


async def test_late_request_that_fails_is_a_turn_that_is_lost(house: House) -> None:
    async with house.running():
        with house.busy():
            _, prepared = await house.prepare(user(LONG))
            house.memory.executor.shutdown(wait=False)
            await hear(prepared, FERRY)
        with structlog.testing.capture_logs():  # the failure's would be shown with all that was sent
            await house.idle()
    assert rows(house.data, TURNS) == [] and house.metric("palimpsest_turns_lost_total 1.0")


async def test_a_body_is_parsed_once_whoever_asks_for_its_object(patient: House) -> None:
    parsed: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is read_object.__code__:
            parsed.append(event)

    body = orjson.dumps({"model": "gpt-4o", "messages": [user(FERRY)], "user": "ada"})
    sent = ReceivedRequest(HEADERS, body, KeyPolicy(name="acme", key_env="K", users=("ada",)))
    async with patient.running():
        sys.setprofile(look)
        try:
            await refuse_others(sent, client_table())
            prepared = await patient.pipeline.prepare(sent, chat)
        finally:
            sys.setprofile(None)
    assert (len(parsed), sent.model, prepared.model) == (1, "gpt-4o", "gpt-4o")


async def test_deadline_runs_from_when_the_request_arrived(patient: House) -> None:
    async with patient.running():
        body = orjson.dumps({"model": "gpt-4o", "messages": [user(FERRY)]})
        arrived = asyncio.get_running_loop().time() - 2 * PATIENT_MS / 1000
        prepared = await patient.pipeline.prepare(ReceivedRequest(HEADERS, body, None), chat, arrived)
        assert (prepared.body, said(prepared, "note")) == (body, "deadline")
        await hear(prepared, FERRY)
        await patient.written(1)


async def test_late_request_that_is_only_to_be_read_is_given_up(house: House) -> None:
    async with house.running():
        with house.busy():
            body, prepared = await house.prepare(user(LONG), headers=READ_ONLY)
            assert (prepared.body, said(prepared, "note"), prepared.listen) == (body, "deadline", None)
    assert house.metric('palimpsest_requests_total{event="",note="deadline",role=""} 1.0')
    assert rows(house.data, TURNS) == []


async def test_late_request_that_cannot_be_read_keeps_nobody_waiting(house: House) -> None:
    async with house.running():
        with house.busy():
            body = b"[" + b" " * 2 * INLINE_BYTES
            prepared = await house.pipeline.prepare(ReceivedRequest(HEADERS, body, None), chat)
            assert (prepared.body, said(prepared, "note")) == (body, "deadline")
            listener = listening(prepared)
        listener.finish(Ending.COMPLETE)
        await asyncio.wait_for(listener.committed(), PATIENCE_SECONDS)
    assert rows(house.data, TURNS) == [] and house.metric('palimpsest_faults_total{where="unreadable"} 1.0')


async def test_request_whose_caller_leaves_before_it_is_sent_is_not_archived(patient: House) -> None:
    async with patient.running():
        with patient.busy():
            preparing = asyncio.create_task(patient.prepare(user(LONG)))
            await asyncio.sleep(0)
            preparing.cancel()
            await asyncio.wait([preparing])
        await patient.exchange(user("When does the ferry leave?"), answer=FERRY)
        await patient.written(1)


async def test_what_is_still_being_read_in_the_end_is_given_up(house: House) -> None:
    async with house.running():
        with house.busy():
            await house.prepare(user(LONG))
            await house.pipeline.close()
        assert house.memory.archivist.backlog == 0


async def test_what_is_read_in_time_says_so(patient: House) -> None:
    async with patient.running():
        body, prepared = await patient.prepare(user(LONG))
        assert (prepared.body, said(prepared, "note")) == (body, Note.CALM.value)
        await hear(prepared, FERRY)
        ((key, *_),) = await patient.written(1)
    assert key == said(prepared, "turn")


async def test_request_goes_on_untouched_where_memory_has_no_store(patient: House) -> None:
    patient.data.write_text("a file stands in the way")
    async with patient.running():
        body, prepared = await patient.prepare(user("When does the ferry leave?"), headers=READ_ONLY)
        assert (prepared.body, said(prepared, "note"), said(prepared, "event")) == (body, "fault", "start")


@pytest.mark.parametrize("headers", [HEADERS, READ_ONLY])
async def test_request_that_comes_too_late_while_the_store_fails_says_that_it_fails(
    house: House, headers: RawHeaders
) -> None:
    house.data.write_text("a file stands in the way")
    async with house.running():
        await house.prepare(user("When does the ferry leave?"))
        await asyncio.to_thread(until, lambda: house.memory.archivist.is_failing, "writing to fail")
        with house.busy():
            body, prepared = await house.prepare(user(LONG), headers=headers)
        assert (prepared.body, said(prepared, "note")) == (body, "fault")


async def test_a_mistyped_memory_header_keeps_the_request_out_of_the_archive_and_says_so(patient: House) -> None:
    async with patient.running():
        mistyped = (*HEADERS, (b"x-palimpsest-memory", b"offf"))
        body, prepared = await patient.prepare(user("My number is 7431."), headers=mistyped)
        assert (prepared.body, said(prepared, "note"), prepared.listen) == (body, "unknown-mode", None)
        await patient.exchange(user("Hello."), answer="Hello!")
        await patient.written(1)
    assert [text for (text,) in rows(patient.data, "SELECT text FROM content ORDER BY 1")] == ["Hello!", "Hello."]


def test_what_many_new_messages_stand_behind_is_continued(proxy: Proxy, upstream: ScriptedUpstream, key: str) -> None:
    upstream.script = lambda _: FERRY
    history: list[Json] = [{"role": "user", "content": "From where and when does the ferry to the islands leave?"}]

    def say() -> tuple[str, str]:
        body = orjson.dumps({"model": "gpt-4o", "messages": history})
        answered = request(proxy.port, "POST", "/v1/chat/completions", body, as_headers(key, {}))
        history.append({"role": "assistant", "content": answered.text})
        return answered.said("conversation"), answered.said("event")

    begun, _ = say()
    for number in range(2 * NEWEST_CLUES):
        content = f"Line {number} of the log that was pasted in many pieces, each of them a message of its own."
        history.append({"role": "user", "content": content})
    assert say() == (begun, "append")


def test_each_wording_of_what_is_asked_of_a_compacted_history_gets_back_what_that_lost(
    proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    """Nothing of the questions that were edited away, nor of their answers, comes back."""
    upstream.script = lambda body: f"That is noted, as answer {len(upstream.received)} of mine, and kept in mind."
    talk = Conversation(proxy, key)
    talk.say(FERRY)
    for number in range(8):
        talk.say(f"Chapter {number} of the handbook explains how to fold sail number {number} before the winter.")
    proxy.settle()
    talk.keep_last(2, "The islands and their sails were talked about. " * 6)
    compacted, seen = list(talk.messages), []
    upstream.script = lambda body: f"The ferry of the islands is in answer {len(upstream.received)}, with its old pier."
    asked = "When does the ferry to the northern islands leave, and from where?"
    for words in (asked, f"{asked} I have to know.", "Do you know from which pier one gets to the northern islands?"):
        talk.messages[:] = compacted
        seen.append(talk.say(words).said("event"))
        proxy.settle()
        block = memory_in(orjson.loads(upstream.received[-1].body))
        assert FERRY in block and 'kind="restore"' in block
        assert "is in answer" not in block and "and from where?" not in block
    assert seen == ["compaction:summary", "edit", "edit"]
    talk.say("And when does it come back to the old pier?")
    assert memory_in(orjson.loads(upstream.received[-1].body)).startswith(block), "it is sent again where it stood"


def test_a_rule_that_always_holds_comes_back_once_after_a_compaction_whatever_is_asked(
    proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    """Also where the first message behind the compaction asks for nothing."""
    upstream.script = lambda body: f"That is noted, as answer {len(upstream.received)} of mine, and kept in mind."
    rule = "Never push to main."
    talk = Conversation(proxy, key)

    def told() -> int:
        return texts(orjson.loads(upstream.received[-1].body)).count(rule)

    talk.say(f"I look after the sails of a club. {rule}")
    for number in range(40):
        talk.say(f"Chapter {number} of the handbook explains how to fold sail number {number} before the winter.")
    proxy.settle()
    talk.keep_last(4, "The handbook of the club and its sails were talked about. " * 6)
    talk.say("Thanks!")
    assert told() == 0
    for question in ("What is a monad?", "And a functor?"):
        talk.say(question)
        proxy.settle()
        assert told() == 1
        assert memory_in(orjson.loads(upstream.received[-1].body)).count('kind="restore"') == 1


def test_a_summary_that_the_model_still_sees_is_not_quoted_to_it_again(
    proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    """Its words are those of an answer, which the compaction took away."""
    upstream.script = lambda _: f"That is noted, as answer {len(upstream.received)} of mine, and kept in mind."
    talk = Conversation(proxy, key)
    talk.say("I run the harbour of an island. The key of the pump house hangs behind the third door.")
    for number in range(8):
        talk.say(f"Chapter {number} of the handbook explains how to fold sail number {number} before the winter.")
    summary = (
        f"A harbour is run, and its handbook was read{' from end to end' * 8}. Open: Paule translates the timetable."
    )
    upstream.script = lambda _: summary
    talk.say("Summarize the conversation so far.")
    proxy.settle()
    upstream.script = lambda _: "Fine."
    talk.keep_last(1, summary)
    talk.messages.pop()
    talk.say("Go on.")
    talk.ask("Who translates the timetable, and where is the key of the pump house?")
    assert "third door" in memory_in(upstream.received[-1].json)
    assert texts(upstream.received[-1].json).count(summary) == 1


def test_work_that_a_compaction_took_away_is_told_at_every_compaction_and_may_still_be_quoted(
    proxy: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    """Of what an account mentions a later question still gets the whole line."""
    upstream.script = lambda body: f"Step {len(upstream.received)} of the repair of the parser is done, on to the next."
    talk = Conversation(proxy, key)
    rule = "Always keep the changelog up to date."

    def edit(path: str, number: int) -> None:
        arguments = orjson.dumps({"file_path": path, "old_string": f"old_{number}", "new_string": f"new_{number}"})
        call = {"id": f"call_{key}_{number}", "type": "function"}
        function = {"name": "Edit", "arguments": arguments.decode()}
        talk.messages.append({"role": "assistant", "content": "", "tool_calls": [{**call, "function": function}]})
        talk.messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"{path} was updated"})

    def block() -> str:
        return memory_in(orjson.loads(upstream.received[-1].body))

    talk.say(f"Repair the parser. {rule}")
    edit("src/parser/grammar_rules.py", 1)
    talk.say("The secret of the old grammar is that rule_of_three comes before rule_of_two. Go on with that.")
    for number in range(2, 6):
        edit("src/lexer/token_stream.py", number)
        talk.say(f"That was step {number}, and it looks as it should. Do what comes next.")
    proxy.settle()
    for number in (10, 20):
        talk.keep_last(2, "The parser was repaired in many small steps, and the work on it goes on. " * 4)
        asked = talk.say(f"Then do step {number} now, please, in the way in which you did the others.")
        assert asked.said("event").startswith("compaction")
        assert "edited: src/lexer/token_stream.py 4x, src/parser/grammar_rules.py\n" in block()
        assert block().count(rule) == 1
        for more in range(number, number + 4):
            talk.say(f"That was another step, number {more}, and it is well done. Do what comes next.")
        proxy.settle()
    talk.ask("What was the secret of the old grammar?")
    assert "rule_of_three comes before rule_of_two" in texts(orjson.loads(upstream.received[-1].body))


async def test_failure_beside_the_decisions_stops_no_request(tmp_path: Path) -> None:
    def broken() -> float:
        raise OSError("there is no clock")

    house = House(tmp_path / "data", clock=broken)
    async with house.running():
        body, prepared = await house.prepare({"role": "user", "content": FERRY})
    assert prepared.body == body and (b"x-palimpsest-note", b"fault") in prepared.headers
    assert house.metric('palimpsest_faults_total{where="pipeline"} 1.0')
    assert house.metric('palimpsest_requests_total{event="",note="fault",role=""} 1.0')


class Cancels(Model):
    """A model that is being shut down, as it were: whoever waits for it is cancelled."""

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        raise asyncio.CancelledError


async def test_what_memory_waits_for_is_cancelled_and_the_request_goes_on(tmp_path: Path) -> None:
    house = House(tmp_path / "data", model=Cancels())
    history: list[Json] = []
    async with house.running():
        for number in range(4):
            history.append({"role": "user", "content": f"{FERRY} That was note {number}."})
            await house.exchange(*history, answer=f"It is noted, for the {number}. time.")
            history.append({"role": "assistant", "content": f"It is noted, for the {number}. time."})
            await house.written(number + 1)
        question = {"role": "user", "content": "When does the ferry to the islands leave?"}
        body, prepared = await house.prepare(*history[-2:], question)
    assert prepared.body == body and (b"x-palimpsest-note", b"fault") in prepared.headers


@pytest.mark.slow
def test_facts_of_a_user_are_told_at_the_beginning_of_another_conversation_and_go_with_their_source(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda body: f"Noted, with {len(body['messages'])} messages in front of it."
    with Proxy(tmp_path / "data", upstream.url, {"facts": {"policy": "use"}}) as proxy:
        first, other = (Conversation(proxy, "sk-facts", headers={"x-palimpsest-user": "ann"}) for _ in range(2))
        said = first.say("My name is Ada Young, and I live in Lisbon.")
        assert said.said("facts") == ""
        until(lambda: rows(proxy.data, "SELECT 1 FROM fact WHERE slot = 'home'"), "the facts to be stored")

        told = other.say("Hello!")
        begun = upstream.received[-1].json["messages"]
        assert "fact: user name: Ada Young (said " in texts({"messages": begun})
        assert (told.said("facts"), told.said("recalled"), told.said("note")) == ("2", "0", "")
        until(lambda: " facts=2 " in proxy.log.read_text(), "the log to say so")
        again = other.say("What is new?")
        assert upstream.received[-1].json["messages"][: len(begun)] == begun and again.said("facts") == ""

        turn = told.said("turn")
        ((kept,),) = rows(proxy.data, f"SELECT explain FROM turn WHERE key = '{turn}'")
        explained = orjson.loads(kept)
        assert explained["kind"] == "facts" and [one["why"] for one in explained["facts"]["told"]] == ["standing"] * 2

        forgotten = orjson.dumps({"conversation": said.said("conversation")})
        answered = request(proxy.port, "POST", "/memory/v1/forget", forgotten, {"content-type": "application/json"})
        assert answered.status == 200, answered.body
        other.say("And now?")
        assert BLOCK_OPENS not in texts(upstream.received[-1].json)


async def test_a_request_makes_background_work_give_way(house: House) -> None:
    async with house.running():
        traffic, waiting = house.memory.traffic, asyncio.Event()
        beside = asyncio.create_task(traffic.run_beside(waiting.wait()))
        await asyncio.sleep(0)
        await house.exchange({"role": "user", "content": "hello"}, answer="Hello.")
        assert await beside is None
        assert not traffic.is_quiet


async def test_passage_that_somebody_asked_for_comes_in_the_next_request_and_once(patient: House) -> None:
    past = [user("When does the ferry leave?"), assistant(FERRY)]
    for n in range(4):
        past += [user(f"And what about island number {n}?"), assistant(f"Island {n} has a harbour of its own.")]
    async with patient.running():
        for n in range(0, len(past), 2):
            await patient.exchange(*past[: n + 1], answer=past[n + 1]["content"])
        await patient.exchange(*past[6:], user("Thanks!"), answer="You are welcome.")
        of_ferry = f"SELECT occurrence.id FROM occurrence JOIN content ON content.id = content WHERE text = '{FERRY}'"
        ((memory,),) = rows(patient.data, f"SELECT id FROM memory WHERE occurrence IN ({of_ferry})")
        await patient.memory.database.transact(lambda transaction: remind(transaction, memory, 1e12))
        await patient.memory.follower.look()
        talk = [*past[6:], user("Thanks!"), assistant("You are welcome."), user("Good bye!")]
        first = await patient.exchange(*talk, answer="Bye.")
        assert FERRY in memory_in(orjson.loads(first.body))
        await patient.memory.follower.look()
        second = await patient.exchange(*talk, assistant("Bye."), user("Hello again!"), answer="Hello.")
        assert memory_in(orjson.loads(second.body)).count(FERRY) == 1, "repeated where it stood, and not told again"
        assert rows(patient.data, "SELECT turn > 0 FROM reminder") == [(1,)]
