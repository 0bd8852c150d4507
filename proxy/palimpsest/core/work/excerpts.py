"""
Excerpts: short stretches of what was lost, which together hold most of the names that the work will probably need.

A name alone tells little, a whole line too much. So a stretch is a name with the few words around it, a short line
whole, or names of one line that say with each other what they are about. Stretches are chosen one by one by what they
add for their length: coverage under a budget (Lin and Bilmes, ACL 2011; greedy by gain per cost), weighed by the
probability that each name is needed. They stand under the file that they are from, which takes room once.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise
from operator import itemgetter

from palimpsest.core.work.names import is_number, names, placed
from palimpsest.domain.frozen import frozen

LINE_CHARS = 110  # a line up to this is offered whole
LOOKED_CHARS = 400  # of a longer line, around the name
ROW_NAMES = 12  # the first of a line, told without what stands between them
DENSE_LINES = 2  # of each name, those with most other wanted names, beside its newest and its first one
BARE = 0.6  # of its worth, for a name with fewer words beside it than tell what it is about
BESIDE = 2  # words that tell it
LEAST_GAIN = 0.0001  # probability for each character: what adds less is noise
JOINT = ", "  # between two excerpts of one message

_WORD = re.compile(r"[A-Za-z]{3,}")
_TOKEN = re.compile(r"\S+")
_STEPS = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0))
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_BRACKET = re.compile(r"[()\[\]{}]")
_EDGES = "`\"'(),;{}[]*|<> "
_ENDS = _EDGES + ".:"  # and what closes a sentence


@frozen
class Excerpt:
    """
    A stretch of message `at`, from character `place` on, in one line.

    `held` says of each wanted name in it whether enough words stand beside it. `head` is the file that it is from; "":
    what the message's role says.
    """

    at: int
    place: int
    text: str
    held: Mapping[str, bool]
    head: str = ""


def offered(texts: Sequence[str], wanted: Set[str], heads: Sequence[str]) -> list[Excerpt]:
    """
    The stretches that may be told.

    Args:
        texts: all that each message says.
        wanted: names.
        heads: of each message the file that it is from, or "".
    """
    inside = {name: [other for other in wanted if other in name] for name in wanted}
    lines = {at: _lines_of(text, wanted) for at, text in enumerate(texts)}
    found: dict[str, Excerpt] = {}
    for at, start in sorted(_told_lines(lines), reverse=True):
        text, here = texts[at], lines[at][start]
        for stretch, place in _stretches_of(text, start, here):
            if stretch in found or not stretch:
                continue
            standing = {part for name in names(stretch) if name in inside for part in inside[name]}
            if standing:
                held = {name: _is_beside(name, stretch) for name in sorted(standing)}
                head = "" if stretch in heads[at] else heads[at]  # a path is not told under itself
                found[stretch] = Excerpt(at, place, stretch, held, head)
    return [*found.values()]


def choose_excerpts(
    offers: Sequence[Excerpt], needs: Mapping[str, float], told: Mapping[str, float], chars: int, head_chars: int
) -> list[Excerpt]:
    """
    The excerpts that add most for their room, in the order of their messages.

    Args:
        needs: probability by name.
        told: how much of a name's worth is told already, 0..1, by name.
        chars: of all of them with what joins them.
        head_chars: around each head.
    """
    worth = dict(told)
    bare = {name: 0.0 if is_number(name) else BARE for name in needs}  # a number alone tells nothing
    opened = {""}
    under: dict[str, list[int]] = defaultdict(list)
    for at, offer in enumerate(offers):
        under[offer.head].append(at)

    def cost(offer: Excerpt) -> int:
        head = 0 if offer.head in opened else len(offer.head) + head_chars
        return len(offer.text) + len(JOINT) + head

    headed = {head: [name for name in needs if name in head] for head in under}

    def held(offer: Excerpt) -> Mapping[str, bool]:
        return offer.held if offer.head in opened else {**dict.fromkeys(headed[offer.head], False), **offer.held}

    def gain(offer: Excerpt) -> float:
        """What an excerpt adds of the names that are needed, per token of its cost."""
        new = 0.0
        for name, full in held(offer).items():
            more = (1.0 if full else bare[name]) - worth.get(name, 0.0)
            if more > 0:
                new += needs[name] * more
        return new / cost(offer)

    waiting = [(-gain(offer), at) for at, offer in enumerate(offers)]
    heapify(waiting)
    taken: dict[int, Excerpt] = {}
    too_long: list[int] = []
    room = chars
    while waiting:
        before, at = heappop(waiting)
        offer = offers[at]
        if at in taken:
            continue
        if cost(offer) > room:
            too_long.append(at)
            continue
        now = gain(offer)
        if now < LEAST_GAIN:
            continue
        if now < -before and waiting and now < -waiting[0][0]:
            heappush(waiting, (-now, at))
            continue
        room -= cost(offer)
        for other in [other for other, one in taken.items() if one.text in offer.text]:  # it says that once more
            room += len(taken.pop(other).text) + len(JOINT)
            for skipped in too_long:
                heappush(waiting, (-gain(offers[skipped]), skipped))
            too_long.clear()
        taken[at] = offer
        for name, full in held(offer).items():
            worth[name] = max(worth.get(name, 0.0), 1.0 if full else bare[name])
        if offer.head not in opened:
            opened.add(offer.head)
            for other in under[offer.head]:  # which are cheaper now
                heappush(waiting, (-gain(offers[other]), other))
    return sorted(taken.values(), key=lambda offer: (offer.at, offer.place))


def _lines_of(text: str, wanted: Set[str]) -> dict[int, list[tuple[str, int]]]:
    """Of each line of a text that holds wanted names, where it starts, and these with their places."""
    found: dict[int, list[tuple[str, int]]] = {}
    for name, place in placed(text):
        if name in wanted:
            found.setdefault(text.rfind("\n", 0, place) + 1, []).append((name, place))
    return found


def _told_lines(lines: Mapping[int, Mapping[int, Sequence[tuple[str, int]]]]) -> set[tuple[int, int]]:
    """The lines that are looked at, by message and start: of each name the newest, the first, and the richest ones."""
    of: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for at, starts in lines.items():
        for start, here in starts.items():
            held = {name for name, _ in here}
            for name in held:
                of[name].append((len(held), at, start))
    taken: set[tuple[int, int]] = set()
    for places in of.values():
        richest = sorted(places, reverse=True)[:DENSE_LINES]
        taken.update((at, start) for _, at, start in (places[0], places[-1], *richest))
    return taken


def _stretches_of(text: str, start: int, here: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Stretches of a line that holds names, each with its place."""
    row = [*dict(here).items()]
    rows = (row[:ROW_NAMES], *pairwise(row), *zip(row, row[1:], row[2:], strict=False)) if len(row) > 1 else ()
    for part in rows:
        yield " ".join(name for name, _ in part), part[0][1]
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    for name, place in row:
        first = max(start, place - LOOKED_CHARS)
        line = text[first : min(stop, place + LOOKED_CHARS)]
        for stretch in _stretches(line, place - first, place - first + len(name)):
            yield stretch, place


