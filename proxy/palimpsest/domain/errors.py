"""
The errors of this project, by who must act on them.

    PalimpsestError
    ├── PolicyError           the operator: a setting is wrong, the start is refused
    ├── WireError             on proxied paths nobody (passed through, counted); on our own endpoints the caller
    ├── MemoryFault           the operator: a store, index or model could not do its work
    │   ├── DataFault         nobody: a record cannot be stored as it is, now or later
    │   └── AssistFault       nobody: a language model did not help, and what works without one takes over
    ├── CompactionRefused     the client: it sent a compaction item that is not its own or out of date, 400
    ├── NotServed             the client: no upstream serves the request, 404
    └── UpstreamUnreachable   the client retries: 502, or 504 when time ran out

An upstream that answers with an error is no error here: its answer is passed on verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

AssistFailure = Literal["capped", "rate_limited", "refused", "malformed", "timeout", "unreachable", "failed"]


class PalimpsestError(Exception):
    """Base of every error that this project raises on purpose."""


class PolicyError(PalimpsestError):
    """A setting is wrong. The text names the file, the key, the value and what is allowed."""


class WireError(PalimpsestError):
    """A body does not have the format of its API."""

    http_status = 400


class MemoryFault(PalimpsestError):
    """Memory could not do its work; the text says what was being done, to what, and what to try."""

    http_status = 503


class DataFault(MemoryFault):
    """A record violates a rule of the store. It fails every time; other records can be stored."""


class AssistFault(MemoryFault):
    """
    A language model did not help memory; what works without one takes over.

    `outcome` says why, as `/metrics` does: `capped` (today's tokens or money are used up), `rate_limited`, `refused`
    (by the provider, or by the model), `malformed` (not what was asked for, even after a second attempt), `timeout`,
    `unreachable`, or `failed` (the counters of the database did not answer).
    """

    def __init__(self, text: str, outcome: AssistFailure) -> None:
        super().__init__(text)
        self.outcome = outcome


class CompactionRefused(PalimpsestError):
    """A compaction item of the proxy's own that cannot be gone on from. `code` is that of the error in the answer."""

    http_status = 400

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class NotServed(PalimpsestError):
    """No upstream serves this request; the text names it. `code` is that of the error in the answer."""

    http_status = 404

    def __init__(self, text: str, code: str = "model_not_found") -> None:
        super().__init__(text)
        self.code = code


class UpstreamUnreachable(PalimpsestError):
    """No answer from the upstream. `http_status` is 502, or 504 when time ran out."""

    def __init__(self, text: str, *, timed_out: bool = False) -> None:
        super().__init__(text)
        self.http_status = 504 if timed_out else 502


class ToolError(PalimpsestError):
    """A call of a tool that cannot be answered. The text says why, and what to try."""


@contextmanager
def faults(kinds: type[Exception] | tuple[type[Exception], ...], doing: str) -> Iterator[None]:
    """Translate an adapter's own exceptions at its border into a `MemoryFault` that says what was being done."""
    try:
        yield
    except kinds as cause:
        raise MemoryFault(f"{doing}: {cause}") from cause
