"""
Pressure: how full the context window is, its tier, and the budget of a block.

The ladder is CALMem's (section 6): the fuller the window, the less a recall block says. A restore block answers a
compaction, when the client itself has just made room: it has a budget of its own at any tier.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from palimpsest.domain import Budget, Candidate, Pressure, Tier

CHARS_PER_TOKEN = 3.0  # cautious: English runs at 4, code and JSON at 3; used only to keep a block inside the window
SMALL_WINDOW_REPLY_SHARE = 0.25  # kept for the answer where a window is too small for the policy's reserve
# A block costs its client money and attention at every further request, so it stays small beside what the client itself
# sends: a quarter of that, and one long passage or a few short ones where a conversation has only begun.
OWN_SHARE = 0.25
FREE_CHARS = 1500
TIERS = (Tier.CALM, Tier.WARM, Tier.TIGHT, Tier.FULL)
TIER_EDGES = (0.60, 0.70, 0.80)  # of the window, where warm, tight and full begin; clients compact at about 0.8
# Passages of a recall block and the characters of each, by tier (CALMem section 6).
RECALL_PASSAGES = {Tier.CALM: (5, 600), Tier.WARM: (3, 400), Tier.TIGHT: (2, 250)}
ROOMY_SHARE = 0.1  # of the window, for a recall of what the proxy itself has cut
RESTORE_CHARS = 6000  # recovery saturates at 6,000 to 8,000 (LANTERN, and `palimpsest bench ablate`)
RESTORE_ROOM_SHARE = 0.5  # of the free window; the rest is for the work ahead
REMINDER_CHARS, REMINDERS_CHARS = (
    60,
    300,
)  # what a frame takes of each passage, with its day and role, and of all of them
PASSAGE_CHARS = 1000  # no passage of a restore is longer: one window of the index (LANTERN 3.1)


def pressure(prompt_tokens: int, window_tokens: int, reply_tokens: int) -> Pressure:
    """
    The fill of the context window by a request, and its tier.

    Args:
        prompt_tokens: as it will be sent, tools, images and replayed blocks included, >= 0.
        window_tokens: the model's input window, > 0.
        reply_tokens: kept free for the answer; no part of the ratio.

    Raises:
        ValueError: the window is not positive.
    """
    if window_tokens <= 0:
        raise ValueError("window_tokens must be positive")
    ratio = prompt_tokens / window_tokens
    tier = TIERS[bisect_right(TIER_EDGES, ratio)]
    return Pressure(prompt_tokens, window_tokens, reply_tokens, ratio, tier)


def reply_room(prompt_tokens: int, window_tokens: int, wanted_tokens: int | None, reserve_tokens: int) -> int:
    """
    Tokens to keep free for the answer.

    Args:
        prompt_tokens: of the request as the client sent it.
        wanted_tokens: the longest answer that it asks for. Where that is more than fits anyway, we can break nothing by
            adding: such a provider cuts answers short, and its clients ask for the most there is.
        reserve_tokens: what the policy keeps where a request names no maximum.
    """
    reserve = min(reserve_tokens, int(window_tokens * SMALL_WINDOW_REPLY_SHARE))
    wanted = wanted_tokens or reserve
    return wanted if prompt_tokens + wanted <= window_tokens else min(wanted, reserve)


def recall_budget(tier: Tier) -> Budget | None:
    """Characters of a recall block on this tier; None: no block (CALMem section 6)."""
    passages, chars = RECALL_PASSAGES.get(tier, (0, 0))
    return Budget(passages * chars, chars) if passages else None


def roomy_budget(now: Pressure) -> Budget:
    """Characters of a recall block where the proxy trims the history: all that was said may have been cut."""
    chars = min(RESTORE_CHARS, int(now.window_tokens * ROOMY_SHARE * CHARS_PER_TOKEN))
    return Budget(chars, min(chars, RECALL_PASSAGES[Tier.CALM][1]))


def limited_by_client(budget: Budget, own_chars: int) -> Budget:
    """
    The budget, or less: a block is never longer than a quarter of what the client itself sent, and 1,500 characters.

    Args:
        own_chars: of all messages of the request as the client sent it.
    """
    chars = min(budget.chars, int(own_chars * OWN_SHARE) + FREE_CHARS)
    return Budget(chars, min(chars, budget.passage_chars))


def counts_chars(budget: Budget) -> int:
    """The `own_chars` from which on `limited_by_client` leaves a budget as it is."""
    return ceil(max(budget.chars - FREE_CHARS, 0) / OWN_SHARE)


def restore_budget(now: Pressure) -> Budget | None:
    """Characters of a restore block: 6,000, and never more than half of the free room; None: no room."""
    chars = min(RESTORE_CHARS, int(free_tokens(now) * RESTORE_ROOM_SHARE * CHARS_PER_TOKEN))
    return Budget(chars, min(chars, PASSAGE_CHARS)) if chars > 0 else None


def reminder_budget(budget: Budget | None, reminders: Sequence[Candidate], now: Pressure) -> Budget | None:
    """
    The budget with room for passages that somebody asked for, but no more than a restore has; None: no room.

    Args:
        budget: of what else is said; None: nothing is.
    """
    most = restore_budget(now)
    if most is None:
        return None
    chars = sum(len(one.memory.text) + REMINDER_CHARS for one in reminders)
    if budget is None:
        return replace(most, chars=min(most.chars, chars + REMINDERS_CHARS))
    return replace(budget, chars=max(budget.chars, min(most.chars, budget.chars + chars)))


def free_tokens(now: Pressure) -> int:
    """Tokens that the window still holds beside the prompt and the answer; never negative."""
    return max(0, now.window_tokens - now.prompt_tokens - now.reply_tokens)
