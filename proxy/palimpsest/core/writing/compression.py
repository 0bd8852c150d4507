"""
Pre-compression: the words of a text that tell least are dropped.

LightMem-3 (section 3.1) keeps the tokens that LLMLingua-2, a small model, would keep (arXiv 2403.12968); at 50 to 80 %
of them questions are answered as from the whole text. Here a word's worth is its self-information in the tenant's own
terms (Li et al., "Compressing Context", EMNLP 2023, by a model's). Names, numbers and negations always stay, as
LLMLingua-2 can be told.
"""

from __future__ import annotations

import re
from math import ceil

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.writing.information import TermStatistics

FORCED = float("inf")  # worth of a word that stays
KEEP = 0.6  # share of the words; LightMem-3 5.3: the best on average of 0.4 to 0.8

_FORCED = re.compile(r"\d|^\W*(?:no|not|never|none|without)\W*$|n['\u2019]t\W*$", re.IGNORECASE)
_NAMES = re.compile(r"\W*[^\W\d_a-z]")


def compressed(text: str, statistics: TermStatistics, keep: float = KEEP, most_words: int | None = None) -> str:
    """
    The words that tell most, in their order, single blanks between them.

    Args:
        keep: share of the words, 0..1; more stay where more are names, numbers and negations.
        most_words: where more would be left, the text is compressed again and again (LightMem-3, appendix C.1).
    """
    words = text.split()
    worth = [
        FORCED
        if _FORCED.search(word) or (at and _NAMES.match(word) and not words[at - 1].endswith((".", "!", "?")))
        else max((statistics.bits(term) for term in query_terms(word)), default=0.0)
        for at, word in enumerate(words)
    ]
    ranked = sorted(range(len(words)), key=lambda at: (-worth[at], at))
    size = max(ceil(keep * len(words)), worth.count(FORCED))
    if most_words is not None:
        while size > most_words:
            size = min(ceil(keep * size), size - 1)
    return " ".join(words[at] for at in sorted(ranked[:size]))
