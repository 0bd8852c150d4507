"""
The log: its format, and the rule that only our own words, numbers and texts under known names reach it.

Message text, credentials and query strings stay out at every level, whoever logs: text under any other name is
withheld, exceptions show where they happened but not what they said, and libraries are heard from `warning` up (their
debug lines repeat what they were given: aiosqlite's are whole rows).
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

from palimpsest.domain.errors import PalimpsestError

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import LogPolicy

# Names under which text is written. Whoever adds one vouches that nothing a client or an upstream sent gets there.
TEXT_FIELDS = frozenset(
    {
        *("event", "level", "timestamp", "logger", "error", "fault", "trace", "reason", "hint"),
        *("where", "doing", "stage", "state", "note", "kind", "role", "name", "version"),
        *("host", "upstream", "method", "path", "file", "folder", "conversation", "turn", "tenant"),
        *("request", "history", "ending", "cache_rebuild"),
    }
)
WITHHELD = "[withheld]"

HEARD_FROM_INFO = ("uvicorn.error",)  # "application startup complete" and the address; its access log is off

LEVEL_CHARS = 9  # the longest of them, so that events stand below each other

_AMBIGUOUS = re.compile(r"[ \t=\r\n\"']")  # where the end of a value would not be seen
_QUERY = re.compile(r"\?[^\s?]*=\S*")

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def configure(policy: LogPolicy, stream: TextIO = sys.stderr) -> None:
    """Write all log lines of this process, our own and the libraries', to `stream` in the policy's format."""
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _trace,
        _guard,
    ]
    renderer: Processor = _plain_line
    if policy.format == "json":
        renderer = structlog.processors.JSONRenderer()
    elif stream.isatty():
        renderer = structlog.dev.ConsoleRenderer(pad_event_to=0)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_first_line, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    level = logging.getLevelNamesMapping()[policy.level.upper()]
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    logging.captureWarnings(True)
    for name in HEARD_FROM_INFO:
        logging.getLogger(name).setLevel(max(level, logging.INFO))
        for mine in (name, name.partition(".")[0]):  # uvicorn's own handlers would write each line a second time
            logging.getLogger(mine).handlers.clear()
            logging.getLogger(mine).propagate = True
    # Not by way of `logging`, which doubles the price of a line, and each request writes one. Loggers are not cached:
    # they would keep the format and the level that they began with.
    output = _Output(stream)
    structlog.configure(
        processors=[*common, renderer],
        logger_factory=lambda *_: output,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )


class _Output:
    """Where our own lines go. A stream that cannot be written to loses lines, and stops nobody."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        with suppress(OSError, ValueError):  # a full disk, a pipe that nobody reads, a stream that was closed
            self._stream.write(f"{line}\n")
            self._stream.flush()

    debug = info = warning = error = critical = exception = write


def silence(*names: str) -> None:
    """Silence loggers whose lines quote what passes through, at any level."""
    for name in names:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).disabled = True


def _first_line(_logger: Any, _method: str, line: EventDict) -> EventDict:
    """Cut a library's line to its first: asyncio puts the repr of whatever failed behind it."""
    line["event"] = str(line["event"]).partition("\n")[0]
    return line


def _trace(_logger: Any, _method: str, line: EventDict) -> EventDict:
    """Replace an exception by its traceback, with the message only if it is one of ours."""
    failure = _exception_of(line.pop("exc_info", None))
    if failure is not None:
        frames = traceback.extract_tb(failure.__traceback__)
        line["error"] = _cause_texts(failure)
        line["trace"] = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return line


def _cause_texts(failure: BaseException) -> str:
    """The causes of a failure: our own messages and the operating system's, otherwise only names of exceptions."""
    if isinstance(failure, PalimpsestError):
        return str(failure)
    name = type(failure).__name__
    if isinstance(failure, OSError) and failure.strerror:
        return f"{name} ({failure.strerror})"
    if isinstance(failure, BaseExceptionGroup):
        return f"{name} ({'; '.join(map(_cause_texts, failure.exceptions))})"
    return name if failure.__cause__ is None else f"{name}, from {_cause_texts(failure.__cause__)}"


def _exception_of(info: BaseException | _ExcInfo | bool | None) -> BaseException | None:
    """The exception that `exc_info` names; True: the one being handled."""
    if isinstance(info, BaseException):
        return info
    if isinstance(info, tuple):
        return info[1]
    return sys.exc_info()[1] if info else None


def _plain_line(_logger: Any, _method: str, line: EventDict) -> str:
    """Render a line for people, as structlog's console does, in a fifth of the time."""
    head = f"{line.pop('timestamp')} [{line.pop('level'):<{LEVEL_CHARS}}] {line.pop('event')}"
    return " ".join((head, *(f"{name}={_quoted(line[name])}" for name in sorted(line))))


def _quoted(value: Any) -> str:
    text = str(value)
    return repr(text) if _AMBIGUOUS.search(text) else text


def _guard(_logger: Any, _method: str, line: EventDict) -> Mapping[str, Any]:
    return {key: _shown_value(key, value) for key, value in line.items()}


def _shown_value(key: str, value: Any) -> Any:
    if key.startswith("_"):
        return value  # structlog's own, taken out before rendering
    if not isinstance(value, str):
        if isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, (int, float)):
            return value
    if key not in TEXT_FIELDS:
        return WITHHELD
    text = str(value)
    return _QUERY.sub("?[query]", text) if "?" in text else text
