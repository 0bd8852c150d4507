"""Self-information of terms: how much a word tells, by how few of a tenant's passages hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from math import log2

from palimpsest.core.archive.chunking import terms
from palimpsest.domain.frozen import frozen


@frozen
class TermStatistics:
    """Of how many passages, and by term how many of them hold it."""

    passages: int = 0
    held: Mapping[str, int] = field(default_factory=dict)

    def bits(self, term: str) -> float:
        """-log2 of the share of passages that hold the term; of one that none holds, as if half a passage did."""
        return log2((self.passages + 1) / (self.held.get(term, 0) + 0.5))

    def with_texts(self, texts: Iterable[str]) -> TermStatistics:
        """The same after so many more passages."""
        held = Counter(self.held)
        count = self.passages
        for text in texts:
            held.update(set(terms(text)))
            count += 1
        return TermStatistics(count, held)

    def information(self, text_terms: Iterable[str]) -> float:
        """Bits of all different terms together."""
        return sum(self.bits(term) for term in set(text_terms))
