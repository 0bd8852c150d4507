"""Recall by kind and reinforcement, where the policy wants either: what may come, and what each message is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from palimpsest.core.recall.ranking import Bools, PassageTable, QueryMatches
from palimpsest.core.recall.reinforcement import message_worth
from palimpsest.memory.recall.eligibility import EVERY_KIND
from palimpsest.settings.policy import RecallPolicy
from palimpsest.store.engine import Ask
from palimpsest.store.search.restriction import passages_of_kinds, rounds_of
from palimpsest.store.search.scope import Scope


def restricted(
    ask: Ask, scope: Scope, table: PassageTable, chosen: RecallPolicy, eligible: Bools, asked: list[QueryMatches]
) -> tuple[Bools, list[QueryMatches]]:
    """Leave out what is of no chosen kind and what has faded, and give the questions the worth of each message."""
    if len(chosen.kinds) < EVERY_KIND:
        eligible = eligible & np.isin(table.ids, passages_of_kinds(ask, scope, chosen.kinds))
    if chosen.reinforcement:
        stands = message_worth(table.occurrences, rounds_of(ask, scope))
        eligible, asked = eligible & stands.may_come, [replace(one, standing=stands.worth) for one in asked]
    return eligible, asked
