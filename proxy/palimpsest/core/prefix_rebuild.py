"""Why a part of a prompt was not read from the provider's prefix cache, told by what the provider counted."""

from __future__ import annotations

from palimpsest.domain import Cost, Rebuild, Usage, frozen

# Anthropic drops what nobody asked for in 5 minutes, unless a client pays for an hour; OpenAI after 5 to 10 minutes
# (their guides on prompt caching). The shorter life, so that nothing expired is called unexpected.
CACHE_LIFE_SECONDS = 300.0
# The shortest prompt that either caches; OpenAI counts in steps of 128. Less than that was never worth a cache.
SMALLEST_PREFIX_TOKENS = 1024


@frozen
class PreviousPrompt:
    """The request that another goes on from."""

    at: float  # Unix seconds
    added_tokens: int
    usage: Usage

    @property
    def cached_tokens(self) -> int | None:
        """Tokens of the prompt that the provider may have cached; None: it reports too little."""
        usage = self.usage
        if usage.cache_write_tokens is not None:  # only what the client marks is kept, and the provider tells how much
            return usage.cache_write_tokens + (usage.cache_read_tokens or 0)
        if usage.cache_read_tokens is None or usage.input_tokens is None:
            return None
        return usage.input_tokens if usage.input_tokens >= SMALLEST_PREFIX_TOKENS else 0


def rebuild_of(cost: Cost, at: float, before: PreviousPrompt | None, *, is_first: bool) -> tuple[Rebuild, int] | None:
    """
    Why the provider did not read a part of a prompt from its cache, and how many tokens that was.

    Args:
        at: when the request came, Unix seconds.
        before: None: there is none, or what it sent was not counted.
        is_first: there is none.

    Returns:
        None where that cannot be told from what the provider says, of this request or of the one before.
    """
    sent, read = cost.usage.input_tokens, cost.usage.cache_read_tokens
    if sent is None or read is None:
        return None
    if is_first:
        return Rebuild.FIRST, max(sent - read, 0)
    if before is None or before.cached_tokens is None:
        return None
    missing = min(before.cached_tokens, sent) - read
    if missing < SMALLEST_PREFIX_TOKENS:
        return Rebuild.NONE, 0
    if cost.change is not None:
        return cost.change, missing
    if cost.added.repeated_tokens != before.added_tokens:  # one of the two went without blocks, in haste for example
        return Rebuild.OURS, missing
    return (Rebuild.IDLE if at - before.at > CACHE_LIFE_SECONDS else Rebuild.UNEXPECTED), missing
