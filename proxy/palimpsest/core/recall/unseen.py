"""The part of a text that the model does not see: summaries of clients quote how messages begin."""

from __future__ import annotations

from collections.abc import Iterable

LEAST_QUOTED_CHARS = 60  # of a text's beginning: fewer are the same in many texts
LEAST_REST_CHARS = 20  # behind that: what is less tells nothing


def unseen_from(text: str, seen: Iterable[str]) -> int:
    """Where the part of a text begins that no visible text quotes: 0 where none of it is, its length where all is."""
    lead = text[:LEAST_QUOTED_CHARS]
    quoted = 0
    for shown in seen if len(lead.strip()) >= LEAST_REST_CHARS else ():
        if (at := shown.find(lead)) >= 0:
            pairs = enumerate(zip(text, shown[at : at + len(text)], strict=False))
            quoted = max(
                quoted, next((n for n, (one, other) in pairs if one != other), min(len(text), len(shown) - at))
            )
    if len(text) - quoted < LEAST_REST_CHARS:
        return len(text) if quoted else 0
    return text.rfind(" ", 0, quoted) + 1 if quoted else 0
