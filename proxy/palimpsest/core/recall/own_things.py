"""
What a request calls the user's own: "my daughter", "our importer".

Who asks what to cook for his daughter does not ask who she is, and what he told of her is what the answer needs. Few
words follow "my" in a request, and where one of them is rare in the archive it leads to what the user told of it.
"""

from __future__ import annotations

import numpy as np

from palimpsest.core.archive.chunking import word_terms
from palimpsest.core.recall.ranking import Bools, PassageTable, QueryMatches, Rows
from palimpsest.core.recall.updates import LEAST_UPDATING, MOST_NAMED, nearest_first
from palimpsest.core.recall.utterance import language, owned_words

TOLD = 1  # statements of one request: what shares a name with them comes behind


def own_things(table: PassageTable, asked: QueryMatches, eligible: Bools) -> Rows:
    """The user's statement of what the request calls his own that is nearest to the request; no row where none is."""
    code = language(asked.text)
    named = {term for word in owned_words(asked.text) for term in word_terms(word, code)}
    rare = [rows for term, rows in asked.found.items() if term in named and len(rows) <= MOST_NAMED]
    rows = np.unique(np.concatenate([*rare, np.empty(0, np.int64)])).astype(np.int64)
    is_one = eligible[rows] & table.users[rows] & ~table.asks[rows] & (table.tells[rows] >= LEAST_UPDATING)
    return nearest_first(rows[is_one], asked)[:TOLD]
