import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
import uvicorn
from palimpsest.domain import Note
from palimpsest.domain.errors import MemoryFault
from palimpsest.settings.policy import LogPolicy
from palimpsest.telemetry.logs import configure

SECRET = "the user's own words"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A place that log lines go to; afterwards logging is as it was."""
    root = logging.getLogger()
    before, configured = (root.handlers[:], root.level), structlog.get_config()
    yield io.StringIO()
    root.handlers[:], root.level = before
    logging.captureWarnings(False)
    structlog.configure(**configured)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines_carry_event_level_time_and_fields(stream: io.StringIO) -> None:
    configure(LogPolicy(format="json"), stream)
    structlog.get_logger().info("turn archived", turn=3, note=Note.CALM, error=None)
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "turn archived", "level": "info", "turn": 3, "note": "calm", "error": None}


def test_console_lines_are_one_line_each(stream: io.StringIO) -> None:
    configure(LogPolicy(), stream)
    structlog.get_logger().warning("no model", hint="palimpsest model install")
    assert stream.getvalue().count("\n") == 1
    assert "no model" in stream.getvalue()


def test_values_on_the_console_are_quoted_where_their_end_would_not_be_seen(stream: io.StringIO) -> None:
    configure(LogPolicy(), stream)
    structlog.get_logger().info("kept", reason="a = b\nc", note="calm", size=None)
    line = stream.getvalue()
    assert line.endswith("Z [info     ] kept note=calm reason='a = b\\nc' size=None\n")


def test_another_format_and_level_count_from_the_next_line_on(stream: io.StringIO) -> None:
    configure(LogPolicy(level="warning"), stream)
    log = structlog.get_logger()
    log.info("too small")
    configure(LogPolicy(format="json"), stream)
    log.info("said")
    assert [line["event"] for line in lines(stream)] == ["said"]


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_stream_that_cannot_be_written_to_stops_nobody(stream: io.StringIO, format: str) -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    configure(LogPolicy.model_validate({"format": format}), Full())
    structlog.get_logger().warning("said")
    closed = io.StringIO()
    configure(LogPolicy.model_validate({"format": format}), closed)
    closed.close()
    structlog.get_logger().warning("said")


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    configure(LogPolicy(level="warning", format="json"), stream)
    structlog.get_logger().info("small talk")
    structlog.get_logger().warning("news")
    assert [line["event"] for line in lines(stream)] == ["news"]


def test_text_under_a_name_that_nobody_vouched_for_is_withheld(stream: io.StringIO) -> None:
    configure(LogPolicy(level="debug", format="json"), stream)
    structlog.get_logger().debug("heard", text=SECRET, messages=[{"content": SECRET}], body=SECRET.encode(), size=20)
    (line,) = lines(stream)
    assert SECRET not in stream.getvalue()
    assert (line["text"], line["messages"], line["body"], line["size"]) == ("[withheld]",) * 3 + (20,)


def test_query_strings_are_cut_out_of_text(stream: io.StringIO) -> None:
    configure(LogPolicy(format="json"), stream)
    structlog.get_logger().info("refused", path="/v1/files?key=hidden", hint="did you mean port?")
    (line,) = lines(stream)
    assert (line["path"], line["hint"]) == ("/v1/files?[query]", "did you mean port?")


@pytest.mark.parametrize("format", ["json", "console"])
def test_an_exception_shows_where_and_not_what_it_said(stream: io.StringIO, format: str) -> None:
    configure(LogPolicy.model_validate({"format": format}), stream)
    try:
        raise KeyError(SECRET)
    except KeyError:
        structlog.get_logger().exception("memory failed", where="recall")
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    said = stream.getvalue()
    assert SECRET not in said
    assert said.count("KeyError") == 2
    assert said.count("test_an_exception_shows_where") == 2


def test_an_exception_tells_what_caused_it_and_what_the_system_said_of_it(stream: io.StringIO) -> None:
    configure(LogPolicy(format="json"), stream)
    try:
        try:
            raise PermissionError(13, "Permission denied", f"/{SECRET}")
        except OSError as cause:
            raise ExceptionGroup(SECRET, [ValueError(SECRET), MemoryFault("reading: denied")]) from cause
    except ExceptionGroup as group:
        structlog.get_logger().error("a task failed", exc_info=group)
        structlog.get_logger().error("a task failed", exc_info=RuntimeError(SECRET).with_traceback(None))
        structlog.get_logger().error("a task failed", exc_info=group.__cause__)
    assert SECRET not in stream.getvalue()
    assert [line["error"] for line in lines(stream)] == [
        "ExceptionGroup (ValueError; reading: denied)",
        "RuntimeError",
        "PermissionError (Permission denied)",
    ]


def test_handlers_that_a_library_set_up_before_do_not_write_around_ours(
    stream: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    uvicorn.Config(app="nobody:home").configure_logging()
    configure(LogPolicy(format="json"), stream)
    logging.getLogger("uvicorn.error").info("listening")
    assert [line["event"] for line in lines(stream)] == ["listening"]
    assert capsys.readouterr().err == ""


def test_a_fault_of_ours_says_what_to_try(stream: io.StringIO) -> None:
    configure(LogPolicy(format="json"), stream)
    structlog.get_logger().warning("memory failed", exc_info=MemoryFault("reading history: disk is full"))
    assert lines(stream)[0]["error"] == "reading history: disk is full"


async def test_libraries_do_not_repeat_what_they_were_given(stream: io.StringIO) -> None:
    configure(LogPolicy(level="debug", format="json"), stream)
    logging.getLogger("aiohttp.client").debug("sending %s", SECRET)
    asyncio.get_running_loop().call_exception_handler(
        {"message": "Task exception was never retrieved", "task": SECRET, "exception": ValueError(SECRET)}
    )
    assert SECRET not in stream.getvalue()
    assert [line["event"] for line in lines(stream)] == ["Task exception was never retrieved"]
