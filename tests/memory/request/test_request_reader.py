"""A request that goes on from one that was read before is read as if it had not been, by its own tenant alone."""

from __future__ import annotations

import asyncio
import gc
import re
import time
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.core.caller.client_table import read_signals
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.core.conversation import Rules
from palimpsest.core.reading import Reading
from palimpsest.domain import Follows, Json, Speaker
from palimpsest.domain.errors import WireError
from palimpsest.domain.ports import Wire
from palimpsest.memory.request.arrival import arrival_of
from palimpsest.memory.request.recent_readings import OPENING_BYTES, RecentReadings
from palimpsest.memory.request.request_reader import RequestReader, UntouchedRequest
from palimpsest.memory.request.sized_executor import SizedExecutor
from palimpsest.memory.tokens.counter import TokenCounter
from palimpsest.settings import load
from palimpsest.settings.policy import Policy
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.telemetry.metrics import Metrics
from palimpsest.wire import chat, messages, responses

from tests.examples import examples
from tests.wire.test_layout import histories

SECRET = b"s" * 32
EXECUTOR = ThreadPoolExecutor(1)


@lru_cache(1)
def rules() -> Rules:
    signals = read_signals(load.read_yaml(load.shipped("clients.yaml")))
    return Rules(Policy(), signals, SECRET, TokenCounter().text)


def reader(recent: RecentReadings, executor: Executor = EXECUTOR) -> RequestReader:
    journal = Journal(Database(Path("/nowhere/palimpsest.db")))
    tokens = TokenCounter()
    return RequestReader(rules(), journal, recent, tokens, Metrics(), SizedExecutor(executor))


async def read(by: RequestReader, body: bytes, wire: Wire = chat, caller: bytes = b"sk-a") -> Reading:
    return (await read_all(by, body, wire, caller))[0]


async def read_all(
    by: RequestReader, body: bytes, wire: Wire = chat, caller: bytes = b"sk-a"
) -> tuple[Reading, Speaker, Follows | None]:
    request = ReceivedRequest([(b"authorization", b"Bearer " + caller)], body, None)
    found = await by.read(arrival_of(request, wire, rules()), timeout_seconds=1)
    assert not isinstance(found, UntouchedRequest)
    return found


def body_of(texts: Sequence[str], model: str = "gpt-4o") -> bytes:
    listed = [{"role": "user" if at % 2 == 0 else "assistant", "content": text} for at, text in enumerate(texts)]
    return long(orjson.dumps({"model": model, "messages": listed}))


def long(body: bytes) -> bytes:
    """Short bodies are not kept."""
    return b'{"metadata":{"a":"%b"},%b' % (b"x" * OPENING_BYTES, body[1:])


def facts(reading: Reading) -> tuple[object, ...]:
    return (
        *(reading, reading.places, reading.history, reading.history_prints, reading.instruction_prints),
        *(reading.tokens, reading.history_tokens, reading.chat.history, reading.chat.layout),
    )


@pytest.mark.parametrize("wire", [chat, messages, responses], ids=lambda wire: wire.__name__.rpartition(".")[2])
@given(data=st.data())
@settings(max_examples=examples(100), deadline=None)
def test_what_is_known_of_a_request_is_the_same_however_much_was_read_before(wire: Wire, data: st.DataObject) -> None:
    bodies = data.draw(histories(wire)) + data.draw(histories(wire))
    models = st.sampled_from([b'"gpt-4o"', b'"gpt-4"', b'"x"'])
    bodies = [long(body.replace(b'"gpt-4o"', data.draw(models))) for body in bodies]

    async def compare() -> None:
        again, whole = reader(RecentReadings()), reader(RecentReadings(most_bytes=0))
        known = []
        for body in bodies:
            try:
                expected = facts(await read(whole, body, wire))
            except WireError:
                with pytest.raises(WireError):
                    await read(again, body, wire)
            else:
                known.append((await read(again, body, wire), expected))
                assert facts(known[-1][0]) == expected
        for reading, expected in known:  # also when others have gone on from it
            assert facts(reading) == expected

    asyncio.run(compare())


async def test_the_folder_of_an_agent_is_read_whatever_was_read_before() -> None:
    by = reader(RecentReadings())
    talk = ["<cwd>/srv/shop</cwd>", "Yes.", *(f"Step {number}" for number in range(6))]
    shop = [(await read_all(by, body_of(talk[:count])))[1].folder for count in (1, 3, 5, 7)]
    blog = (await read_all(by, body_of([talk[0].replace("shop", "blog"), *talk[1:]])))[1].folder
    short = [(await read_all(by, body_of(["Hello", "Hi!", *more])))[1].folder for more in ([], [talk[0]])]
    assert len({*shop}) == 1 and shop[0] not in (0, blog) and blog and short == [0, shop[0]]


