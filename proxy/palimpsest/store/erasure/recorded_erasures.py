"""
Erasures as one database has recorded them, for another that is restored and still holds what they erased.

Their fingerprints are hashes under the installation's secret: both databases must have the same. What was retired
counts as erased: the day on which it is erased for good may have passed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from palimpsest.core.archive.tombstones import scope_print
from palimpsest.domain import HeadFlag, frozen
from palimpsest.store.engine import Ask, Row, Transaction
from palimpsest.store.engine.sqlite.snapshot import snapshot, tables_of
from palimpsest.store.erasure.selection import Plan
from palimpsest.store.knowledge.added_facts import FORBID, KeyOf, covered_facts
from palimpsest.store.turns.tombstones import ERASE_SCOPE

SCOPES = "SELECT fingerprint, at FROM erased_scope"
RETIRED_SCOPES = "SELECT fingerprint, at FROM retired_scope"
FACTS = "SELECT mark, at FROM fact_forgotten"
STONES = "SELECT fingerprint, after, conversation, opening, at FROM erased"
CONVERSATIONS = """
SELECT conversation.id, tenant.id, tenant.name, public, parent, user_id, scope
FROM conversation JOIN tenant ON tenant.id = conversation.tenant ORDER BY conversation.id
"""
MESSAGES = f"""
SELECT id, fingerprint, created_at FROM occurrence WHERE conversation = ? AND flags & {HeadFlag.ERASED} = 0 ORDER BY id
"""


@frozen
class Erasures:
    """Tombstones (full, after, conversation, opening, at), whose past was erased (print, at), and facts (mark, at)."""

    stones: tuple[Row, ...] = ()
    scopes: tuple[Row, ...] = ()
    facts: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.stones or self.scopes or self.facts)

    def __add__(self, other: Erasures) -> Erasures:
        return Erasures(self.stones + other.stones, self.scopes + other.scopes, self.facts + other.facts)


def recorded_in(path: Path) -> Erasures:
    """Read the erasures that a database of any version has recorded. Raises `MemoryFault`: it cannot be read."""
    with snapshot(path, f"reading the erasures of {path}") as ask:
        tables = tables_of(ask)

        def rows(table: str, sql: str) -> tuple[Row, ...]:
            return tuple(ask(sql)) if table in tables else ()

        scopes = rows("erased_scope", SCOPES) + rows("retired_scope", RETIRED_SCOPES)
        return Erasures(rows("erased", STONES), scopes, rows("fact_forgotten", FACTS))


def record(transaction: Transaction, erasures: Erasures, at: float) -> None:
    """Record erasures of another database here, so that nothing of them comes back."""
    transaction.write(
        "INSERT INTO erased(fingerprint, after, conversation, opening, at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (fingerprint, after, conversation)"
        " DO UPDATE SET at = greatest(erased.at, excluded.at), retirement = 0",
        erasures.stones,
    )
    transaction.write(ERASE_SCOPE, erasures.scopes)
    transaction.write(FORBID, erasures.facts)
    transaction.write("INSERT INTO erasure(at) VALUES (?)", [(at,)])


def covered(ask: Ask, erasures: Erasures, key_of: KeyOf) -> list[Plan]:
    """The rows stored here that were erased there, by tenant."""
    stones: Mapping[int, dict[int, float]] = defaultdict(dict)
    for full, _, conversation, _, at in erasures.stones:
        stones[conversation][full] = max(at, stones[conversation].get(full, 0.0))
    scopes: dict[int, float] = {}
    for fingerprint, at in erasures.scopes:
        scopes[fingerprint] = max(at, scopes.get(fingerprint, 0.0))
    found: dict[int, Plan] = {}
    whole: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for conversation, tenant, name, public, parent, user, scope in ask(CONVERSATIONS):
        mine, *others = _prints(key_of(name), public, parent, user, scope)
        until = max((scopes.get(fingerprint, 0.0) for fingerprint in (mine, *others)), default=0.0)
        messages = ask(MESSAGES, (conversation,)) if until or mine in stones else []
        erased = stones.get(mine, {})
        gone = tuple(id for id, full, at in messages if at <= max(until, erased.get(full, 0.0)))
        if not gone and not (until and not messages):
            continue
        plan = found.setdefault(tenant, Plan(tenant, name, (), {}, {}))
        plan.publics[conversation] = public
        plan.messages[conversation] = gone
        if until and len(gone) == len(messages):
            whole[tenant].append((conversation, public))
    facts = _covered_facts(ask, erasures, scopes, key_of)
    for tenant, name in facts:
        found.setdefault(tenant, Plan(tenant, name, (), {}, {}))
    return [
        Plan(
            *(plan.tenant, plan.name, tuple(whole[id]), plan.messages, plan.publics),
            facts=tuple(facts.get((plan.tenant, plan.name), ())),
        )
        for id, plan in found.items()
    ]


def _covered_facts(
    ask: Ask, erasures: Erasures, scopes: Mapping[int, float], key_of: KeyOf
) -> Mapping[tuple[int, str], Sequence[int]]:
    """Rows of facts, by the row and the name of their tenant."""
    marked = {mark for mark, _ in erasures.facts}
    found = {}
    for tenant, name in ask("SELECT id, name FROM tenant WHERE id IN (SELECT tenant FROM fact)"):
        key = key_of(name)

        def until(user: str, scope: str, key: bytes = key) -> float:
            return max(scopes.get(fingerprint, 0.0) for fingerprint in _persons(key, user, scope))

        if rows := covered_facts(ask, tenant, key, marked, until):
            found[tenant, name] = rows
    return found


def _prints(key: bytes, public: str, parent: str, user: str, scope: str) -> Sequence[int]:
    """Prints of all scopes that a conversation belongs to, its own first."""
    named: Iterable[tuple[str, ...]] = [("conversation", public), *([("conversation", parent)] if parent else [])]
    return [*(scope_print(key, *names) for names in named), *_persons(key, user, scope)]


def _persons(key: bytes, user: str, scope: str) -> Sequence[int]:
    """Prints of a user's past in a project, besides its conversations."""
    named: Iterable[tuple[str, ...]] = [
        ("tenant", ""),
        *([("user", user)] if user else []),
        *([("scope", scope)] if scope else []),
        *([("user+scope", user, scope)] if user and scope else []),
    ]
    return [scope_print(key, *names) for names in named]