def _stretches(line: str, start: int, stop: int) -> Iterator[str]:
    """Stretches of a line around a name, at white space; the whole line where it is short."""
    tokens = [token.span() for token in _TOKEN.finditer(line)]
    first = max(bisect_right(tokens, start, key=itemgetter(0)) - 1, 0)
    last = min(bisect_left(tokens, stop, key=itemgetter(1)), len(tokens) - 1)
    whole = [(0, len(tokens) - 1)] if len(line) <= LINE_CHARS else []
    around = ((max(0, first - left), min(len(tokens) - 1, last + right)) for left, right in _STEPS)
    for low, high in dict.fromkeys(chain(whole, around)):
        stretch = " ".join(line[tokens[low][0] : tokens[high][1]].split())
        if len(stretch) <= LINE_CHARS + (stop - start):
            yield _closed(stretch).lstrip(_EDGES).rstrip(_ENDS)


def _closed(stretch: str) -> str:
    """A stretch without the brackets and quotation marks whose other half was cut off."""
    opened: list[int] = []
    lone: list[int] = []
    for found in _BRACKET.finditer(stretch):
        sign, at = found[0], found.start()
        if sign in _BRACKETS:
            opened.append(at)
        elif opened and _BRACKETS[stretch[opened[-1]]] == sign:
            opened.pop()
        else:
            lone.append(at)
    lone += opened + [stretch.rfind(mark) for mark in '`"' if stretch.count(mark) % 2]
    if not lone:
        return stretch
    return " ".join("".join(" " if at in lone else sign for at, sign in enumerate(stretch)).split())


def _is_beside(name: str, stretch: str) -> bool:
    """Whether other words stand beside a name in a stretch that tell what it is about."""
    return len(set(_WORD.findall(stretch.replace(name, " ")))) >= BESIDE
