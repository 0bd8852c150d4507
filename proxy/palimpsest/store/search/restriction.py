"""What few policies limit recall by: kinds of passages, and the blocks that a scope's conversations were told."""

from __future__ import annotations

from collections.abc import Collection

import orjson

from palimpsest.core.recall.reinforcement import Round
from palimpsest.store.engine import Ask
from palimpsest.store.search.scope import Scope


def rounds_of(ask: Ask, scope: Scope) -> list[Round]:
    """The blocks that conversations of a scope were told, in order."""
    condition, args = scope.condition
    rows = ask(
        "SELECT occurrence, occurrences FROM block WHERE tenant = ? AND conversation IN"
        f" (SELECT DISTINCT memory.conversation FROM memory WHERE {condition}) ORDER BY turn",
        (scope.tenant, *args),
    )
    carried = ((newest, orjson.loads(quoted)) for newest, quoted in rows)  # what stands behind 0 is only named
    return [Round(newest, quoted[: quoted.index(0)] if 0 in quoted else quoted) for newest, quoted in carried]


def passages_of_kinds(ask: Ask, scope: Scope, kinds: Collection[str]) -> list[int]:
    """Ids of the scope's passages of these kinds."""
    condition, args = scope.condition
    marks = ", ".join("?" * len(kinds))
    rows = ask(f"SELECT id FROM memory WHERE {condition} AND kind IN ({marks}) ORDER BY id", (*args, *kinds))
    return [id for (id,) in rows]
