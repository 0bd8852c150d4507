"""A stream is overheard whatever the chunks it comes in, and its last event is found before it is complete."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.wire.sse import SSETap

ROOM = 1 << 20
STREAM = (
    b": a comment\n"
    b'data: {"one": 1}\n\n'
    b'event: x\nid: 7\nretry: 10\ndata:{"two": 2}\n\n'
    b'data: {"three":\ndata: 3}\n\n'
    b"data\n\n"
    b"\n\n"
    b"data: \xc3\xa9\n\n"
)
PAYLOADS = [b'{"one": 1}', b'{"two": 2}', b'{"three":\n3}', b"\xc3\xa9"]
DONE = b"data: [DONE]\n\n"


def feed(tap: SSETap, *chunks: bytes) -> list[bytes]:
    return [payload for chunk in chunks for payload in tap.feed(chunk)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_ends_a_line(line_end: bytes) -> None:
    tap = SSETap(ROOM)
    assert feed(tap, (STREAM + DONE).replace(b"\n", line_end)) == PAYLOADS
    assert tap.terminal_at is not None


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_cut_at_any_byte_says_the_same(line_end: bytes) -> None:
    stream = (STREAM + DONE).replace(b"\n", line_end)
    for at in range(len(stream)):
        assert feed(SSETap(ROOM), stream[:at], stream[at:]) == PAYLOADS
    assert feed(SSETap(ROOM), *(stream[i : i + 1] for i in range(len(stream)))) == PAYLOADS


def test_a_byte_order_mark_may_stand_before_a_stream_alone() -> None:
    marked = b"\xef\xbb\xbfdata: 1\n\n"
    for at in range(len(marked)):
        assert feed(SSETap(ROOM), marked[:at], marked[at:], marked, DONE) == [b"1"]


def test_the_payload_comes_with_the_chunk_that_completes_it() -> None:
    tap = SSETap(ROOM)
    assert [tap.feed(chunk) for chunk in (b"data: a", b"b\n", b"\n", b"")] == [[], [], [b"ab"], []]


def test_the_terminal_event_begins_where_its_line_begins() -> None:
    tap = SSETap(ROOM)
    tap.feed(STREAM)
    assert tap.terminal_at is None
    tap.feed(b"data: last\n\n" + DONE)
    assert tap.terminal_at == len(b"data: last\n\n")
    tap.feed(b"more")
    assert tap.terminal_at == 0


@pytest.mark.parametrize("done", [DONE, b"data:[DONE]\r\n\r\n", b"data: [DONE]", b"data:  [DONE] \n\n"])
def test_the_terminal_event_is_never_forwarded_whole_wherever_the_stream_is_cut(done: bytes) -> None:
    stream = b"data: a\n\n" + done
    complete = stream.index(b"]") + 1  # a reader that has seen so much may stop
    for at in range(len(stream) + 1):
        tap, forwarded = SSETap(ROOM), 0
        for chunk in (stream[:at], stream[at:]):
            tap.feed(chunk)
            forwarded += len(chunk) if tap.terminal_at is None else tap.terminal_at
            if tap.terminal_at is not None:
                break
        assert tap.terminal_at is not None
        assert forwarded < complete


@pytest.mark.parametrize(
    "text", [b"data: [DONE]x\n\n", b"data: x[DONE]\n\n", b": [DONE]\n\n", b"event: [DONE]\n\n", b'data: "[DONE]"\n\n']
)
def test_other_events_do_not_end_a_stream(text: bytes) -> None:
    tap = SSETap(ROOM)
    tap.feed(text)
    assert tap.terminal_at is None


def test_what_a_broken_stream_left_unfinished_is_not_lost() -> None:
    tap = SSETap(ROOM)
    assert feed(tap, b"data: a\n\ndata: b\ndata: c") == [b"a"]
    assert tap.close() == [b"b\nc"]
    assert tap.close() == []


@pytest.mark.parametrize("chunks", [[b"data: " + b"x" * 200 + b"\n\n"], [b"data: ", b"x" * 50, b"x" * 150, b"\n\n"]])
def test_a_stream_beyond_the_limit_is_no_longer_kept_but_its_end_is_found(chunks: list[bytes]) -> None:
    tap = SSETap(limit_bytes=100)
    assert feed(tap, b"data: a\n\n", *chunks, b"data: b\n\n") == [b"a"]
    assert tap.overflowed
    assert len(tap._line) <= 64 and not tap._data
    tap.feed(b"data: c\n\nda")
    tap.feed(b"ta: [DONE]\n\n")
    assert tap.terminal_at == 0


def test_many_small_events_reach_the_limit_together() -> None:
    tap = SSETap(limit_bytes=100)
    assert len(feed(tap, *[b"data: 0123456789\n\n"] * 20)) <= 10
    assert tap.overflowed


def test_a_line_without_end_is_not_kept() -> None:
    tap = SSETap(limit_bytes=1000)
    for _ in range(100):
        tap.feed(b"x" * 100)
    assert tap.overflowed and len(tap._line) <= 64


def test_its_state_can_be_read() -> None:
    assert repr(SSETap(10)) == "<SSETap [10 bytes left, overflowed: False]>"


@given(st.lists(st.binary(max_size=20)))
def test_any_bytes_can_be_fed(chunks: list[bytes]) -> None:
    tap = SSETap(limit_bytes=50)
    assert feed(tap, *chunks) is not None
    whole = SSETap(limit_bytes=50)
    assert feed(whole, b"".join(chunks)) == feed(SSETap(limit_bytes=50), *chunks)


NAMED = b'event: message_delta\ndata: {"usage": 7}\n\nevent: message_stop\ndata: {"type": "message_stop"}\n\n'


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_terminal_event_that_says_something_is_heard_and_cannot_be_read_without_what_is_held_back(
    line_end: bytes,
) -> None:
    stream = NAMED.replace(b"\n", line_end)
    readable = stream.rindex(b"}") + 1  # behind it stands the line end that makes the event readable
    for at in range(len(stream) + 1):
        tap, forwarded, payloads = SSETap(ROOM), 0, []
        for chunk in (stream[:at], stream[at:]):
            payloads += tap.feed(chunk)
            forwarded += len(chunk) if tap.terminal_at is None else tap.terminal_at
            if tap.terminal_at is not None:
                break
        assert tap.terminal_at is not None
        assert forwarded == readable
        assert [*payloads, *tap.close()] == [b'{"usage": 7}', b'{"type": "message_stop"}']


def test_a_name_ends_no_stream_but_with_its_own_event() -> None:
    tap = SSETap(ROOM)
    tap.feed(b"event: message_stop\n\ndata: {}\n\nevent: message_stopped\ndata: {}\n\ndata: message_stop\n\n")
    assert tap.terminal_at is None
