import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.block.pressure import (
    counts_chars,
    free_tokens,
    limited_by_client,
    pressure,
    recall_budget,
    reply_room,
    restore_budget,
    roomy_budget,
)
from palimpsest.domain import Budget, Tier

RESERVE_TOKENS = 4096


@pytest.mark.parametrize(
    ("prompt_tokens", "tier"),
    [
        (0, Tier.CALM),
        (599, Tier.CALM),
        (600, Tier.WARM),
        (699, Tier.WARM),
        (700, Tier.TIGHT),
        (799, Tier.TIGHT),
        (800, Tier.FULL),
        (5000, Tier.FULL),
    ],
)
def test_reaching_an_edge_enters_the_next_tier(prompt_tokens: int, tier: Tier) -> None:
    assert pressure(prompt_tokens, 1000, 0).tier is tier


def test_the_reply_reserve_is_no_part_of_the_ratio() -> None:
    assert pressure(500, 1000, 400).ratio == 0.5


@pytest.mark.parametrize(
    ("prompt_tokens", "wanted_tokens", "kept_tokens"),
    [
        (10_000, None, RESERVE_TOKENS),
        (10_000, 64_000, 64_000),
        (136_000, 64_000, 64_000),
        (136_001, 64_000, RESERVE_TOKENS),
        (199_000, 2000, 2000),
    ],
)
def test_an_answer_keeps_the_room_that_it_asks_for_where_that_is_there(
    prompt_tokens: int, wanted_tokens: int | None, kept_tokens: int
) -> None:
    assert reply_room(prompt_tokens, 200_000, wanted_tokens, RESERVE_TOKENS) == kept_tokens


def test_a_window_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="window_tokens"):
        pressure(1, 0, 0)


def test_a_recall_block_says_less_on_each_tier_and_nothing_when_full() -> None:
    budgets = [recall_budget(tier) for tier in (Tier.CALM, Tier.WARM, Tier.TIGHT, Tier.FULL)]
    assert budgets == [Budget(3000, 600), Budget(1200, 400), Budget(500, 250), None]


@pytest.mark.parametrize(("own_chars", "chars"), [(0, 1500), (400, 1600), (6000, 3000), (10**6, 3000)])
def test_a_block_stays_within_a_quarter_of_what_the_client_sends_and_a_little(own_chars: int, chars: int) -> None:
    assert limited_by_client(Budget(3000, 600), own_chars) == Budget(chars, 600)


def test_a_passage_is_never_longer_than_its_block() -> None:
    assert limited_by_client(Budget(4000, 2000), 0) == Budget(1500, 1500)


@pytest.mark.parametrize(("window_tokens", "kept_tokens"), [(2048, 512), (16_384, 4096), (200_000, 4096)])
def test_a_small_window_keeps_a_quarter_for_an_answer_of_unknown_length(window_tokens: int, kept_tokens: int) -> None:
    assert reply_room(100, window_tokens, None, RESERVE_TOKENS) == kept_tokens


def test_a_restore_block_has_its_budget_at_any_tier() -> None:
    assert restore_budget(pressure(90_000, 100_000, 1000)) == Budget(6000, 1000)


def test_a_restore_block_takes_at_most_half_of_the_free_room() -> None:
    now = pressure(8000, 10_000, 1000)
    assert free_tokens(now) == 1000
    assert restore_budget(now) == Budget(1500, 1000)


def test_a_full_window_leaves_no_room_to_restore() -> None:
    assert restore_budget(pressure(10_000, 10_000, 1000)) is None


@given(st.integers(0, 10_000), st.integers(1, 2000), st.integers(0, 100_000))
def test_more_of_the_clients_own_text_than_is_counted_changes_no_budget(chars: int, passage: int, own: int) -> None:
    budget = Budget(chars, passage)
    assert limited_by_client(budget, own) == limited_by_client(budget, min(own, counts_chars(budget)))


@pytest.mark.parametrize(("window_tokens", "chars"), [(4000, 1200), (16_000, 4800), (128_000, 6000)])
def test_recall_of_what_the_proxy_has_cut_takes_a_tenth_of_the_window(window_tokens: int, chars: int) -> None:
    budget = roomy_budget(pressure(window_tokens * 3 // 4, window_tokens, RESERVE_TOKENS))
    assert budget == Budget(chars, 600)
