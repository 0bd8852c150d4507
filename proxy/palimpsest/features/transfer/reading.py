"""
The reading of files of any kind: which kind one is, and its turns.

A part that cannot be read is named and passed over; the rest of its file is still read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from palimpsest.domain import Fact
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import ForgottenFact, PortableTurn
from palimpsest.features.transfer import claude_account, claude_code, codex, lines, openai_account
from palimpsest.features.transfer.backup_file import MANIFEST
from palimpsest.features.transfer.files import UNREADABLE, File, files_in
from palimpsest.features.transfer.trees import Tree, turns_of
from palimpsest.wire.values import loads

LOOKED_AT_LINES = 100  # for a known format; then the file is refused: sessions begin with titles and snapshots
LOOKED_AT_BYTES = 16 << 20  # likewise: a few bytes that are compressed may be gigabytes without a line feed
GLANCE_BYTES = 4096
BLANK = b"\xef\xbb\xbf \t\r\n"
LONGEST_LINE_BYTES = 256 << 20  # a request is smaller, and a line holds one

CHUNK_BYTES = 1 << 20
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]|"', re.S)  # the last alternative: a string that is cut off


@dataclass(slots=True)
class ReadResult:
    """What has been read so far, and what could not be read."""

    kinds: Counter[str] = field(default_factory=Counter)  # files by kind
    broken: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # files that hold no conversations
    facts: list[Fact] = field(default_factory=list)  # that our own exports hold
    forgotten: list[ForgottenFact] = field(default_factory=list)  # likewise

    def wrong(self, place: str, why: str) -> None:
        self.broken.append(f"{place}: {why}")


def turns_in(paths: list[Path], found: ReadResult) -> Iterator[PortableTurn]:
    """The turns of files and of all files in folders, parents in front of their children."""
    for file in files_in(paths):
        try:
            with file.open() as stream:
                yield from _turns(file, stream, found)
        except UNREADABLE as cause:
            found.wrong(file.name, f"cannot be read on: {cause}")


def _turns(file: File, stream: BinaryIO, found: ReadResult) -> Iterator[PortableTurn]:
    """The turns of a file; its first bytes decide the format."""
    with file.open() as glance:  # an account's export may be one line of some hundred megabytes
        start = glance.read(GLANCE_BYTES).lstrip(BLANK)
    if start.startswith(MANIFEST.encode() + b"\0"):  # the first member of a tar archive
        found.wrong(file.name, "that is a backup: palimpsest restore puts it in place")
        return
    if start.startswith(b"["):
        yield from _conversations(file, stream, found)
        return
    line, number = stream.readline(LONGEST_LINE_BYTES), 1
    while line and not line.strip(BLANK):
        line, number = stream.readline(LONGEST_LINE_BYTES), number + 1
    first = _json_or_none(line)
    if lines.is_header(first):
        found.kinds["palimpsest"] += 1
        yield from _exported(file, stream, first, found)
    elif line.strip(BLANK) == b"{" or _reader(first) is not None:  # a conversation by itself
        with file.open() as again:
            yield from _conversations(file, again, found)
    else:
        yield from _session(file, line, number, stream, found)


def _exported(file: File, stream: BinaryIO, header: Any, found: ReadResult) -> Iterator[PortableTurn]:
    """The turns of an export of ours, a line each; broken lines are noted."""
    try:
        lines.check_header(header)
    except WireError as wrong:
        found.wrong(file.name, str(wrong))
        return
    for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE_BYTES), b""), 2):
        if not line.strip():
            continue
        try:
            value = _parsed(line)
            if lines.is_fact(value):
                found.facts.append(lines.fact_from_line(value))
            elif lines.is_forgotten(value):
                found.forgotten.append(lines.forgotten_from_line(value))
            else:
                yield lines.from_line(value)
        except WireError as wrong:
            found.wrong(f"{file.name}:{number}", str(wrong))


def _reader(value: Any) -> tuple[str, Callable[[Any], Tree]] | None:
    """The program that wrote a conversation, and what reads it; None: not known."""
    for kind in (openai_account, claude_account):
        if kind.is_conversation(value):
            return kind.PROGRAM, kind.tree_of
    return None


def _conversations(file: File, stream: BinaryIO, found: ReadResult) -> Iterator[PortableTurn]:
    """The turns of an account's export; users, projects and ratings in it are passed over."""
    kinds: set[str] = set()
    for number, element in enumerate(elements(stream), 1):
        place = f"{file.name}, conversation {number}"
        try:
            value = _parsed(element)
            reader = _reader(value)
            if reader is None:
                continue
            kinds.add(reader[0])
            yield from turns_of(reader[1](value))
        except (WireError, RecursionError) as wrong:
            found.wrong(place, str(wrong))
    found.kinds.update(kinds)
    if not kinds:
        found.unknown.append(file.name)


