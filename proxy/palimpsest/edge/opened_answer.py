"""Answers of the provider with a compaction of the proxy's own in front."""

from __future__ import annotations

from collections.abc import AsyncIterator

from palimpsest.domain import RawHeaders
from palimpsest.domain.ports import UpstreamAnswer
from palimpsest.wire.context_edit import OpenedStream, opened_body


class OpenedAnswer:
    """An `UpstreamAnswer` of the Messages API with a compaction in front of what it says; refusals stay as they are."""

    def __init__(self, answer: UpstreamAnswer, reference: str) -> None:
        self.status = answer.status
        self._answer = answer
        self._reference = reference
        kind = next((value.lower() for name, value in answer.headers if name.lower() == b"content-type"), b"")
        self._is_stream = kind.startswith(b"text/event-stream")
        self.headers: RawHeaders = [header for header in answer.headers if header[0].lower() != b"content-length"]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if not self._is_stream:
            body = b"".join([data async for data in self._answer])
            yield opened_body(body, self._reference)
            return
        stream = OpenedStream(self._reference)
        async for data in self._answer:
            if said := stream.feed(data):
                yield said
        if rest := stream.close():
            yield rest

    async def aclose(self) -> None:
        await self._answer.aclose()
