"""
An answer that the proxy has itself, in the form in which an upstream's is passed on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from palimpsest.domain import RawHeaders

JSON = b"application/json"


class StaticAnswer:
    """An `UpstreamAnswer` that is complete from the start."""

    __slots__ = ("_body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: RawHeaders = ((b"content-type", JSON),)) -> None:
        """
        Args:
            headers: all but the length.
        """
        self.status = status
        self.headers = [*headers, (b"content-length", b"%d" % len(body))]
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        """Nothing to close."""
