"""
What happened to the memories of a scope? Each block that was said is a round: see `core/recall/reinforcement.py`.

Nothing here is called while `reinforcement.enabled` is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from proxy.core.recall.reinforcement import Rounds, Standing, rewarded, scope_name
from proxy.domain import Record
from proxy.settings.policy import ReinforcementPolicy
from proxy.store.connection import Ask, Transaction

TENANT = "(SELECT id FROM tenant WHERE name = ?)"


def read_rounds(ask: Ask, tenant: str, scope: str) -> Rounds:
    """All rounds of one scope; see `scope_name`."""
    newest = ask(f"SELECT newest FROM round WHERE tenant = {TENANT} AND scope = ? ORDER BY number", (tenant, scope))
    recalled = ask(
        "SELECT occurrence, number, confidence, success, accesses FROM reinforced"
        f" WHERE tenant = {TENANT} AND scope = ?",
        (tenant, scope),
    )
    return Rounds(tuple(last for (last,) in newest), {occurrence: Standing(*rest) for occurrence, *rest in recalled})


def write_rounds(transaction: Transaction, records: Sequence[Record], policy: ReinforcementPolicy) -> None:
    """A round for each request that brings a new block; to be written before the requests are."""
    for record in records:
        turn = record.turn
        if not turn.quoted or transaction.read("SELECT 1 FROM turn WHERE key = ?", (turn.id,)):
            continue
        scope = scope_name(turn.reach, turn.conversation, turn.user, turn.scope)
        rounds = read_rounds(transaction.read, turn.tenant, scope)
        transaction.write(
            "INSERT OR REPLACE INTO reinforced(tenant, scope, occurrence, number, confidence, success, accesses)"
            f" SELECT {TENANT}, ?, id, ?, ?, ?, ? FROM occurrence WHERE id = ?",
            [
                (turn.tenant, scope, *astuple(rewarded(occurrence, rounds, policy)), occurrence)
                for occurrence in turn.quoted
            ],
        )
        transaction.write(
            "INSERT INTO round(tenant, scope, number, newest)"
            f" SELECT {TENANT}, ?, ?, ifnull(max(id), 0) FROM occurrence",
            [(turn.tenant, scope, len(rounds.newest) + 1)],
        )
