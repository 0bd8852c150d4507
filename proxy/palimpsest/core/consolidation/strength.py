"""
The strength of relations: how much evidence they have, how old it is, and whose.

Confidence decays, as in LightMem-SLM (section 3.4): a relation that nothing confirms any more loses half of what speaks
for it every half year, and is not there when too little is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from palimpsest.core.consolidation.relations import Relation
from palimpsest.domain.frozen import frozen

HALF_LIFE_DAYS = 180.0  # of one item as evidence
DAY_SECONDS = 86_400.0
LEAST_USERS = 3  # whose items must speak for a relation before others of the tenant see it

# Words that merely stand together in one item are chance; a sentence that states a kind is enough by itself for years.
LEAST_STRENGTH: Mapping[Relation, float] = {"related-to": 1.5, "is-a": 0.25, "has-property": 0.25, "implies": 0.25}


@frozen
class Evidence:
    """
    One item that speaks for a relation, and when it was said, Unix seconds.

    `user` is whose it is; "" nobody's: then it is only seen in the conversation that it was said in.
    """

    user: str
    conversation: int
    said_at: float


@frozen
class Viewer:
    """Who looks at a graph: a user, or one conversation, whoever's it is."""

    user: str = ""
    conversation: int = 0

    def owns(self, one: Evidence) -> bool:
        """Whether an item belongs to the viewer."""
        if self.conversation:
            return one.conversation == self.conversation
        return one.user == self.user != ""


def strength(evidence: Collection[Evidence], now: float) -> float:
    """The strength of a relation: a sum of 1 for each item, halved with each half-life of its age."""
    ages = (max(now - one.said_at, 0.0) / DAY_SECONDS for one in evidence)
    return float(sum(0.5 ** (days / HALF_LIFE_DAYS) for days in ages))


def visible(
    relation: Relation, evidence: Collection[Evidence], viewer: Viewer | None, is_shared: bool, now: float
) -> float:
    """
    The strength of a relation for a viewer; 0: it is hidden from them.

    Args:
        viewer: None: whoever operates the proxy, who sees all of a tenant.
        is_shared: whether the policy lets a tenant's users see what several of them said.
    """
    seen = [one for one in evidence if viewer is None or viewer.owns(one)]
    if is_shared and len({one.user for one in evidence if one.user}) >= LEAST_USERS:
        seen = [*evidence]
    found = strength(seen, now)
    return found if found >= LEAST_STRENGTH[relation] else 0.0
