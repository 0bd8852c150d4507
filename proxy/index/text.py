"""
Which passages hold these words? Full text (SQLite FTS5), confined to a tenant and, where asked, a conversation.

No word of a user's reaches MATCH raw: terms come from `core/digest`, are quoted, and stand beside a scope token that no
text can forge. What is found is scored with the scope's own statistics (core/ranking), so that one tenant's texts never
reorder another's results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import orjson

from proxy.core.digest import scope_terms
from proxy.core.ranking import Rows
from proxy.ports import Sql

MOST_TERMS = 16  # the rarest of a question; an OR of 64 common words takes 270 ms at 100,000 passages
COMMON_SHARE = 0.05  # of the tenant's passages: a term in more of them tells little and costs most
SMALL_TENANT = 5_000  # passages: below, even common terms cost nothing, and names are common in one talk

HOLDING = """
SELECT asked.key, memory_text.rowid FROM json_each(?) AS asked
JOIN memory_text ON memory_text MATCH asked.value
"""


class Words:
    """The full-text index. Reads through `Sql` only."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def holding(self, terms: Sequence[str], tenant: int, conversation: int | None) -> Mapping[str, Rows]:
        """
        Memory ids that hold each term, rising; a term that none holds maps to an empty array.

        Args:
            conversation: None: the whole tenant.

        Raises:
            MemoryFault: the index cannot be read.
        """
        if not terms:
            return {}
        kept = await self._rarest(terms, tenant)
        scope = scope_terms(tenant, conversation or 0)
        token = scope[0] if conversation is None else scope[1]
        queries = [f"{_quoted(term)} AND {_quoted(token)}" for term in kept]
        rows = await self._sql.read(HOLDING, (orjson.dumps(queries).decode(),))
        found: dict[str, list[int]] = {term: [] for term in kept}
        for key, id in rows:
            found[kept[key]].append(id)
        return {term: np.array(sorted(ids), np.int64) for term, ids in found.items()}

    async def _rarest(self, terms: Sequence[str], tenant: int) -> list[str]:
        rows = await self._sql.read(
            "SELECT term, memories FROM term WHERE tenant = ? AND term IN (SELECT value FROM json_each(?))"
            " UNION ALL SELECT '', count(*) FROM memory WHERE tenant = ?",
            (tenant, orjson.dumps(list(terms)).decode(), tenant),
        )
        counts: dict[str, int] = dict(rows)
        passages = counts.pop("")
        most = COMMON_SHARE * passages if passages > SMALL_TENANT else passages
        rare = [term for term in dict.fromkeys(terms) if counts.get(term, 0) <= most]
        return sorted(rare, key=lambda term: counts.get(term, 0))[:MOST_TERMS]


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
