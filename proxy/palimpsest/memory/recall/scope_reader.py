"""The passages of one scope while a request is answered: their table, their texts, and which of them hold a term."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.core.recall.ranking import Bools, PassageTable, QueryMatches, Rows
from palimpsest.domain import frozen
from palimpsest.memory.index.full_text import TermRows, find_each
from palimpsest.store.engine import Ask, Row
from palimpsest.store.search.passages import PassageTexts
from palimpsest.store.search.scope import Scope


@frozen
class Looked:
    """
    What a look-up by words found in a scope. `asked` are its questions without their meanings: those come later.

    Of the n passages of the table, `eligible` may come, `lost` were lost by the conversation itself, and `here` were
    said by its user in the folder of its agent: (n,) each.
    """

    scope: Scope
    table: PassageTable
    eligible: Bools
    lost: Bools
    here: Bools
    asked: Sequence[QueryMatches]


class ScopeReader:
    """Reads texts and terms of a scope's passages, each text once."""

    def __init__(self, ask: Ask, scope: Scope, table: PassageTable, tenant: str) -> None:
        self.ask = ask
        self.scope = scope
        self.table = table
        self.texts = PassageTexts(ask, tenant)

    def texts_of(self, rows: Rows) -> dict[int, str]:
        """The texts of rows, in their order; what was forgotten meanwhile is left out."""
        by_id = dict(zip(self.table.ids[rows].tolist(), rows.tolist(), strict=True))
        return {by_id[id]: text for id, _, _, _, text, *_ in self.passages_of(rows)}

    def passages_of(self, rows: Rows) -> list[Row]:
        """The passages of rows, as `passages.texts_of` gives them."""
        return self.texts.of(self.table.ids[rows].tolist())

    def holding(self, questions: Sequence[Sequence[str]]) -> list[TermRows]:
        """For each question, which rows hold each of its terms."""
        return find_each(self.ask, self.scope, self.table, questions)
