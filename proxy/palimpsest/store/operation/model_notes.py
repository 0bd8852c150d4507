"""
What upstreams have shown of models, as rows: windows, by refusals and lists, and ratios of tokens, by reported usage.

Processes learn of it from one another, and after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.domain.frozen import frozen
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.operation.changes import MODELS, count

KEPT_SECONDS = 30 * 86_400.0  # the name of a model that nobody has used since is no longer needed
MAX_NOTES = 3000  # the newest: clients name models as they like
REFUSAL, LIST, USAGE = "refusal", "list", "usage"  # sources of notes

SAVE = """
INSERT INTO model_note(upstream, model, source, value, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (upstream, model) DO UPDATE SET source = excluded.source, value = excluded.value, at = excluded.at
"""
NEWEST = "SELECT upstream, model, source, value, at FROM model_note ORDER BY at DESC LIMIT ?"
SURPLUS = "DELETE FROM model_note WHERE at < (SELECT at FROM model_note ORDER BY at DESC LIMIT 1 OFFSET ?)"


@frozen
class ModelNote:
    """
    A window in tokens, or the tokens of a model for one of the common encoding's.

    `upstream` is "" for a ratio, which is the same everywhere; `at` is in Unix seconds.
    """

    upstream: str
    model: str
    source: str
    value: float
    at: float


def notes(ask: Ask) -> list[ModelNote]:
    """All notes, the newest first."""
    return [ModelNote(*row) for row in ask(NEWEST, (MAX_NOTES,))]


def save(transaction: Transaction, changed: Iterable[ModelNote], now: float) -> None:
    """Store notes in the place of those before; drop old ones."""
    rows = [(note.upstream, note.model, note.source, note.value, note.at) for note in changed]
    transaction.write(SAVE, rows)
    transaction.write("DELETE FROM model_note WHERE at < ?", [(now - KEPT_SECONDS,)])
    transaction.write(SURPLUS, [(MAX_NOTES,)])
    count(transaction, MODELS)
