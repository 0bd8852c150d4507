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
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from operator import itemgetter

from palimpsest.core.work.names import Places, is_number
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


def offered(
    texts: Sequence[str], stood: Sequence[Places], wanted: Set[str], heads: Sequence[str], whole: Set[str]
) -> list[Excerpt]:
    """
    The stretches that may be told.

    Args:
        texts: all that each message says.
        stood: of each the names with their places.
        wanted: names.
        heads: of each message the file that it is from, or "".
        whole: lines that tell little in parts, as commands do: those that are short come whole, or not at all.
    """
    inside = _parts_of(wanted)
    lines = {at: _lines_of(text, stood[at], wanted) for at, text in enumerate(texts)}
    found: dict[str, Excerpt] = {}
    for at, start in sorted(_told_lines(lines), reverse=True):
        for stretch, place, here in _stretches_of(texts[at], start, lines[at][start], whole):
            if stretch in found or not stretch:
                continue
            standing = {part for name in here for part in inside[name]}
            held = _beside(sorted(standing), stretch)
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
    bare = {name: 0.0 if is_number(name) else BARE for name in needs}  # a number alone tells nothing
    worth = {**dict.fromkeys(needs, 0.0), **told}
    under: dict[str, list[int]] = defaultdict(list)
    for at, offer in enumerate(offers):
        under[offer.head].append(at)
    held = [offer.held for offer in offers]
    costs = [len(offer.text) + len(JOINT) for offer in offers]
    for head in under.keys() - {""}:  # what opens it tells its names, and has its cost
        named = dict.fromkeys((name for name in needs if name in head), False)
        for at in under[head]:
            held[at] = {**named, **held[at]} if named else held[at]
            costs[at] += len(head) + head_chars

    def gain(at: int) -> float:
        """What an excerpt adds of the names that are needed, per token of its cost."""
        new = 0.0
        for name, full in held[at].items():
            more = (1.0 if full else bare[name]) - worth[name]
            if more > 0:
                new += needs[name] * more
        return new / costs[at]

    waiting = [(-gain(at), at) for at in range(len(offers))]
    heapify(waiting)
    taken: dict[int, Excerpt] = {}
    too_long: list[int] = []
    room = chars
    while waiting:
        before, at = heappop(waiting)
        offer = offers[at]
        if at in taken:
            continue
        if costs[at] > room:
            too_long.append(at)
            continue
        now = gain(at)
        if now < LEAST_GAIN:
            continue
        if now < -before and waiting and now < -waiting[0][0]:
            heappush(waiting, (-now, at))
            continue
        room -= costs[at]
        for other in [other for other, one in taken.items() if one.text in offer.text]:  # it says that once more
            room += len(taken.pop(other).text) + len(JOINT)
            for skipped in too_long:
                heappush(waiting, (-gain(skipped), skipped))
            too_long.clear()
        taken[at] = offer
        for name, full in held[at].items():
            worth[name] = max(worth[name], 1.0 if full else bare[name])
        for other in under.pop(offer.head, ()) if offer.head else ():  # which are cheaper now
            held[other] = offers[other].held
            costs[other] -= len(offer.head) + head_chars
            heappush(waiting, (-gain(other), other))
    return sorted(taken.values(), key=lambda offer: (offer.at, offer.place))


def _parts_of(wanted: Set[str]) -> dict[str, list[str]]:
    """Of each name the names that stand in it, itself among them."""
    listed = [*wanted]
    starts = [*accumulate((len(name) + 1 for name in listed), initial=0)]
    joined = "\n".join(listed)
    inside: dict[str, list[str]] = {name: [] for name in listed}
    for name in listed:
        place = joined.find(name)
        while place >= 0:
            at = bisect_right(starts, place)
            inside[listed[at - 1]].append(name)
            place = joined.find(name, starts[at])
    return inside


def _lines_of(text: str, stood: Places, wanted: Set[str]) -> dict[int, list[tuple[str, int]]]:
    """Of each line of a text that holds wanted names, where it starts, and these with their places."""
    found: dict[int, list[tuple[str, int]]] = {}
    for name, place in stood:
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


def _stretches_of(
    text: str, start: int, here: Sequence[tuple[str, int]], whole: Set[str]
) -> Iterator[tuple[str, int, Sequence[str]]]:
    """Stretches of a line that holds these names, each with its place and the names that stand in it."""
    row = [*dict(here).items()]
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    if len(line := text[start:stop].strip()) <= LINE_CHARS and line in whole:
        yield line, start, [name for name, _ in row]
        return
    rows = (row[:ROW_NAMES], *pairwise(row), *zip(row, row[1:], row[2:], strict=False)) if len(row) > 1 else ()
    for part in rows:
        told = [name for name, _ in part]
        yield " ".join(told), part[0][1], told
    tokens: list[tuple[int, int]] = []
    done: set[tuple[int, int]] = set()
    looked_at = (0, 0)
    for name, place in row:
        window = max(start, place - LOOKED_CHARS), min(stop, place + LOOKED_CHARS)
        if window != looked_at:
            tokens, looked_at = [token.span() for token in _TOKEN.finditer(text, *window)], window
            done.clear()
        for low, high in _spans(tokens, place, place + len(name), window[1] - window[0] <= LINE_CHARS):
            if (low, high) in done:
                continue
            stretch = " ".join(text[low:high].split())
            if len(stretch) <= LINE_CHARS + len(name):
                done.add((low, high))
                told = [one for one, at in here if low <= at and at + len(one) <= high]
                yield _closed(stretch).lstrip(_EDGES).rstrip(_ENDS), place, told


def _spans(tokens: Sequence[tuple[int, int]], start: int, stop: int, is_short: bool) -> Iterator[tuple[int, int]]:
    """Where stretches around a name begin and end, at white space; of a short line the whole."""
    first = max(bisect_right(tokens, start, key=itemgetter(0)) - 1, 0)
    last = min(bisect_left(tokens, stop, key=itemgetter(1)), len(tokens) - 1)
    if is_short:
        yield tokens[0][0], tokens[-1][1]
    for left, right in _STEPS:
        yield tokens[max(0, first - left)][0], tokens[min(len(tokens) - 1, last + right)][1]


def _closed(stretch: str) -> str:
    """A stretch without the brackets and quotation marks whose other half was cut off."""
    brackets, paired = "".join(_BRACKET.findall(stretch)), None
    while brackets != paired:
        brackets, paired = brackets.replace("()", "").replace("[]", "").replace("{}", ""), brackets
    lone = [stretch.rfind(mark) for mark in '`"' if stretch.count(mark) % 2]
    lone += _lone_brackets(stretch) if brackets else ()
    if not lone:
        return stretch
    signs = [*stretch]
    for at in lone:
        signs[at] = " "
    return " ".join("".join(signs).split())


def _lone_brackets(stretch: str) -> list[int]:
    """Where brackets stand whose other half does not."""
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
    return lone + opened


def _beside(standing: Iterable[str], stretch: str) -> dict[str, bool]:
    """Of each name in a stretch, whether enough other words stand beside it that tell what it is about."""
    words = len(set(_WORD.findall(stretch)))
    held: dict[str, bool] = {}
    for name in standing:
        taken = len(name) // 3 + 2 * stretch.count(name)  # words at most: its own, and those that it stands in
        held[name] = words - taken >= BESIDE or len(set(_WORD.findall(stretch.replace(name, " ")))) >= BESIDE
    return held
