"""
The spans of memory's own work, by the GenAI conventions of OpenTelemetry: `search_memory` while a request is prepared,
`create_memory` while its turn is written, which may end after the request.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from palimpsest.core.decision import Decision
from palimpsest.core.redaction.redaction import redact
from palimpsest.domain import BlockKind, Json, Note, Turn
from palimpsest.domain.ports import Attributes, Span, Tracer

SEARCH, CREATE = "search_memory", "create_memory"
OPERATION = "gen_ai.operation.name"
STORE = "gen_ai.memory.store.id"
RECORDS = "gen_ai.memory.record.count"


def search_span(tracer: Tracer, traceparent: str) -> Span:
    """Begin the span of what memory does before a request goes on."""
    return tracer.span("internal", SEARCH, traceparent, {OPERATION: SEARCH})


def tell_search(tracer: Tracer, span: Span, decision: Decision | None, said: Mapping[str, str | int | float]) -> None:
    """Tell what was decided, if anything was, and what the log is told of the request."""
    note = said.get("note")
    attributes: dict[str, str | bool | int | float | None] = {
        "palimpsest.note": note,
        "palimpsest.deadline_exceeded": note == Note.DEADLINE,
        "palimpsest.turn": said.get("turn"),
        RECORDS: 0,
    }
    if decision is not None:
        block, recalled = decision.block, decision.recalled
        attributes |= {
            STORE: decision.diagnosis.speaker.tenant,
            RECORDS: len(block.occurrences) if block else 0,
            "gen_ai.conversation.id": decision.conversation,
            "palimpsest.role": decision.lineage.role.value,
            "palimpsest.event": decision.lineage.event.value,
            "palimpsest.decision": block.kind.value if block else "none",
            "palimpsest.added_tokens": decision.added.tokens,
            "palimpsest.pressure": round(decision.diagnosis.pressure.ratio, 4),
            "palimpsest.candidates": len(recalled.candidates) if recalled else None,
            "palimpsest.recall_seconds": round(recalled.elapsed_ms / 1000, 6) if recalled else None,
        }
        if tracer.captures_content:
            attributes |= _content(decision)
    span.set(attributes)


def create_span(tracer: Tracer, turn: Turn) -> Span:
    """Begin the span of the archiving of a turn, from the end of its answer to the commit."""
    attributes: Attributes = {
        OPERATION: CREATE,
        STORE: turn.tenant,
        RECORDS: len(turn.new) + 1,
        "gen_ai.conversation.id": turn.conversation,
        "palimpsest.turn": turn.id,
    }
    return tracer.span("internal", CREATE, turn.traceparent, attributes)


def _content(decision: Decision) -> dict[str, str]:
    """The question and what was found, where the operator wants messages in spans; without credentials."""
    query, recalled = decision.diagnosis.query, decision.recalled
    quotes = decision.block is not None and decision.block.kind is not BlockKind.FACTS
    records: list[Json] = [
        {"id": str(found.memory.id), "content": redact(found.memory.text), "score": round(found.probability, 4)}
        for found in (recalled.candidates if recalled and quotes else ())
        if found.memory.id not in decision.cut
    ]
    attributes = {"gen_ai.memory.query.text": redact(query.text)} if query else {}
    return attributes | ({"gen_ai.memory.records": orjson.dumps(records).decode()} if records else {})
