"""What is forwarded of a request: with what was decided on, or as the client sent it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from palimpsest.core.decision import Decision
from palimpsest.core.response_headers import headers_of, log_fields, undecided_headers
from palimpsest.domain import Note, RawHeaders, TooLong, Turn
from palimpsest.domain.ports import Listener, Prepared, Wire


def render_decision(wire: Wire, decision: Decision) -> bytes:
    """The body that goes upstream. Raises `WireError`: nothing can be added to it."""
    body = wire.render(decision.sent.chat, decision.insertions)
    if decision.reply_tokens is None:
        return body
    from palimpsest.wire.trimming import limited  # late: only where the policy trims

    return limited(body, decision.reply_tokens)


def untouched(body: bytes, note: Note, model: str) -> Prepared:
    """A request forwarded unchanged, with the reason."""
    return Prepared(body, undecided_headers(note), model, log_fields={"note": note.value})


def prepared(
    body: bytes,
    decision: Decision,
    turn: Turn | None,
    note: Note | None,
    listen: Callable[[int, RawHeaders], Listener] | None,
    without: Callable[[TooLong], Awaitable[Prepared | None]] | None = None,
) -> Prepared:
    """A request that was decided on."""
    id = turn.id if turn else ""
    headers, fields = headers_of(decision, id, note), log_fields(decision, id, note)
    return Prepared(body, headers, decision.reading.chat.model, listen, fields, without)
