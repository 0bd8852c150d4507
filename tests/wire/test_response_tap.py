"""An answer is heard in every form that it comes in, and only its end is held back."""

from __future__ import annotations

import gzip
import zlib

import pytest
from palimpsest.wire.chat import reply
from palimpsest.wire.response_tap import ResponseTap

EVENTS = [b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n', b'data: {"choices":[{"delta":{"content":"lo"}}]}\n\n']
DONE = b"data: [DONE]\n\n"
BODY = b'{"choices":[{"message":{"role":"assistant","content":"Hello"}}]}'
STREAM = (b"Content-Type", b"text/event-stream; charset=utf-8")


def said(ear: ResponseTap) -> str | None:
    message = reply(*ear.payloads()).message
    return message.text if message else None


def test_a_stream_is_heard_and_its_terminal_event_held_back() -> None:
    ear = ResponseTap([STREAM], 1000)
    assert [ear.feed(event) for event in EVENTS] == [len(event) for event in EVENTS]
    assert ear.feed(EVENTS[0] + DONE) == len(EVENTS[0])
    assert ear.streamed and said(ear) == "HelloHel"


def test_a_whole_body_is_heard_and_the_chunk_that_completes_it_held_back() -> None:
    ear = ResponseTap([(b"Content-Length", b"%d" % len(BODY))], 1000)
    assert (ear.feed(BODY[:10]), ear.feed(BODY[10:])) == (10, 0)
    assert said(ear) == "Hello"


def test_a_body_of_unknown_length_is_not_held_back() -> None:
    ear = ResponseTap([], 1000)
    assert (ear.feed(BODY[:10]), ear.feed(BODY[10:])) == (10, len(BODY) - 10)
    assert said(ear) == "Hello"


def test_a_compressed_stream_is_heard_and_held_back_from_the_chunk_that_ends_it() -> None:
    stream = zlib.compressobj(wbits=31)
    chunks = [stream.compress(text) + stream.flush(zlib.Z_SYNC_FLUSH) for text in [*EVENTS, DONE]]
    ear = ResponseTap([STREAM, (b"content-encoding", b"gzip")], 1000)
    assert [ear.feed(chunk) for chunk in chunks] == [len(chunks[0]), len(chunks[1]), 0]
    assert said(ear) == "Hello"


def test_a_compressed_body_is_heard() -> None:
    body = gzip.compress(BODY)
    ear = ResponseTap([(b"content-encoding", b"gzip"), (b"content-length", b"%d" % len(body))], 1000)
    assert (ear.feed(body[:30]), ear.feed(body[30:])) == (30, 0)
    assert said(ear) == "Hello"


@pytest.mark.parametrize(("encoding", "reason"), [(b"lzma", "'lzma' is not decoded"), (b"br", "decoding a copy")])
def test_what_cannot_be_decoded_is_not_heard_and_says_why(encoding: bytes, reason: str) -> None:
    ear = ResponseTap([(b"content-encoding", encoding)], 1000)
    assert (ear.feed(b"\xff" * 50), ear.feed(b"\xff")) == (50, 1)
    assert said(ear) is None
    assert reason in ear.deaf_because and reason in repr(ear)


def test_of_a_longer_stream_the_end_is_found() -> None:
    ear = ResponseTap([STREAM], 60)
    for event in EVENTS * 3:
        assert ear.feed(event) == len(event)
    assert ear.overflowed
    assert ear.feed(DONE) == 0


def test_of_a_longer_body_the_end_is_found_and_nothing_kept() -> None:
    ear = ResponseTap([(b"content-length", b"%d" % len(BODY))], 20)
    assert (ear.feed(BODY[:-1]), ear.feed(BODY[-1:])) == (len(BODY) - 1, 0)
    assert ear.overflowed and ear.payloads() == ([], False)


def test_a_stream_cut_in_an_event_leaves_what_was_heard() -> None:
    ear = ResponseTap([STREAM], 1000)
    ear.feed(EVENTS[0] + EVENTS[1][:-2])
    assert said(ear) == "Hello"


def test_a_tap_that_is_told_to_stop_keeps_nothing_and_still_holds_the_end_back() -> None:
    ear = ResponseTap([STREAM], 1000)
    ear.feed(EVENTS[0])
    ear.stop()
    assert ear.overflowed and ear.payloads() == ([], True)
    assert ear.feed(EVENTS[1] + DONE) == len(EVENTS[1])
    assert ear.payloads() == ([], True)


def test_a_whole_answer_whose_tap_was_stopped_says_nothing() -> None:
    ear = ResponseTap([(b"Content-Length", b"%d" % len(BODY))], 1000)
    ear.feed(BODY[:10])
    ear.stop()
    assert ear.feed(BODY[10:]) == 0 and ear.overflowed
    assert said(ear) is None
