"""What each level of generosity demands."""

from itertools import pairwise

from palimpsest.core.recall.generosity import DEMANDS
from palimpsest.domain import BlockKind, Generosity


def test_who_is_more_generous_demands_less_of_every_kind_of_block() -> None:
    assert [*DEMANDS] == [*Generosity]
    for kind in (BlockKind.RECALL, BlockKind.RESTORE):
        for sparing, generous in pairwise(DEMANDS[level][kind] for level in Generosity):
            assert sparing.least_worth > generous.least_worth > 0
            assert sparing.least_help >= generous.least_help
            assert sparing.wishes <= generous.wishes


def test_after_a_compaction_less_is_demanded() -> None:
    for level in Generosity:
        recall, restore = DEMANDS[level][BlockKind.RECALL], DEMANDS[level][BlockKind.RESTORE]
        assert restore.least_help < recall.least_help and restore.least_worth < recall.least_worth
