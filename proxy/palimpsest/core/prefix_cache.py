"""
Changes of the prefix that a provider caches, and who made them. `prefix_rebuild` says what that cost.

A provider keeps how a prompt begins, for a while, and reads that from its cache where the next prompt begins alike. So
whatever changes far in front of a prompt costs all that stands behind it once more.
"""

from __future__ import annotations

from bisect import bisect_left

from palimpsest.core.decision import Decision
from palimpsest.domain import Head, Rebuild, Role


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
