"""Relations fade without evidence, and are seen by others only with evidence of three users."""

from __future__ import annotations

import pytest
from palimpsest.core.consolidation.strength import DAY_SECONDS, HALF_LIFE_DAYS, Evidence, Viewer, strength, visible

NOW = 1_700_000_000.0


def by(*users: str, days_ago: float = 0.0, conversation: int = 1) -> list[Evidence]:
    return [Evidence(user, conversation, NOW - days_ago * DAY_SECONDS) for user in users]


def test_evidence_halves_every_half_year() -> None:
    assert strength(by("ann", "ann"), NOW) == 2
    assert strength(by("ann", days_ago=HALF_LIFE_DAYS), NOW) == pytest.approx(0.5)


def test_words_that_stand_together_once_are_chance_and_fade_below_what_counts() -> None:
    ann = Viewer("ann")
    assert visible("related-to", by("ann"), ann, False, NOW) == 0
    assert visible("related-to", by("ann", "ann"), ann, False, NOW) == 2
    assert visible("related-to", by("ann", "ann", days_ago=HALF_LIFE_DAYS), ann, False, NOW) == 0
    assert visible("is-a", by("ann"), ann, False, NOW) == 1
    assert visible("is-a", by("ann", days_ago=3 * HALF_LIFE_DAYS), ann, False, NOW) == 0


def test_users_see_their_own_evidence_alone() -> None:
    assert visible("is-a", by("bob", "eve", "joe"), Viewer("ann"), False, NOW) == 0
    assert visible("is-a", by("ann", "bob"), Viewer("ann"), False, NOW) == 1


def test_shared_relations_take_three_users() -> None:
    assert visible("is-a", by("bob", "eve"), Viewer("ann"), True, NOW) == 0
    assert visible("is-a", by("bob", "bob", "bob", "eve"), Viewer("ann"), True, NOW) == 0
    assert visible("is-a", by("bob", "eve", ""), Viewer("ann"), True, NOW) == 0
    assert visible("is-a", by("bob", "eve", "joe"), Viewer("ann"), True, NOW) == 3


def test_what_is_nobodys_is_seen_in_its_conversation_alone() -> None:
    assert visible("is-a", by("", conversation=4), Viewer(conversation=4), False, NOW) == 1
    assert visible("is-a", by("", conversation=4), Viewer(conversation=5), False, NOW) == 0
    assert visible("is-a", by("", conversation=4), Viewer("ann"), False, NOW) == 0
    assert visible("is-a", by("", conversation=4), Viewer(), False, NOW) == 0


def test_whoever_operates_the_proxy_sees_all() -> None:
    assert visible("related-to", by("ann", "bob"), None, False, NOW) == 2
