"""Headers that the proxy puts on requests and answers, each in the place of what came by its name."""

from __future__ import annotations

from starlette.types import Message, Send

from palimpsest.domain import RawHeaders


def with_header(headers: RawHeaders, name: bytes, value: bytes) -> RawHeaders:
    """The headers with this one, and with no other under its name, which is in lower case."""
    return [*(header for header in headers if header[0].lower() != name), (name, value)]


def answering_with(send: Send, name: bytes, value: bytes) -> Send:
    """A `send` whose answer carries a header."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": with_header(message.get("headers", ()), name, value)}
        await send(message)

    return sending
