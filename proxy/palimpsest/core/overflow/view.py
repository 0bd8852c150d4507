"""The view of a request that the model gets: without what a cut left out, which counts as lost until it comes back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from palimpsest.core.reading import Reading
from palimpsest.domain import TOOL_ROLES, Chat, Cut, Event, Fingerprint, Head, Lineage, NewCut, Omission, frozen
from palimpsest.domain.overflow import Ranges, numbers_in, ranges

UNSEEN = Fingerprint(0, 0)  # of a message whose words are left out: those may be told


@frozen
class View:
    """
    A request as it goes upstream.

    `reading` and `lineage` are of that; `origins` say where each of its messages stood in what the client sent, whose
    lineage is `client_lineage`.
    """

    reading: Reading
    lineage: Lineage
    client_lineage: Lineage
    origins: Sequence[int]
    omission: Omission
    is_new: bool  # more is left out than was before, or nothing of it has come back yet
    first_new: int = -1  # index of the first message that is left out for the first time; -1: none
    client_tokens: int = 0  # of the prompt as the client sent it

    @property
    def trimmed_tokens(self) -> int:
        return max(0, self.client_tokens - self.reading.tokens)


def earlier_omission(reading: Reading, lineage: Lineage) -> Omission:
    """What the cut of the branch leaves out of this request. What a client has changed in between goes with it."""
    head = lineage.head
    if head is None or not head.cut:
        return Omission()
    drops, stubs, clips = _Runs(head.cut.drops), _Runs(head.cut.stubs), dict(head.cut.clips)
    changed = set(lineage.changed)
    dropped, stubbed, clipped, unknown = set[int](), set[int](), dict[int, int](), list[int]()
    was_dropped = False
    for at, (index, place) in enumerate(zip(lineage.kept, reading.places, strict=True)):
        if index < 0 or at in changed:
            unknown.append(place)
            continue
        occurrence = head.occurrences[index]
        is_dropped = occurrence in drops
        if is_dropped:
            dropped.add(place)
            if was_dropped:
                dropped.update(unknown)
        elif occurrence in stubs:
            stubbed.add(place)
        elif occurrence in clips:
            clipped[place] = clips[occurrence]
        was_dropped, unknown = is_dropped, []
    return Omission(frozenset(dropped), frozenset(stubbed), clipped)


def view_of(
    reading: Reading, lineage: Lineage, chat: Chat, omission: Omission, tokens: Sequence[float], before: Omission
) -> View:
    """
    The view of a request of which this is left out.

    Args:
        chat: what is left of it, as the wire reads that.
        tokens: of each message of the client's, once this is left out.
        before: what the cut before leaves out, in whole steps.
    """
    origins = [at for at in range(len(reading.prints)) if at not in omission.drops]
    unread = {at for at in (*omission.stubs, *omission.clips) if _is_unread(reading, at)}
    prints = tuple(UNSEEN if at in unread else reading.prints[at] for at in origins)
    outside = reading.tokens - sum(reading.scaled_tokens)
    left = Reading(chat, prints, round(sum(tokens) + outside), tools_tokens=reading.tools_tokens)
    clipped = (at for at, chars in omission.clips.items() if before.clips.get(at) != chars)
    new = sorted((omission.drops | omission.stubs).difference(before.drops, before.stubs).union(clipped))
    head = lineage.head
    is_new = bool(new) or (head is not None and head.cut.is_untold)
    seen = _model_lineage(reading, lineage, omission.drops | unread, unread, origins, is_new) if omission else lineage
    return View(left, seen, lineage, origins, omission, is_new, new[0] if new else -1, reading.tokens)


def cut_of(view: View, reading: Reading, lineage: Lineage, *, is_untold: bool) -> NewCut:
    """The cut that leaves the same out of the requests that go on from this one."""
    head, omission = lineage.head, view.omission
    if head is not None and lineage.goes_on and view.first_new < 0:
        return NewCut(replace(head.cut, is_untold=is_untold))
    known, said = _known_indexes(reading, lineage), frozenset(reading.places)

    def runs(messages: frozenset[int]) -> tuple[Ranges, Ranges]:
        indexes = ranges(known[at] for at in messages if at in known)
        return _of_occurrences(head, indexes), ranges(at for at in messages.intersection(said) if at not in known)

    (drops, new_drops), (stubs, new_stubs) = runs(omission.drops), runs(omission.stubs)
    occurrences = {} if head is None else {at: head.occurrences[index] for at, index in known.items()}
    clips = tuple((occurrences[at], chars) for at, chars in omission.clips.items() if at in occurrences)
    new_clips = tuple((at, chars) for at, chars in omission.clips.items() if at in said.difference(occurrences))
    return NewCut(Cut(drops, stubs, clips, is_untold), new_drops, new_stubs, new_clips)


def _model_lineage(
    reading: Reading, lineage: Lineage, gone: frozenset[int], unread: set[int], origins: Sequence[int], is_new: bool
) -> Lineage:
    """The lineage as the model sees it: what it no longer sees counts as lost, and a new cut as a truncation."""
    head, known = lineage.head, _known_indexes(reading, lineage)
    kept_at = {place: at for at, place in enumerate(reading.places)}
    history = [kept_at[at] for at in origins if at in kept_at]
    moved = {at: index for index, at in enumerate(history)}
    lost = sorted(known[at] for at in gone if at in known)
    if head is not None:
        head = replace(head, lost=tuple(sorted({*head.lost, *(head.occurrences[index] for index in lost)})))
    truncates = is_new and head is not None and not lineage.restores
    return replace(
        lineage,
        event=Event.TRUNCATE if truncates else lineage.event,
        head=head,
        kept=tuple(-1 if reading.places[at] in unread else lineage.kept[at] for at in history),
        changed=tuple(moved[at] for at in lineage.changed if at in moved),
        dropped=tuple(sorted({*lineage.dropped, *(lost if truncates else ())})),
        summary_at=tuple(moved.get(at, at) for at in lineage.summary_at if at < 0 or at in moved),
        window_full=lineage.window_full and not truncates,
        goes_on=False,
    )


def _known_indexes(reading: Reading, lineage: Lineage) -> dict[int, int]:
    """Index of a message to its index in the head, for those that stand there with the same text."""
    changed, pairs = set(lineage.changed), enumerate(zip(lineage.kept, reading.places, strict=True))
    return {place: index for at, (index, place) in pairs if index >= 0 and at not in changed}


def _is_unread(reading: Reading, at: int) -> bool:
    """Whether a stub leaves nothing of a message to be read."""
    message = reading.chat.messages[at]
    return message.role in TOOL_ROLES or not message.text.strip()


def _of_occurrences(head: Head | None, indexes: Ranges) -> Ranges:
    """Runs of a head's messages as runs of their occurrences, which rise as a rule."""
    if head is None:
        return ()
    of = head.occurrences
    if all(before < after for before, after in pairwise(of)):
        return tuple((of[first], of[last]) for first, last in indexes)
    return ranges(of[index] for index in numbers_in(indexes))


class _Runs:
    """Ranges, to be asked for numbers."""

    def __init__(self, listed: Ranges) -> None:
        self._firsts = [first for first, _ in listed]
        self._lasts = [last for _, last in listed]

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]
