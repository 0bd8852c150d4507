"""
The export and its format: JSON Lines, a header, then one turn a line, then facts; see `docs/portability.md`.

A field with its default is left out, and the fields stand in one order, so that the same turns make the same bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import MISSING, Field
from enum import Enum
from functools import partial
from typing import Any, TypeGuard, TypeVar, get_type_hints

import orjson

from palimpsest.domain import BlockKind, Ending, Event, Fact, Json, Role
from palimpsest.domain.errors import WireError
from palimpsest.domain.facts import by_tool
from palimpsest.domain.frozen import described_fields, json_value
from palimpsest.domain.portable_turn import (
    MAX_SECONDS,
    ForgottenFact,
    Place,
    PortableBlock,
    PortableMessage,
    PortableTurn,
    Run,
)
from palimpsest.store.engine import Engine
from palimpsest.store.knowledge.added_facts import KeyOf, added_facts
from palimpsest.store.knowledge.forgotten_facts import forgotten
from palimpsest.store.turns.transcript import Selection, Transcript
from palimpsest.wire.values import dumps

VERSION = 1
HEADER = {"palimpsest": "export", "version": VERSION}
MAX_POSITION = 10_000_000  # more messages than any request holds
IMPORT = "import"  # the tool of facts that name none
OPEN = "open"  # the ending of a turn that is still under way

T = TypeVar("T")


def header_line() -> bytes:
    return orjson.dumps(HEADER) + b"\n"


def is_header(value: Any) -> bool:
    return isinstance(value, dict) and value.get("palimpsest") == HEADER["palimpsest"]


def check_header(value: Json) -> None:
    """Check the first line of an export; raises `WireError`: a newer version wrote the file."""
    version = value.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise WireError(
            f"an export of version {version}, and only versions up to {VERSION} are known: install a newer palimpsest"
        )


def to_line(turn: PortableTurn) -> bytes:
    """One turn as a line of an export, with its line feed."""
    record: Json = {
        "turn": turn.id,
        "conversation": turn.conversation,
        "tenant": turn.tenant,
        "user": turn.user,
        "scope": turn.scope,
        "role": turn.role.value,
        "serves": turn.serves,
        "parent": turn.parent,
        "event": turn.event.value,
        "model": turn.model,
        "created_at": turn.created_at,
        "kept": [list(run) for run in turn.kept],
        "kept_elsewhere": [[position, *place] for position, place in turn.kept_elsewhere],
        "messages": [_message(message, position=message.position) for message in turn.messages],
        "answer": _message(turn.answer, created_at=turn.answered_at) if turn.answer else None,
        "ended_at": None if turn.answer else turn.answered_at,
        "ending": turn.ending.value if turn.ending else OPEN,
        "prompt_tokens": turn.prompt_tokens,
        "added": _block(turn.block) if turn.block else None,
        "sheds_blocks": turn.sheds_blocks,
    }
    always = ("turn", "conversation", "created_at", "ending")
    kept = {name: value for name, value in record.items() if name in always or value not in ("", None, [], False, 0.0)}
    return dumps(kept).encode() + b"\n"


def from_line(value: Any) -> PortableTurn:
    """
    Read the value of a line. Raises `WireError`: it is not a line of an export; the text quotes no word of a message.
    """
    if not isinstance(value, dict):
        raise WireError("not an object")
    answer = value.get("answer")
    read = _Fields(value)
    ending = read.text("ending")
    turn = PortableTurn(
        id=read.text("turn", is_required=True),
        conversation=read.text("conversation", is_required=True),
        created_at=read.time("created_at"),
        messages=tuple(_message_of(one) for one in read.listed("messages")),
        answer=_message_of(answer | {"position": 0}) if isinstance(answer, dict) else None,
        answered_at=_Fields(answer).time("created_at") if isinstance(answer, dict) else read.time("ended_at"),
        ending=None if ending == OPEN else read.one_of("ending", Ending, Ending.COMPLETE),
        parent=read.text("parent"),
        kept=tuple(_run(one) for one in read.listed("kept")),
        kept_elsewhere=tuple(_read_kept_elsewhere(one) for one in read.listed("kept_elsewhere")),
        role=read.one_of("role", Role, Role.MAIN),
        event=read.one_of("event", Event, Event.START),
        tenant=read.text("tenant"),
        user=read.text("user"),
        scope=read.text("scope"),
        serves=read.text("serves"),
        model=read.text("model"),
        prompt_tokens=_read_tokens(value.get("prompt_tokens")),
        block=_block_of(value["added"]) if value.get("added") is not None else None,
        sheds_blocks=value.get("sheds_blocks") is True,
    )
    if len({message.position for message in turn.messages}) < len(turn.messages):
        raise WireError("messages: two have the same position")
    return turn


def is_fact(value: Any) -> bool:
    """Whether the value of a line is an added fact."""
    return isinstance(value, dict) and "fact" in value


def fact_to_line(fact: Fact) -> bytes:
    """An added fact as a line of an export, with its line feed."""
    record: Json = {"fact": fact.id}
    for value in (fact, fact.source):
        exported = {name for name, one in _exported_fields(value)} - {"source"}
        record |= {name: content for name, content in json_value(value, has_defaults=False).items() if name in exported}
    return dumps(record).encode() + b"\n"


def fact_from_line(value: Json) -> Fact:
    """Read the value of such a line; raises as `from_line`."""
    read = _Fields(value)
    kinds = get_type_hints(Fact)
    given = {
        one.name: read.of(name, kinds[one.name], one.default)
        for name, one in _exported_fields(Fact)
        if name != "source"
    }
    source = by_tool(read.text("tool") or IMPORT, read.text("who"))
    return Fact(id=read.text("fact", is_required=True), source=source, **given)


def _exported_fields(of: Any) -> Iterable[tuple[str, Field[Any]]]:
    return ((name, one) for name, one in described_fields(of) if one.metadata["is_exported"])


def is_forgotten(value: Any) -> bool:
    """Whether the value of a line says that a fact stays forgotten."""
    return isinstance(value, dict) and "forgotten" in value


def forgotten_to_line(fact: ForgottenFact) -> bytes:
    """A forgotten fact as a line of an export, with its line feed; without its text."""
    record: Json = {"forgotten": list(fact.place), "tenant": fact.tenant, "start": fact.start, "stop": fact.stop}
    record |= {"part": fact.part} if fact.part else {}
    record |= {"shared": True} if fact.is_shared else {}
    return dumps(record).encode() + b"\n"


def forgotten_from_line(value: Json) -> ForgottenFact:
    """Read the value of such a line; raises as `from_line`."""
    read = _Fields(value)
    place = _read_place(value["forgotten"])
    start, stop, part = (int(read.number(name)) for name in ("start", "stop", "part"))
    if not all(map(_is_place, (place[1], start, stop, part))):
        raise WireError("forgotten: no message can have its position")
    return ForgottenFact(read.text("tenant"), place, start, stop, part, value.get("shared") is True)


def _is_place(position: Any) -> TypeGuard[int]:
    return type(position) is int and 0 <= position <= MAX_POSITION


def _message(message: PortableMessage, **placed: float) -> Json:
    marks = {"summary": message.is_summary, "erased": message.is_erased}
    return placed | {name: True for name, holds in marks.items() if holds} | {"message": message.raw}


def _message_of(value: Any) -> PortableMessage:
    """A message of an export line; raises WireError where it is none."""
    raw = value.get("message") if isinstance(value, dict) else None
    position = value.get("position") if isinstance(value, dict) else None
    if not isinstance(raw, dict) or not isinstance(raw.get("role"), str) or not _is_place(position):
        raise WireError("messages: one has no position, or is not an object with a role")
    return PortableMessage(position, raw, value.get("summary") is True, value.get("erased") is True)


def _block(block: PortableBlock) -> Json:
    record: Json = {"kind": block.kind.value, "text": block.text, "position": block.position}
    if block.role:
        record["role"] = block.role
    return record | {"tokens": block.tokens, "quotes": [list(place) for place in block.quotes]}


def _block_of(value: Any) -> PortableBlock:
    """A block of an export line; raises WireError where it is none."""
    if not isinstance(value, dict):
        raise WireError("added: not an object")
    read = _Fields(value)
    return PortableBlock(
        kind=read.one_of("kind", BlockKind, BlockKind.RECALL),
        text=read.text("text", is_required=True),
        position=int(read.number("position")),
        role=read.text("role"),
        tokens=int(read.number("tokens")),
        quotes=tuple(_read_place(one) for one in read.listed("quotes")),
    )


def _run(value: Any) -> Run:
    """A run of kept messages: position, index, count; raises WireError for anything else."""
    if not _are_numbers(value, 3):
        raise WireError("kept: not a list of [position, index, count]")
    position, index, count = value
    return position, index, count


def _read_kept_elsewhere(value: Any) -> tuple[int, Place]:
    if not isinstance(value, list) or len(value) != 3 or not _are_numbers(value[:1], 1):
        raise WireError("kept_elsewhere: not a list of [position, turn, position]")
    return value[0], _read_place(value[1:])


def _read_place(value: Any) -> Place:
    """The place of a message: turn id and position; raises WireError for anything else."""
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str) or type(value[1]) is not int:
        raise WireError("a place is not [turn, position]")
    return value[0], value[1]


def _are_numbers(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and all(map(_is_place, value))


def _read_tokens(value: Any) -> int | None:
    if value is not None and type(value) is not int:
        raise WireError("prompt_tokens: not a whole number")
    return value


class _Fields:
    """The fields of an object, each read as what it has to be."""

    def __init__(self, value: Json) -> None:
        self._value = value

    def text(self, name: str, is_required: bool = False) -> str:
        """The text of a field, or ""; raises WireError where it is missing though required."""
        found = self._value.get(name, "")
        if not isinstance(found, str) or (is_required and not found):
            raise WireError(f"{name}: not a text" if found else f"{name}: missing")
        return found

    def number(self, name: str) -> float:
        """The number of a field, or 0."""
        found = self._value.get(name, 0.0)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise WireError(f"{name}: not a number")
        return found

    def time(self, name: str) -> float:
        """The Unix seconds of a field, within 1970 to 9999."""
        found = self.number(name)
        if not 0 <= found < MAX_SECONDS:
            raise WireError(f"{name}: not a time from 1970 to 9999, in seconds")
        return found

    def of(self, name: str, kind: Any, default: Any) -> Any:
        """The value of a field of this type; `MISSING` as default: it is required."""
        if default is not MISSING and self._value.get(name) is None:
            return default
        if kind is bool:
            return self._value[name] is True
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self.one_of(name, kind, default)
        return self.text(name, is_required=default is MISSING) if kind is str else self.time(name)

    def listed(self, name: str) -> list[Any]:
        """The list of a field, or an empty one."""
        found = self._value.get(name, [])
        if not isinstance(found, list):
            raise WireError(f"{name}: not a list")
        return found

    def one_of(self, name: str, kind: Callable[[str], T], otherwise: T) -> T:
        """The member of an enumeration that a field names, or `otherwise`."""
        found = self._value.get(name)
        if found is None:
            return otherwise
        try:
            return kind(found)
        except ValueError:
            raise WireError(f"{name}: not known") from None


async def export(database: Engine, selection: Selection, key_of: KeyOf) -> AsyncIterator[bytes]:
    """The lines of an export, some at a time, the header first; `key_of` gives tenants' keys."""
    yield header_line()
    transcript = Transcript(selection)
    while page := await database.ask(transcript.page):
        yield b"".join(map(to_line, page))
    last = 0
    while True:
        look = partial(forgotten, selection=selection, after=last, key_of=key_of)
        last, facts = await database.ask(look)
        if not last:
            break
        if facts:
            yield b"".join(map(forgotten_to_line, facts))
    if selection.conversation:
        return
    while rows := await database.ask(partial(added_facts, selection=selection, after=last)):
        last = rows[-1][0]
        yield b"".join(fact_to_line(fact) for _, fact in rows)
