"""What each price demands."""

from itertools import pairwise

import pytest
from palimpsest.core.recall.generosity import CERTAIN, DEMANDS, PRICES, TRUSTED_TURNS, demanded, overspent
from palimpsest.domain import Block, BlockKind, Generosity, Head, Role, StoredBlock

TOKENS = 100  # of each block


def head(turns: int, blocks: int, kind: BlockKind = BlockKind.RECALL) -> Head:
    """A conversation of so many turns whose client has dropped all but ten messages, with so many blocks."""
    stored = tuple(StoredBlock(at, Block("x", kind, (), tokens=TOKENS)) for at in range(blocks))
    shown = tuple(range(10))
    lost = tuple(range(2 * turns - 10))
    return Head("c", 1, Role.MAIN, shown, shown, shown, shown, lost=lost, blocks=stored)


def test_who_is_more_generous_demands_less_of_every_kind_of_block() -> None:
    assert [*DEMANDS] == [*PRICES] == [*Generosity]
    for kind in (BlockKind.RECALL, BlockKind.RESTORE):
        for sparing, generous in pairwise(DEMANDS[level][kind] for level in Generosity):
            assert sparing.least_worth > generous.least_worth > 0
            assert sparing.least_help >= generous.least_help
            assert sparing.wishes <= generous.wishes


def test_after_a_compaction_less_is_demanded() -> None:
    for level in Generosity:
        recall, restore = DEMANDS[level][BlockKind.RECALL], DEMANDS[level][BlockKind.RESTORE]
        assert restore.least_help < recall.least_help and restore.least_worth < recall.least_worth


@pytest.mark.parametrize("kind", [BlockKind.RECALL, BlockKind.RESTORE])
def test_a_level_is_its_price(kind: BlockKind) -> None:
    for level, tokens in PRICES.items():
        assert demanded(level, kind) == demanded(tokens, kind) == DEMANDS[level][kind]


def test_a_higher_price_demands_less_and_beyond_what_was_measured_no_less() -> None:
    demands = [demanded(tokens, BlockKind.RECALL) for tokens in (20, 30, 60, 61, 100, 150)]
    for dear, cheap in pairwise(demands):
        assert dear.least_help > cheap.least_help and dear.least_worth > cheap.least_worth
        assert dear.whole_chars <= cheap.whole_chars
    assert demanded(1, BlockKind.RECALL) == demands[0] and demanded(9999, BlockKind.RECALL) == demands[-1]


def test_who_spends_more_than_the_price_must_be_surer_of_a_recall() -> None:
    demands = [demanded(60.0, BlockKind.RECALL, head(200, blocks)) for blocks in (20, 40, 60, 80)]
    assert demands[0] == demanded(60.0, BlockKind.RECALL)
    for less, more in pairwise(demands):
        assert less.least_help < more.least_help and less.least_worth < more.least_worth


def test_what_is_certain_to_help_comes_whatever_was_spent() -> None:
    assert demanded(1.0, BlockKind.RECALL, head(200, 200)).least_help == pytest.approx(CERTAIN)


def test_who_spends_nothing_gets_no_weaker_blocks_for_it() -> None:
    assert demanded(60.0, BlockKind.RECALL, head(1000, 0)) == demanded(60.0, BlockKind.RECALL)


def test_blocks_of_a_compaction_are_demanded_and_counted_apart() -> None:
    assert demanded(60.0, BlockKind.RESTORE, head(200, 200)) == demanded(60.0, BlockKind.RESTORE)
    restored = head(200, 200, BlockKind.RESTORE)
    assert demanded(60.0, BlockKind.RECALL, restored) == demanded(60.0, BlockKind.RECALL)


def test_a_conversation_that_keeps_to_its_price_is_never_held_back_and_one_that_begins_is_trusted() -> None:
    assert overspent(None, 60.0) == 1.0
    assert overspent(head(200, 24), 60.0) == pytest.approx(1.0)  # five sendings of 100 tokens in 8.3 turns
    assert overspent(head(10, 5), 60.0) < 1 + 10 / TRUSTED_TURNS * 4


def test_lasting_wishes_come_unasked_with_a_restore_alone() -> None:
    assert {demands[BlockKind.RECALL].wishes for demands in DEMANDS.values()} == {0}
    assert all(demands[BlockKind.RESTORE].wishes > 0 for demands in DEMANDS.values())