def _session(file: File, line: bytes, number: int, stream: BinaryIO, found: ReadResult) -> Iterator[PortableTurn]:
    """The turns of a program's session file, whose first lines tell the program."""
    session: claude_code.Session | codex.Session | None = None
    waiting: list[tuple[int, bytes]] = []
    broken: list[tuple[str, str]] = []
    looked_at = 0

    def take(at: int, text: bytes) -> None:
        assert session is not None
        try:
            session.take(_parsed(text))
        except (WireError, RecursionError) as wrong:
            broken.append((f"{file.name}:{at}", str(wrong)))

    while line:
        if session is None:
            value = _json_or_none(line)
            kind = next((kind for kind in (claude_code, codex) if kind.is_line(value)), None)
            if kind is not None:
                session = kind.Session()
                found.kinds[kind.PROGRAM] += 1
                for earlier in waiting:
                    take(*earlier)
            elif number > LOOKED_AT_LINES or looked_at > LOOKED_AT_BYTES:
                break
            elif line.strip():
                waiting.append((number, line))
                looked_at += len(line)
        if session is not None and line.strip():
            take(number, line)
        number, line = number + 1, stream.readline(LONGEST_LINE_BYTES)
    if session is None:
        found.unknown.append(file.name)
        return
    for place, why in broken:
        found.wrong(place, why)
    for tree in session.trees():
        yield from turns_of(tree)


def _parsed(data: bytes) -> Any:
    try:
        return loads(data)
    except ValueError as cause:
        raise WireError(f"not JSON: {cause}") from cause


def _json_or_none(data: bytes) -> Any:
    try:
        return orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None


def elements(stream: BinaryIO) -> Iterator[bytes]:
    """
    The bytes of each object in a list, or of objects one behind the other.

    What is cut off at the end comes last, as it is.
    """
    data, scanned, depth, start, base = b"", 0, 0, -1, -1
    while True:
        chunk = stream.read(CHUNK_BYTES)
        if base < 0:
            data += chunk
            begun = data.lstrip(b"\xef\xbb\xbf \t\r\n")
            if not begun and chunk:
                continue
            base = int(begun.startswith(b"["))  # depth at which an element begins
        else:
            data += chunk
        for token in _TOKENS.finditer(data, scanned):
            sign = token[0]
            if sign == b'"':  # the rest of the string is still to come
                scanned = token.start()
                break
            scanned = token.end()
            if sign in b"[{":
                if depth == base and sign == b"{":
                    start = token.start()
                depth += 1
            elif sign in b"]}":
                depth = max(depth - 1, 0)
                if depth == base and start >= 0:
                    yield data[start : token.end()]
                    start = -1
        else:
            scanned = max(scanned, len(data) if start < 0 and depth <= base else scanned)
        keep = start if start >= 0 else scanned
        data, scanned, start = data[keep:], scanned - keep, 0 if start >= 0 else -1
        if not chunk:
            if start == 0:
                yield data
            return
