"""
Excerpts: short stretches of what was lost, which together hold most of the names that the work will probably need.

A name alone tells little, a whole line too much. So each stretch is a name with the few words around it, or a short
line whole, and stretches are chosen one by one by what they add for their length: coverage under a budget (Lin and
Bilmes, ACL 2011; greedy by gain per cost), weighed by the probability that each name is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain

from palimpsest.core.work.names import is_number, names, place_of
from palimpsest.domain.frozen import frozen

LINE_CHARS = 110  # a line up to this is offered whole
LOOKED_CHARS = 400  # of a longer line, around the name
PLACES = 1  # of each name are looked at beside the one that first said it: its newest
BARE = 0.6  # of its worth, for a name with fewer words beside it than tell what it is about
BESIDE = 2  # words that tell it
LEAST_GAIN = 0.0003  # probability for each character: what adds less is noise
JOINT = " · "  # between two excerpts of one message

_WORD = re.compile(r"[A-Za-z]{3,}")
_TOKEN = re.compile(r"\S+")
_STEPS = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2), (3, 3))
_EDGES = "`\"'(),;{}[]*|<> "


@frozen
class Excerpt:
    """A stretch of message `at`, one line; `held` says of each name in it whether enough words stand beside it."""

    at: int
    text: str
    held: Mapping[str, bool]


def offered(texts: Sequence[str], places: Mapping[str, Sequence[int]]) -> list[Excerpt]:
    """
    The stretches that may be told.

    Args:
        texts: all that each message says.
        places: of each wanted name the messages that hold it, rising.
    """
    found: dict[str, Excerpt] = {}
    for name, messages in places.items():
        looked_at = dict.fromkeys((*messages[-PLACES:], messages[0]))
        for at in looked_at:
            place = place_of(name, texts[at])
            if place < 0:
                continue
            line, start = _line_around(texts[at], place)
            for stretch in _stretches(line, start, start + len(name)):
                if stretch in found or not stretch:
                    continue
                held = {other: _is_beside(other, stretch) for other in sorted(names(stretch)) if other in places}
                if held:
                    found[stretch] = Excerpt(at, stretch, held)
    return [*found.values()]


def chosen(
    offers: Sequence[Excerpt], needs: Mapping[str, float], told: Mapping[str, float], chars: int
) -> list[Excerpt]:
    """
    The excerpts that add most for their room, in the order of their messages.

    Args:
        needs: probability by name.
        told: how much of a name's worth is told already, 0..1, by name.
        chars: of all of them with what joins them.
    """
    worth = dict(told)

    def gain(offer: Excerpt) -> float:
        new = (needs[n] * (_worth(n, full) - worth.get(n, 0.0)) for n, full in offer.held.items())
        return sum(g for g in new if g > 0) / (len(offer.text) + len(JOINT))

    waiting = [(-gain(offer), at) for at, offer in enumerate(offers)]
    heapify(waiting)
    taken: list[Excerpt] = []
    room = chars
    while waiting:
        before, at = heappop(waiting)
        offer = offers[at]
        cost = len(offer.text) + len(JOINT)
        if cost > room:
            continue
        now = gain(offer)
        if now < LEAST_GAIN:
            continue
        if now < -before and waiting and now < -waiting[0][0]:
            heappush(waiting, (-now, at))
            continue
        taken.append(offer)
        room -= cost
        for name, full in offer.held.items():
            worth[name] = max(worth.get(name, 0.0), _worth(name, full))
    return sorted(taken, key=lambda offer: offer.at)


def _worth(name: str, full: bool) -> float:
    """How much of a name's worth a stretch tells; a number alone tells nothing."""
    return 1.0 if full else 0.0 if is_number(name) else BARE


def _line_around(text: str, place: int) -> tuple[str, int]:
    """The line that holds a place, of a long one the stretch around it, as one line; and the place in it."""
    start = max(text.rfind("\n", 0, place) + 1, place - LOOKED_CHARS)
    stop = text.find("\n", place)
    return text[start : min(len(text) if stop < 0 else stop, place + LOOKED_CHARS)], place - start


def _stretches(line: str, start: int, stop: int) -> Iterator[str]:
    """Stretches of a line around a name, at white space; the whole line where it is short."""
    tokens = [token.span() for token in _TOKEN.finditer(line)]
    first = max((at for at, (a, _) in enumerate(tokens) if a <= start), default=0)
    last = min((at for at, (_, b) in enumerate(tokens) if b >= stop), default=len(tokens) - 1)
    whole = [(0, len(tokens) - 1)] if len(line) <= LINE_CHARS else []
    around = ((max(0, first - left), min(len(tokens) - 1, last + right)) for left, right in _STEPS)
    for low, high in dict.fromkeys(chain(whole, around)):
        stretch = " ".join(line[tokens[low][0] : tokens[high][1]].split())
        if len(stretch) <= LINE_CHARS + (stop - start):
            yield stretch.strip(_EDGES)


def _is_beside(name: str, stretch: str) -> bool:
    """Whether other words stand beside a name in a stretch that tell what it is about."""
    return len(set(_WORD.findall(stretch.replace(name, " ")))) >= BESIDE
