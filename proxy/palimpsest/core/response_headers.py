"""The `x-palimpsest-*` headers of an answer, and the log fields of its request: names and numbers, no content."""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.core.decision import Decision
from palimpsest.domain import Cost, Note

Headers = tuple[tuple[bytes, bytes], ...]
LogFields = dict[str, str | int | float]


def headers_of(decision: Decision, turn_id: str, note: Note | None) -> Headers:
    """
    Headers of an answer whose request was decided.

    Args:
        turn_id: "" where the request is not archived.
        note: the decision's own, or a more urgent one.
    """
    lineage, added = decision.lineage, decision.added
    return _named(
        conversation=decision.conversation,
        turn=turn_id,
        role=lineage.role.value,
        event=lineage.event.value,
        pressure=f"{decision.diagnosis.pressure.ratio:.2f}",
        added_tokens=str(added.tokens),
        added_share=f"{added.share:.2f}",
        recalled=str(len(decision.block.occurrences) if decision.block else 0),
        facts=str(_fact_count(decision) or ""),
        trimmed_tokens=str(decision.view.trimmed_tokens) if decision.view else "",
        would_trim_tokens=str(decision.would_trim_tokens or ""),
        reply_tokens=str(decision.reply_tokens or ""),
        note=note.value if note else "",
    )


def undecided_headers(note: Note, turn_id: str = "") -> Headers:
    """Headers of an answer whose request passed as it came, before anything was decided or because nothing could be."""
    return _named(turn=turn_id, added_tokens="0", recalled="0", note=note.value)


def log_fields(decision: Decision, turn_id: str, note: Note | None) -> LogFields:
    """What the log line of the request says of it."""
    lineage, added = decision.lineage, decision.added
    fields: LogFields = {"turn": turn_id} if turn_id else {}
    fields |= {"conversation": decision.conversation, "role": lineage.role.value, "history": lineage.event.value}
    if added.tokens:
        fields |= {"added_tokens": added.tokens, "added_share": round(added.share, 3)}
    if facts := _fact_count(decision):
        fields["facts"] = facts
    if decision.view is not None:
        fields["trimmed_tokens"] = decision.view.trimmed_tokens
    if decision.would_trim_tokens:
        fields["would_trim_tokens"] = decision.would_trim_tokens
    return fields | ({"note": note.value} if note else {})


def cost_fields(cost: Cost) -> Mapping[str, str | int]:
    """What the log line says of the answer: what its provider counted, and why it read anew what it did."""
    usage = cost.usage
    fields = {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cache_rebuild": cost.rebuild.value if cost.rebuild else None,
        "rebuilt_tokens": cost.rebuilt_tokens or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _fact_count(decision: Decision) -> int:
    return len(decision.fact_choice.lines) if decision.fact_choice else 0


def _named(**values: str) -> Headers:
    named = ((name.replace("_", "-"), value) for name, value in values.items() if value)
    return tuple((f"x-palimpsest-{name}".encode(), value.encode()) for name, value in named)
