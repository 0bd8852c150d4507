"""
The frames that an archive process and its owner exchange over a socket pair: a length, then a pickled value.

Both ends are one program, and nobody else holds an end, so pickle can be trusted here. Data classes are pickled by
their fields: a first contact of 7,000 messages in 48 ms, where pickle's own way takes 71.
"""

from __future__ import annotations

import io
import pickle
import struct
from asyncio import StreamReader
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from copyreg import dispatch_table
from dataclasses import fields
from importlib import import_module
from operator import attrgetter
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from palimpsest.domain import (
    Added,
    Block,
    Cost,
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
from palimpsest.wire.values import dumps, loads_own

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
    """An answer to a turn that was sent with its request: the fields of its `AnswerItem` but for the turn."""

    turn_id: str
    answer: Mapping[str, Any]


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


Frame = Begin | Item | AnswerFrame | Unsent | Applied
"""What the process is sent."""


def plain_policy(policy: Policy) -> Policy:
    """A policy of plain objects, with what the process goes by alone: to unpickle it takes no pydantic."""
    sections = {name: SimpleNamespace(**dict(getattr(policy, name))) for name in SECTIONS}
    return cast("Policy", SimpleNamespace(data=policy.data, **sections))


def without_turn(item: AnswerItem) -> AnswerFrame:
    """The frame of an answer whose receiver has the turn already."""
    answer = {field.name: getattr(item, field.name) for field in fields(item) if field.name != "turn"}
    return AnswerFrame(item.turn.id, answer)


def pack(value: object) -> bytes:
    """A value as one frame; raises `RecursionError`: something else than a client's message is nested too deep."""
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
        AnswerItem,
        Outcome,
    )
}
_BY_FIELDS[ModuleType] = lambda wire: (import_module, (wire.__name__,))  # an answer names the wire that reads it


_OF_MESSAGE = [field.name for field in fields(Message)]


def _as_json(message: Message) -> tuple[Any, ...]:
    given = {name: getattr(message, name) for name in _OF_MESSAGE}
    return _of_json, tuple((given | {"raw": dumps(message.raw)}).values())


def _of_json(*values: Any) -> Message:
    """A message of its fields, with `raw` read from JSON."""
    given = dict(zip(_OF_MESSAGE, values, strict=True))
    return Message(**given | {"raw": loads_own(given["raw"])})


# A client may nest as deep as JSON is read, a thousand levels; pickle stops sooner, where the interpreter does.
_NESTED = _BY_FIELDS | {Message: _as_json}
