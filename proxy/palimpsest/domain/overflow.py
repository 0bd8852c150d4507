"""Overflow: what of a request stays behind because the conversation has outgrown the model's window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import pairwise

from palimpsest.domain.frozen import frozen
from palimpsest.domain.requests import Chat

Ranges = tuple[tuple[int, int], ...]
"""Numbers, as the first and the last of each run of them, rising."""

Clips = tuple[tuple[int, int], ...]
"""Numbers of messages, each with the characters that stay of it."""


@frozen
class Omission:
    """
    Messages of one request, as indexes into its `chat.messages`, and what becomes of each.

    `drops` are left out. Of `stubs` a tool's result becomes a few words, and the arguments of calls become `{}`. Of
    `clips`, results longer than the window has room for, so many characters stay, from both ends.
    """

    drops: frozenset[int] = frozenset()
    stubs: frozenset[int] = frozenset()
    clips: Mapping[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.drops or self.stubs or self.clips)


@frozen
class Trim:
    """
    A look-up of decisions: the request without these messages. It is answered with a `Chat`; None: that cannot be done
    without doubt about what is left.
    """

    chat: Chat
    omission: Omission


@frozen
class Cut:
    """
    What is left out of each request of a branch, until there is a next cut: ranges of occurrences.

    What is told apart by occurrences stays the same when the client sends its history again, and after a restart.
    """

    drops: Ranges = ()
    stubs: Ranges = ()
    clips: Clips = ()
    is_untold: bool = False  # nothing of it has come back yet, because the request that it was made for had no room

    def __bool__(self) -> bool:
        return bool(self.drops or self.stubs or self.clips)


@frozen
class NewCut:
    """A cut as the turn knows it that made it: positions of messages that have no occurrence before it is written."""

    cut: Cut = Cut()
    drops: Ranges = ()
    stubs: Ranges = ()
    clips: Clips = ()

    def stored(self, occurrences: Mapping[int, int]) -> Cut:
        """The cut as it is kept, by the occurrences of the new messages by position, rising with that."""

        def beside(known: Ranges, new: Ranges) -> Ranges:
            there = [[occurrences[at] for at in numbers_in((run,)) if at in occurrences] for run in new]
            return tuple(sorted((*known, *((run[0], run[-1]) for run in there if run))))

        clips = ((occurrences[at], chars) for at, chars in self.clips if at in occurrences)
        return Cut(
            beside(self.cut.drops, self.drops),
            beside(self.cut.stubs, self.stubs),
            (*self.cut.clips, *clips),
            self.cut.is_untold,
        )


def ranges(numbers: Iterable[int]) -> Ranges:
    """These numbers, which need not be in order."""
    every = sorted(set(numbers))
    if not every:
        return ()
    breaks = [(before, after) for before, after in pairwise(every) if after != before + 1]
    firsts, lasts = [every[0], *(after for _, after in breaks)], [*(before for before, _ in breaks), every[-1]]
    return tuple(zip(firsts, lasts, strict=True))


def numbers_in(listed: Ranges) -> Iterator[int]:
    """All numbers of some ranges."""
    return (number for first, last in listed for number in range(first, last + 1))
