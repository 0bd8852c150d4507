"""
What becomes of a provider's prefix cache: who changed what was sent before, and why a part of it was read anew.

A provider keeps how a prompt begins, for a while, and reads that from its cache where the next prompt begins alike. So
whatever changes far in front of a prompt costs all that stands behind it once more.
"""

from __future__ import annotations

from bisect import bisect_left

from palimpsest.core.decision import Decision
from palimpsest.domain import Cost, Head, Rebuild, Role, Usage, frozen

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


def change_of(decision: Decision) -> Rebuild | None:
    """
    Who changed the prefix that the previous request sent: the client, the proxy, or None.

    Where both did, whoever did so further in front; the client where that is one place, as a block goes with its
    message. Messages are compared as lineage does: clock times in them, for one, are not looked at.
    """
    head = decision.lineage.head
    if head is None or decision.lineage.role is Role.SIDE:
        return None
    theirs, ours = _change_by_client(decision, head), _change_by_us(decision, head)
    if theirs is None and ours is None:
        return None
    return Rebuild.OURS if theirs is None or (ours is not None and ours < theirs) else Rebuild.CLIENT


def _change_by_client(decision: Decision, head: Head) -> int | None:
    """The first message of the request before that is not where it was, as an index into the head; -1: what stands in
    front of all of them has changed.
    """
    shape, before, lineage = decision.shape, head.shape, decision.lineage
    if (shape.model, shape.tool_names, shape.tools_tokens, shape.instructions) != (
        *(before.model, before.tool_names, before.tools_tokens, before.instructions),
    ):
        return -1
    if lineage.goes_on:
        return None
    sent, length = (*lineage.held, *lineage.kept)[: head.request_length], head.request_length
    changed = min((len(lineage.held) + at for at in lineage.changed), default=length)
    if sent == tuple(range(length)):  # in a hundredth of the time that looking at each takes
        return changed if changed < length else None
    moved = next((at for at, index in enumerate(sent) if index != at), len(sent))
    return min(moved, changed)


def _change_by_us(decision: Decision, head: Head) -> int | None:
    """The first message of the request before whose block is gone, in front of which there is a new one, or that was
    left out.
    """
    standing = {stored.occurrence for stored in decision.replayed.visible}
    gone = (head.index_of(stored.occurrence) for stored in head.blocks if stored.occurrence not in standing)
    places = [at for at in gone if at is not None]
    if decision.block is not None and decision.anchor >= 0:
        at = bisect_left(decision.reading.places, decision.client_anchor)
        places += [index for index in decision.lineage.kept[at : at + 1] if 0 <= index < head.request_length]
    if decision.view is not None and decision.view.first_new >= 0:
        at = bisect_left(decision.reading.places, decision.view.first_new)
        places += [index for index in decision.lineage.kept[at : at + 1] if 0 <= index < head.request_length]
    return min(places, default=None)
