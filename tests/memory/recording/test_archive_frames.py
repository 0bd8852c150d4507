"""What is sent to the archive process and back arrives as it was, however the socket cuts it."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from palimpsest.domain import Block, BlockKind, Ending, LinkKind, ParentListing, ToolCall
from palimpsest.memory.recording.archive_frames import Applied, Begin, Progress, pack, unpacked, without_turn
from palimpsest.memory.recording.write_batch import AnswerItem, Outcome, RequestItem, WriterState
from palimpsest.settings.policy import Policy
from palimpsest.wire import chat
from palimpsest.wire.values import dumps

from tests.memory.recording.test_archivist import turn_of
from tests.talking import user

MESSAGE = user("hello " * 30)
TURN = replace(
    turn_of(MESSAGE),
    links=((LinkKind.CALL, 1 << 62), (LinkKind.PHRASE, -3)),
    block=Block("text", BlockKind.RECALL, (1, 2), 7),
    whole=ParentListing(1, (4, 5, 6)),
    explain={"said": ["a", {"b": None}], "at": 1.5},
)
CALLED = replace(TURN.new[0].message, calls=(ToolCall("c-1", "read", "{}"),), media=("sha256:00;1",))

FRAMES = [
    RequestItem(3, replace(TURN, new=(replace(TURN.new[0], message=CALLED),)), 180, 999),
    AnswerItem(4, TURN, 9, 12, chat, (b"{", b"}"), True, Ending.CLIENT_GONE, 2.5),
    without_turn(AnswerItem(5, TURN, 0, 0, chat, (), False, Ending.COMPLETE, 2.5)),
    Applied(Policy(data=Path("elsewhere"))),
    Progress((Outcome(3), Outcome(4, True), Outcome(5, False, 8)), WriterState(True, frozenset({"t"}), ("w",)), ()),
    Progress((), WriterState(), (("fault", ("journal",)), ("observe", ("journal", 0.5)))),
    Begin(Policy(data=Path("data")), b"secret"),
]


async def all_of(data: bytes, at_a_time: int) -> list[Any]:
    stream = asyncio.StreamReader()
    reading = asyncio.create_task(listed(stream))
    for start in range(0, len(data), at_a_time):
        stream.feed_data(data[start : start + at_a_time])
        await asyncio.sleep(0)
    stream.feed_eof()
    return await reading


async def listed(stream: asyncio.StreamReader) -> list[Any]:
    return [value async for value in unpacked(stream)]


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 20])
async def test_frames_arrive_in_order_and_as_they_were_wherever_they_are_cut(at_a_time: int) -> None:
    assert await all_of(b"".join(map(pack, FRAMES)), at_a_time) == FRAMES


async def test_frame_whose_sender_died_in_the_middle_of_it_is_left_out() -> None:
    whole, half = pack(FRAMES[3]), pack(FRAMES[0])[:-1]
    assert await all_of(whole + half, 1 << 20) == [FRAMES[3]]


@pytest.mark.parametrize("value", [TURN, TURN.new[0], TURN.new[0].fingerprint, CALLED, TURN.shape])
def test_every_field_of_what_is_pickled_by_its_fields_can_be_given_to_its_constructor(value: Any) -> None:
    assert all(field.init for field in fields(value))


async def test_message_is_sent_as_deep_as_it_can_be_read() -> None:
    deep: Any = ["words"]
    for _ in range(1000):
        deep = [deep]
    message = replace(CALLED, raw={"role": "user", "deep": deep})
    item = RequestItem(3, replace(TURN, new=(replace(TURN.new[0], message=message),)), 180, 999)
    (found,) = await all_of(pack(item), 1 << 20)
    (new,) = found.turn.new
    assert dumps(new.message.raw) == dumps(message.raw)
    assert new.message.calls == CALLED.calls and found.turn.links == TURN.links
