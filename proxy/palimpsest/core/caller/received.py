"""A request as it came in: its headers and body are parsed once for all who need them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from palimpsest.core.caller.proxy_keys import Key
from palimpsest.domain import Json, RawHeaders
from palimpsest.domain.errors import WireError
from palimpsest.wire.json_body import read_object
from palimpsest.wire.message import text_of


class ReceivedRequest:
    """Headers of a request, its decoded body (None where memory does not read it), and the proxy key that it shows."""

    def __init__(self, headers: RawHeaders, body: bytes | None, key: Key | None) -> None:
        self.headers, self.body, self.key = headers, body, key

    def with_body(self, body: bytes | None) -> ReceivedRequest:
        """The same request with another body."""
        return ReceivedRequest(self.headers, body, self.key)

    @cached_property
    def named(self) -> Mapping[str, str]:
        """As `named_headers`."""
        return named_headers(self.headers)

    @cached_property
    def json_object(self) -> Json:
        """The JSON object that the body is, or `WireError`. Reading a large one takes long the first time."""
        return read_object(self.body or b"")

    @property
    def fields(self) -> Json:
        """The JSON object of the body, empty where it cannot be read."""
        try:
            return self.json_object
        except WireError:
            return {}

    @property
    def model(self) -> str:
        """The model that the body names, "" where it names none."""
        return text_of(self.fields.get("model"))


def named_headers(headers: RawHeaders) -> dict[str, str]:
    """
    Lower-case names of headers to their values.

    Values of one name are one list, as HTTP has it: a gateway in front that adds its own to the caller's would
    else have one of the two win.
    """
    named: dict[str, str] = {}
    for raw_name, raw in headers:
        name = raw_name.decode("latin-1").lower()
        try:
            value = raw.decode()  # most programs send names of people so, and bodies name them so
        except UnicodeDecodeError:
            value = raw.decode("latin-1")
        named[name] = f"{named[name]}, {value}" if name in named else value
    return named
