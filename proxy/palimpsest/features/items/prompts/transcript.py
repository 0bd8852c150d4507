"""Messages as a model reads them: numbered, with their speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palimpsest.core.writing.clauses import READ_CHARS, SPEAKER_ROLES
from palimpsest.domain import SourceMessage


def numbered_transcript(segment: Sequence[SourceMessage], texts: Mapping[int, str] | None = None) -> str:
    """
    A transcript of what people and the assistant say, a numbered line each: "[3] user: ...".

    Args:
        texts: by index, what is shown; None: all messages as they are, long ones cut.
    """
    shown = texts if texts is not None else {at: said.text[:READ_CHARS] for at, said in enumerate(segment)}
    return "\n".join(
        f"[{at}] {segment[at].name or segment[at].role}: {' '.join(text.split())}"
        for at, text in shown.items()
        if segment[at].role in SPEAKER_ROLES and text.strip()
    )
