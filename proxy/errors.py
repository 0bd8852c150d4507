"""
What can go wrong, by who must act.

    PalimpsestError
    ├── PolicyError           the operator: a setting is wrong, the start is refused
    ├── WireError             nobody on the proxy path (passed through, counted); the caller on our own endpoints
    ├── MemoryFault           the operator: a store, index or model could not do its work
    │   └── DataFault         nobody: one record cannot be stored as it is, and trying again is no use
    ├── NotServed             the client: asks for what no upstream is for, 404
    └── UpstreamUnreachable   the client retries: 502, or 504 when time ran out

An upstream that answers with an error is no error here: its answer is passed on verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class PalimpsestError(Exception):
    """Base of every error that this project raises on purpose."""


class PolicyError(PalimpsestError):
    """A setting is wrong. The text names the file, the key, the value and what is allowed."""


class WireError(PalimpsestError):
    """A body is not what the wire says it should be."""

    http_status = 400


class MemoryFault(PalimpsestError):
    """Memory could not do its work; the text says what was being done, to what, and what to try."""

    http_status = 503


class DataFault(MemoryFault):
    """A record breaks a rule of the store. It fails every time, and the machine is well: others can be stored."""


class NotServed(PalimpsestError):
    """No upstream is for this request; the text says what was asked for."""

    http_status = 404


class UpstreamUnreachable(PalimpsestError):
    """No answer from the upstream. `http_status` is 502, or 504 when time ran out."""

    def __init__(self, text: str, *, timed_out: bool = False) -> None:
        super().__init__(text)
        self.http_status = 504 if timed_out else 502


@contextmanager
def faults(kinds: type[Exception] | tuple[type[Exception], ...], doing: str) -> Iterator[None]:
    """
    Translate an adapter's own exceptions at its border into `MemoryFault`.

    Args:
        kinds: the exceptions of the library underneath.
        doing: what was being done, to what; becomes the start of the text.
    """
    try:
        yield
    except kinds as cause:
        raise MemoryFault(f"{doing}: {cause}") from cause
