"""As little of an answer is read as tells whether it is a refusal; all of it still passes."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import pytest
from palimpsest.domain import RawHeaders, TooLong
from palimpsest.domain.errors import UpstreamUnreachable
from palimpsest.edge.first_look import HELD_BYTES, BufferedAnswer
from palimpsest.wire.too_long import TEXT_BYTES

from tests.refusals import PROVIDERS

REFUSAL = PROVIDERS["openai"].said(2345, 2048)
SSE: RawHeaders = [(b"Content-Type", b"text/event-stream; charset=utf-8")]


class Given:
    """An answer that counts how much of it was asked for."""

    def __init__(self, status: int, pieces: list[bytes], headers: RawHeaders = (), broken: bool = False) -> None:
        self.status, self.headers = status, headers
        self._pieces, self._broken = pieces, broken
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.read += 1
            yield piece
        if self._broken:
            raise UpstreamUnreachable("it broke off")

    async def aclose(self) -> None:
        """Nothing is open."""


async def looked(given: Given) -> tuple[TooLong | None, int, bytes]:
    """What was told, how many pieces that took, and all that passes."""
    answer = BufferedAnswer(given)
    told, read = await answer.look(), given.read
    return told, read, b"".join([data async for data in answer])


async def test_error_in_pieces_is_read_to_its_end() -> None:
    pieces = [REFUSAL[:9], REFUSAL[9:]]
    assert await looked(Given(400, pieces)) == (TooLong(2048, prompt_tokens=2345), 2, REFUSAL)


async def test_compressed_error_is_read() -> None:
    packed = gzip.compress(REFUSAL)
    given = Given(400, [packed[:20], packed[20:]], [(b"content-encoding", b"gzip")])
    assert await looked(given) == (TooLong(2048, prompt_tokens=2345), 2, packed)


async def test_error_is_read_up_to_a_bound() -> None:
    pieces = [b"x" * TEXT_BYTES, b"y", REFUSAL]
    assert await looked(Given(500, pieces)) == (None, 1, b"".join(pieces))


@pytest.mark.parametrize("status", [200, 302, 401, 404])
async def test_nothing_is_held_of_an_answer_that_can_be_no_refusal(status: int) -> None:
    given = Given(status, [b'{"id": 1,', REFUSAL])
    told, read, _ = await looked(given)
    assert told is None and read <= 1


async def test_error_under_a_status_of_success_is_noticed() -> None:
    assert await looked(Given(200, [b"  ", REFUSAL])) == (TooLong(2048, prompt_tokens=2345), 2, b"  " + REFUSAL)


async def test_stream_is_held_until_the_model_says_something() -> None:
    created = b'event: response.created\ndata: {"type":"response.created"}\n\n'
    item = b'event: response.output_item.added\ndata: {"type":"response.output_item.added"}\n\n'
    pieces = [created[:12], created[12:], item, b"data: more\n\n"]
    assert await looked(Given(200, pieces, SSE)) == (None, 3, b"".join(pieces))


async def test_stream_that_opens_with_too_much_is_let_go() -> None:
    pieces = [b"data: " + b"x" * HELD_BYTES, b"x", b"\n\n"]
    told, read, passed = await looked(Given(200, pieces, SSE))
    assert (told, passed) == (None, b"".join(pieces)) and read < 3


async def test_event_whose_blank_line_is_still_to_come_is_read() -> None:
    failed = b'event: response.failed\ndata: {"type":"response.failed","code":"context_length_exceeded"}\n'
    assert await looked(Given(200, [failed], SSE)) == (TooLong(), 1, failed)


async def test_upstream_that_breaks_off_meanwhile_breaks_off_for_the_client_too() -> None:
    answer = BufferedAnswer(Given(400, [b"{"], broken=True))
    assert await answer.look() is None
    passed = []
    with pytest.raises(UpstreamUnreachable):
        async for data in answer:
            passed.append(data)
    assert passed == [b"{"]