async def test_only_what_was_appended_is_read() -> None:
    by = reader(RecentReadings())
    before = await read(by, body_of(["a", "b", "c"]))
    after = await read(by, body_of(["a", "b", "c", "d", "e"]))
    assert all(one is other for one, other in zip(before.chat.messages, after.chat.messages, strict=False))
    assert after == await read(reader(RecentReadings()), body_of(["a", "b", "c", "d", "e"]))


async def test_nothing_is_taken_over_from_another_tenant() -> None:
    by = reader(RecentReadings())
    theirs = await read(by, body_of(["a", "b", "c"]), caller=b"sk-a")
    ours = await read(by, body_of(["a", "b", "c"]), caller=b"sk-b")
    assert ours.chat == theirs.chat and ours.prints != theirs.prints
    assert not any(one is other for one, other in zip(ours.chat.messages, theirs.chat.messages, strict=True))


async def test_a_long_history_that_was_read_before_holds_up_nobody() -> None:
    by = reader(RecentReadings())
    texts = [f"{at} {'words ' * 60}" for at in range(2000)]
    await read(by, body_of(texts))
    took = []
    for body in (body_of([*texts, "one"]), body_of([*texts, "one", "two"])):
        started = time.process_time()
        await read(by, body)
        took.append(time.process_time() - started)
    started = time.process_time()
    await read(reader(RecentReadings()), body_of([*texts, "one", "two"]))
    assert min(took) < (time.process_time() - started) / 2


class Counting(Executor):
    """Counts the pieces of work that it is given."""

    works = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        self.works += 1
        return EXECUTOR.submit(function, *args, **named)


async def test_what_goes_on_from_a_long_history_in_doubt_is_read_whole_beside_the_event_loop() -> None:
    executor = Counting()
    by = reader(RecentReadings(), executor)
    body = body_of([f"{at} {'words ' * 60}" for at in range(500)])
    await read(by, body)
    before = executor.works
    again = await read(by, body[:-1] + b',"messages":[{"role":"user","content":"a"}]}')
    assert len(again.chat.messages) == 1 and executor.works > before


def kept(recent: RecentReadings) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", repr(recent))]


async def test_a_request_takes_the_place_of_the_one_that_it_repeats() -> None:
    recent = RecentReadings()
    by = reader(recent)
    for texts in (["a", "b", "c"], ["a", "b", "c", "d", "e"], ["a", "b", "c", "d", "e"]):
        await read(by, body_of(texts))
    assert kept(recent)[0] == 1
    await read(by, body_of(["a", "b", "other"]))
    assert kept(recent)[0] == 2


async def test_no_more_is_kept_than_there_is_room_for() -> None:
    recent = RecentReadings(most_bytes=100_000)
    by = reader(recent)
    for number in range(100):
        await read(by, body_of([f"{number}" * 200, "b", "c"]))
    requests, size_bytes = kept(recent)
    assert 1 < requests < 40 and size_bytes <= 100_000


@pytest.mark.parametrize(
    "said",
    [
        {"role": "user", "content": "plain words " * 500},
        {"role": "user", "content": "plain words " * 500 + "🌍"},
        {"role": "user", "content": [{"type": "text", "text": "plain words " * 100 + "🌍"}] * 5},
        {"role": "user", "content": "a", "further": [{}] * 2000},
        {"role": "user", "content": "a", "further": {f"name {at}": 1000 + at for at in range(200)}},
        {"role": "user", "content": "a"},
    ],
    ids=["plain", "emoji", "parts", "objects", "names", "short"],
)
async def test_what_is_kept_counts_with_the_memory_that_it_takes(said: Json) -> None:
    recent = RecentReadings()
    by = reader(recent)
    await read(by, body_of(["a"]))
    recent.forget()
    gc.collect()
    tracemalloc.start()
    try:
        await read(by, long(orjson.dumps({"tools": [said], "messages": [said] * 100})))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    _, size_bytes = kept(recent)
    assert 0.7 * taken < size_bytes < 3 * taken


async def test_an_erasure_drops_everything_also_what_is_being_read() -> None:
    recent = RecentReadings()
    by = reader(recent)
    await read(by, body_of(["a", "b", "c"]))
    large = asyncio.create_task(read(by, body_of([f"{at} {'words ' * 100}" for at in range(200)])))
    await asyncio.sleep(0)
    recent.forget()
    assert kept(recent) == [0, 0]
    await large
    assert kept(recent) == [0, 0]
