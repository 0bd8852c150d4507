"""
The data sets: files of JSON Lines, one conversation a line, optionally gzipped.

    {"id", "sessions": [{"date", "messages": [{"id", "role", "content", "name"?, "date"?, "tool_calls"?, ...}]}],
     "questions": [{"id", "question", "answer", "category", "evidence": [message ids], "rubric"?}]}
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from palimpsest.domain import Json, ToolCall
from palimpsest.domain.errors import PolicyError, WireError
from palimpsest.wire.message import read_message

T = TypeVar("T")

ENDINGS = (".jsonl", ".jsonl.gz")
ISO_8601 = "ISO 8601"
DATE_FORMATS = (  # beside it
    "%I:%M %p on %d %B, %Y",  # LoCoMo
    "%B-%d-%Y",  # BEAM
    "%Y/%m/%d (%a) %H:%M",  # LongMemEval
)
UNDATED = datetime(2024, 1, 1, tzinfo=UTC)  # any day will do, as long as it is the same in every run
SPEAKERS = ("user", "assistant")  # whose `name` is a person's; that of a tool message names the tool


class DatasetError(PolicyError):
    """The data is not what it should be. The text names file and line, and what is expected there."""


@dataclass(frozen=True, slots=True)
class DatasetMessage:
    """
    One message.

    `text` is what a client would send, "Name: content" where the data names a speaker; `content` is without the name,
    and what counts as evidence. `at` is in Unix seconds, never falling; `raw` is the message in OpenAI chat form.
    """

    id: str
    role: str
    text: str
    content: str
    at: float
    session: int  # index
    calls: tuple[ToolCall, ...]
    raw: Json

    @property
    def day(self) -> str:
        """YYYY-MM-DD, UTC."""
        return datetime.fromtimestamp(self.at, UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a conversation, and where the answer stands. `evidence` are ids of messages that exist."""

    id: str
    text: str
    answer: str | None
    category: str
    evidence: tuple[str, ...] = ()
    rubric: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    messages: tuple[DatasetMessage, ...]
    questions: tuple[Question, ...]
    sessions: int

    def gold(self, question: Question) -> tuple[int, ...]:
        """Indexes of the messages that hold the answer."""
        wanted = set(question.evidence)
        return tuple(at for at, said in enumerate(self.messages) if said.id in wanted)

    def asked_about(self, before: int) -> list[tuple[Question, tuple[int, ...]]]:
        """The questions all of whose evidence stands before a message, with the indexes of that."""
        found = ((question, self.gold(question)) for question in self.questions)
        return [(question, gold) for question, gold in found if gold and max(gold) < before]


def read(path: Path, limit: int = 0) -> list[Conversation]:
    """
    The conversations of one file, or of a folder that holds `dev.jsonl.gz` or nothing but one such file.

    Args:
        limit: questions of each conversation, taken evenly from all of them; 0: all.

    Raises:
        DatasetError: it cannot be read.
    """
    file = _file(path)
    found = []
    try:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    found.append(_conversation(line, f"reading {file}, line {number}", limit))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as cause:
        raise DatasetError(
            f"reading {file}: {cause}; expected JSON Lines, gzipped where the name ends in .gz"
        ) from cause
    if not found:
        raise DatasetError(f"reading {file}: it is empty; expected one conversation a line")
    return found


def spread(items: Iterable[T], limit: int) -> Sequence[T]:
    """Take `limit` items (0: all) evenly: questions often stand in the order of their categories."""
    every = list(items)
    if not limit or limit >= len(every):
        return every
    return [every[at * len(every) // limit] for at in range(limit)]


def _file(path: Path) -> Path:
    """The data file that a path means."""
    if not path.is_dir():
        return path
    held = sorted(file for file in path.iterdir() if file.name.endswith(ENDINGS))
    usual = [file for file in held if file.name.startswith("dev.")] or held
    if len(usual) != 1:
        names = ", ".join(file.name for file in held) or "none"
        raise DatasetError(f"looking for a .jsonl or .jsonl.gz file in {path}: {names}; name the file to measure")
    return usual[0]


def _conversation(line: str, doing: str, limit: int) -> Conversation:
    """Read a conversation from a line."""
    try:
        told = json.loads(line)
        sessions = told["sessions"]
        messages = tuple(_messages(sessions, doing))
        there = {said.id for said in messages}
        questions = tuple(_question(asked, there) for asked in spread(told.get("questions") or (), limit))
        return Conversation(str(told["id"]), messages, questions, len(sessions))
    except json.JSONDecodeError as cause:
        raise DatasetError(f"{doing}: {cause}; expected one JSON object a line") from cause
    except KeyError as cause:
        raise DatasetError(f"{doing}: a conversation, session, message or question lacks {cause}") from cause
    except (AttributeError, TypeError, WireError) as cause:
        raise DatasetError(f"{doing}: {cause}; expected an object with id, sessions and questions") from cause


def _messages(sessions: Sequence[Mapping[str, Any]], doing: str) -> Iterator[DatasetMessage]:
    """Read the messages of sessions, in order."""
    at = UNDATED.timestamp() if not _dated(sessions) else 0.0
    for index, session in enumerate(sessions):
        at = max(at, _time(session.get("date"), doing))
        for told in session["messages"]:
            at = max(at, _time(told.get("date"), doing))
            raw = {key: value for key, value in told.items() if key not in ("id", "date")}
            content = raw.get("content") or ""
            if raw["role"] in SPEAKERS and (name := raw.pop("name", "")):
                raw["content"] = f"{name}: {content}"
            read = read_message(raw)
            yield DatasetMessage(str(told["id"]), read.role, read.text, content, at, index, read.calls, raw)


def _dated(sessions: Sequence[Mapping[str, Any]]) -> bool:
    return any(held.get("date") for session in sessions for held in (session, *session["messages"]))


def _time(date: str | None, doing: str) -> float:
    """Unix seconds; 0 where there is no date. Dates without a zone are taken as UTC."""
    if not date:
        return 0.0
    for form in (ISO_8601, *DATE_FORMATS):
        with suppress(ValueError):
            read = datetime.fromisoformat(date) if form is ISO_8601 else datetime.strptime(date, form)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    raise DatasetError(f"{doing}: {date!r} is no date that is known here; expected {ISO_8601}, or {DATE_FORMATS[0]}")


def _question(told: Mapping[str, Any], there: set[str]) -> Question:
    answer = told.get("answer")
    return Question(
        id=str(told["id"]),
        text=told["question"],
        answer=None if answer is None else str(answer),
        category=str(told["category"]),
        evidence=tuple(id for id in dict.fromkeys(map(str, told.get("evidence") or ())) if id in there),
        rubric=tuple(map(str, told.get("rubric") or ())),
    )
