"""
The frames that an archive process and its owner exchange over a socket pair: a length, then a pickled value.

Both ends are one program, and nobody else holds an end, so pickle can be trusted here. Data classes are pickled by
their fields: a first contact of 7,000 messages in 48 ms, where pickle's own way takes 71.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
from asyncio import StreamReader
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from copyreg import dispatch_table
from dataclasses import fields
from importlib import import_module
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import orjson

from palimpsest.domain import (
    Added,
    Block,
    Cost,
    Ending,
    Fingerprint,
    Message,
    NewMessage,
    ParentListing,
    Shape,
    ToolCall,
    Turn,
    Usage,
    frozen,
)
from palimpsest.memory.recording.write_batch import AnswerItem, Item, Outcome, RequestItem, WriterState
from palimpsest.wire.values import dumps

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import Policy

OPEN_TURNS = 1000  # that the process holds until their answers come; both ends drop the oldest of more
SECTIONS = ("archive", "store", "model", "log")  # of a policy, which the process goes by
READ_BYTES = 256 * 1024  # at a time: all that has come, as a rule
HEADER = struct.Struct("!I")  # bytes of the value that follows; an answer has 8 MB at most


@frozen
class Begin:
    """The first frame to the process: all that it goes by."""

    policy: Policy
    secret: bytes


@frozen
class AnswerFrame:
    """An `AnswerItem`; without its turn, where that was sent with its request."""

    number: int
    turn_id: str
    turn: Turn | None
    chars: int
    size_bytes: int
    wire: str  # the name of its module
    payloads: tuple[bytes, ...]
    streamed: bool
    ending: Ending
    at: float


@frozen
class Unsent:
    """In place of an item that cannot be pickled: what a client sent may be nested as deep as it likes."""

    number: int
    turn_id: str
    reason: str


@frozen
class Applied:
    """Another policy, by which the process goes from now on."""

    policy: Policy


@frozen
class Progress:
    """A report of the process: finished items, its state, and calls of counters as names with arguments."""

    outcomes: tuple[Outcome, ...]
    state: WriterState
    counted: tuple[tuple[str, tuple[Any, ...]], ...]


Frame = Begin | RequestItem | AnswerFrame | Unsent | Applied
"""What the process is sent."""


def plain_policy(policy: Policy) -> Policy:
    """A policy of plain objects, with what the process goes by alone: to unpickle it takes no pydantic."""
    sections = {name: SimpleNamespace(**dict(getattr(policy, name))) for name in SECTIONS}
    return cast("Policy", SimpleNamespace(data=policy.data, **sections))


def frame_of(item: Item, *, with_turn: bool = True) -> RequestItem | AnswerFrame:
    """The frame of an item. An answer is sent without its turn if the receiver has that already."""
    if isinstance(item, RequestItem):
        return item
    return AnswerFrame(
        number=item.number,
        turn_id=item.turn.id,
        turn=item.turn if with_turn else None,
        chars=item.chars,
        size_bytes=item.size_bytes,
        wire=item.wire.__name__,  # type: ignore[attr-defined]  # a module
        payloads=tuple(item.payloads),
        streamed=item.streamed,
        ending=item.ending,
        at=item.at,
    )


def answer_item(frame: AnswerFrame, turn: Turn | None) -> AnswerItem:
    """Rebuild an answer item from its frame and its turn."""
    assert turn is not None
    wire: Any = import_module(frame.wire)
    return AnswerItem(
        number=frame.number,
        turn=turn,
        chars=frame.chars,
        size_bytes=frame.size_bytes,
        wire=wire,
        payloads=frame.payloads,
        streamed=frame.streamed,
        ending=frame.ending,
        at=frame.at,
    )


def pack(value: object) -> bytes:
    """A value as one frame; `RecursionError`: something else than a client's message is nested too deep."""
    try:
        return _frame(value, _BY_FIELDS)
    except RecursionError:
        return _frame(value, _NESTED)


def _frame(value: object, how: Mapping[type, Callable[[Any], tuple[Any, ...]]]) -> bytes:
    """A value pickled by the given reducers, behind a header with its length."""
    written = io.BytesIO()
    written.write(bytes(HEADER.size))
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = how
    pickler.dump(value)
    with written.getbuffer() as frame:
        HEADER.pack_into(frame, 0, len(frame) - HEADER.size)
    return written.getvalue()


def unpack(frame: bytes) -> Any:
    """The value of one whole frame."""
    return pickle.loads(memoryview(frame)[HEADER.size :])


async def unpacked(stream: StreamReader) -> AsyncIterator[Any]:
    """The values of all frames, until the other end is closed or its process dies."""
    buffer = bytearray()
    with suppress(ConnectionError):
        while data := await stream.read(READ_BYTES):
            buffer += data
            start = 0
            while len(buffer) - start >= HEADER.size:
                stop = start + HEADER.size + HEADER.unpack_from(buffer, start)[0]
                if stop > len(buffer):
                    break
                with memoryview(buffer)[start + HEADER.size : stop] as frame:
                    value = pickle.loads(frame)
                start = stop
                yield value
                value = None  # words of users, until the next comes
            del buffer[:start], data


def _by_fields(kind: Any) -> Callable[[Any], tuple[Any, tuple[Any, ...]]]:
    names = [field.name for field in fields(kind)]
    values = attrgetter(*names)
    return lambda value: (kind, values(value))


_BY_FIELDS = dispatch_table | {
    kind: _by_fields(kind)
    for kind in (
        Turn,
        NewMessage,
        Message,
        Fingerprint,
        ToolCall,
        Block,
        Added,
        Cost,
        Usage,
        ParentListing,
        Shape,
        RequestItem,
        AnswerFrame,
        Outcome,
    )
}


_OF_MESSAGE = [field.name for field in fields(Message)]


def _as_json(message: Message) -> tuple[Any, ...]:
    given = {name: getattr(message, name) for name in _OF_MESSAGE}
    return _of_json, tuple((given | {"raw": dumps(message.raw)}).values())


def _of_json(*values: Any) -> Message:
    """A message of its fields, with `raw` read from JSON."""
    given = dict(zip(_OF_MESSAGE, values, strict=True))
    try:
        raw = orjson.loads(given["raw"])
    except orjson.JSONDecodeError:  # half a surrogate pair
        raw = json.loads(given["raw"])
    return Message(**given | {"raw": raw})


# A client may nest as deep as JSON is read, a thousand levels; pickle stops sooner, where the interpreter does.
_NESTED = _BY_FIELDS | {Message: _as_json}
