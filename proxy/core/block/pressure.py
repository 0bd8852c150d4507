"""
How full is the window, and how much may be said? Tokens, tier, budget.

The ladder is CALMem's (section 6): the fuller the window, the less a recall block says. A restore block answers a
compaction, when the client itself has just made room: it has a budget of its own at any tier.
"""

from __future__ import annotations

from bisect import bisect_right

from proxy.domain import Budget, Pressure, Tier
from proxy.settings.policy import PressurePolicy, RestorePolicy

CHARS_PER_TOKEN = 3.0  # cautious: English runs at 4, code and JSON at 3; used only to keep a block inside the window
SMALL_WINDOW_REPLY_SHARE = 0.25  # kept for the answer where a window is too small for the policy's reserve
# A block costs its client money and attention at every further request, so it stays small beside what the client itself
# sends: a quarter of that, and one long passage or a few short ones where a conversation has only begun.
OWN_SHARE = 0.25
FREE_CHARS = 1500
TIERS = (Tier.CALM, Tier.WARM, Tier.TIGHT, Tier.FULL)


def pressure(prompt_tokens: int, window_tokens: int, reply_tokens: int, policy: PressurePolicy) -> Pressure:
    """
    Place a request on the ladder.

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
    tier = TIERS[bisect_right((policy.warm, policy.tight, policy.full), ratio)]
    return Pressure(prompt_tokens, window_tokens, reply_tokens, ratio, tier)


def reply_room(prompt_tokens: int, window_tokens: int, wanted_tokens: int | None, policy: PressurePolicy) -> int:
    """
    Tokens to keep free for the answer.

    Args:
        prompt_tokens: of the request as the client sent it.
        wanted_tokens: the longest answer that it asks for. Where that is more than fits anyway, we can break nothing by
            adding: such a provider cuts answers short, and its clients ask for the most there is.
    """
    reserve = min(policy.reply_reserve_tokens, int(window_tokens * SMALL_WINDOW_REPLY_SHARE))
    wanted = wanted_tokens or reserve
    return wanted if prompt_tokens + wanted <= window_tokens else min(wanted, reserve)


def recall_budget(tier: Tier, policy: PressurePolicy) -> Budget | None:
    """Characters of a recall block on this tier; None: say nothing (CALMem section 6)."""
    passages, chars = {
        Tier.CALM: (policy.calm_passages, policy.calm_passage_chars),
        Tier.WARM: (policy.warm_passages, policy.warm_passage_chars),
        Tier.TIGHT: (policy.tight_passages, policy.tight_passage_chars),
        Tier.FULL: (0, 0),
    }[tier]
    return Budget(passages * chars, chars) if passages * chars else None


def beside_own(budget: Budget, own_chars: int) -> Budget:
    """
    The budget, or less: a block is never longer than a quarter of what the client itself sent, and 1,500 characters.

    Args:
        own_chars: of all messages of the request as the client sent it.
    """
    chars = min(budget.chars, int(own_chars * OWN_SHARE) + FREE_CHARS)
    return Budget(chars, min(chars, budget.passage_chars))


def restore_budget(now: Pressure, policy: RestorePolicy) -> Budget | None:
    """Characters of a restore block: the policy's, and never more than its share of the free room; None: no room."""
    chars = min(policy.chars, int(free_tokens(now) * policy.free_room_share * CHARS_PER_TOKEN))
    return Budget(chars, min(chars, policy.passage_chars)) if chars > 0 else None


def free_tokens(now: Pressure) -> int:
    """Tokens that the window still holds beside the prompt and the answer; never negative."""
    return max(0, now.window_tokens - now.prompt_tokens - now.reply_tokens)
