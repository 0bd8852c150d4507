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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import accumulate
from operator import itemgetter

from palimpsest.core.work.names import Places, is_number
from palimpsest.core.work.statements import SENTENCE
from palimpsest.domain.frozen import frozen

LINE_CHARS = 110  # a line up to this is offered whole
RECORD_CHARS = 150  # also of a record with the names that it stands under
SENTENCE_CHARS = 200  # of a person's, which is told whole
LOOKED_CHARS = 400  # of a longer line, around the name
ROW_STEPS = (1, 2)  # names of a line behind one that are told with it: more are a list that nobody can read
DENSE_LINES = 2  # of each name, those with most other wanted names, beside its newest and its first one
BARE = 0.6  # of its worth, for a name with fewer words beside it than tell what it is about
SAID_LENGTH = 1.3  # of such names alone, for which they are told with what stands between them, as it was said
OPENING_CHARS = 5  # at most, of what opens a name: `(~/.`, and the sign in front of it
BESIDE = 2  # words that tell it
ALIKE = 2  # names that differ in their digits alone: more are a list, as of a log
LEAST_GAIN = 0.0001  # probability for each character: what adds less is noise
JOINT = "; "  # between two excerpts

_WORD = re.compile(r"[A-Za-z]{3,}")
DIGITS = re.compile(r"\d+")
_TOKEN = re.compile(r"\S+")
_STEPS = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (0, 3), (3, 0))
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_BRACKET = re.compile(r"[()\[\]{}]")
_MARKED = re.compile(r"[()\[\]{}\"`]")
_EDGES = "`\"'(),;{}[]*|<> "
_BEFORE = re.compile(r"(?<![\w)\]}<>-])(?:--?|[$@]|~?\.{0,2}/\.?|\.)\Z")  # a name: of a path, an option, a variable
_OPENS = frozenset("-$@/.")  # the last sign of it
_BEHIND = ")]}\"'`"
_MATES = {**_BRACKETS, **{quote: quote for quote in "`\"'"}}
_PAIRS = {mate: sign for sign, mate in _MATES.items()}
_NEGATES = re.compile(r"(?:not|no|never|without|cannot|neither|nor|none|\w+n['\u2019]t)", re.IGNORECASE).fullmatch
_JOINS = frozenset(("the", "a", "an", "and", "or", "of", "to", "for", "in", "on", "at"))
_RECORD = re.compile(r"(?:[\w-]+: [^,]+(?:, |$)){2,}").fullmatch  # fields, which tell what each other is of
_SHORT_FIELD = re.compile(r"[\w-]{1,30}: \S.{0,29}").fullmatch  # whose value is no part of another one: "Suite 217"
_SIGNS = re.compile(r"[^\w\s]+").fullmatch
_IS_FIELD = re.compile(r"[^\w\s]?\w+[^\w\s]?:").fullmatch  # its name without its value, which tells nothing
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
    texts: Sequence[str],
    stood: Sequence[Places],
    wanted: Set[str],
    heads: Sequence[str],
    whole: Set[str],
    typed: Set[int],
) -> list[Excerpt]:
    """
    The stretches that may be told.

    Args:
        texts: all that each message says.
        stood: of each the names with their places.
        wanted: names.
        heads: of each message the file that it is from, or "".
        whole: lines that tell little in parts, as commands do: those that are short come whole, or not at all.
        typed: the messages of which sentences are told: in parts, they may say the contrary.
    """
    inside = _parts_of(wanted)
    lines = {at: _lines_of(text, stood[at], wanted) for at, text in enumerate(texts)}
    found: dict[str, Excerpt] = {}
    for at, start in sorted(_told_lines(lines), reverse=True):
        stretches = _sentences_of if at in typed else partial(_stretches_of, whole=whole)
        for stretch, place, here in stretches(texts[at], start, lines[at][start]):
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
    forms = [{name: _form(name, offer.text) for name in offer.held} for offer in offers]
    costs = [len(offer.text) + len(JOINT) for offer in offers]
    for head in under.keys() - {""}:  # what opens it tells its names, and has its cost
        named = dict.fromkeys((name for name in needs if name in head), False)
        for at in under[head]:
            held[at] = {**named, **held[at]} if named else held[at]
            forms[at] |= {name: _form(name, head) for name in named}
            costs[at] += len(head) + head_chars

    alike: Counter[str] = Counter()  # of the names that are told, by form

    def gain(at: int) -> float:
        """What an excerpt adds of the names that are needed, per token of its cost."""
        new = 0.0
        for name, full in held[at].items():
            more = (1.0 if full else bare[name]) - worth[name]
            if more > 0 and alike[forms[at].get(name, name)] < ALIKE:
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
            alike[forms[at].get(name, name)] += not worth[name]
            worth[name] = max(worth[name], 1.0 if full else bare[name])
        for other in under.pop(offer.head, ()) if offer.head else ():  # which are cheaper now
            held[other] = offers[other].held
            costs[other] -= len(offer.head) + head_chars
            heappush(waiting, (-gain(other), other))
    return sorted(taken.values(), key=lambda offer: (offer.at, offer.place))


def _form(name: str, stretch: str) -> str:
    """A name without its digits; of a number, with the word before it, or behind it."""
    before, _, behind = stretch.partition(name) if is_number(name) else ("", "", "")
    return DIGITS.sub("0", "".join([*before.split()[-1:], name, *(() if before.strip() else behind.split()[:1])]))


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


def _sentences_of(text: str, start: int, here: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, Sequence[str]]]:
    """The sentences of a line that hold these names; of one that is too long, stretches."""
    stop = text.find("\n", start)
    for sentence in SENTENCE.finditer(text, start, len(text) if stop < 0 else stop):
        inside = [(name, at) for name, at in here if sentence.start() <= at < sentence.end()]
        if sentence[0].endswith("?"):
            yield from ((name, at, [name]) for name, at in inside)
        elif inside and len(sentence[0]) <= SENTENCE_CHARS:
            yield sentence[0].strip().rstrip("."), inside[0][1], [name for name, _ in inside]
        elif inside:
            yield from _stretches_of(text, start, inside, frozenset())


def _stretches_of(
    text: str, start: int, here: Sequence[tuple[str, int]], whole: Set[str]
) -> Iterator[tuple[str, int, Sequence[str]]]:
    """Stretches of a line that holds these names, each with its place and the names that stand in it."""
    row = [*dict(here).items()]
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    line = text[start:stop].strip()
    is_whole = (line in whole and len(line) <= LINE_CHARS) or _SHORT_FIELD(line)
    if is_whole or (len(line) <= RECORD_CHARS and _RECORD(line)):
        yield line, start, [name for name, _ in row]
        return
    opened = [_opening(text, place) for _, place in row]
    for first, last in [(at, at + more) for more in ROW_STEPS for at in range(len(row) - more)]:
        part, starts = row[first : last + 1], opened[first : last + 1]
        end = part[-1][1] + len(part[-1][0])
        names_chars = sum(place - at + len(name) + 1 for at, (name, place) in zip(starts, part, strict=True))
        if end - starts[0] <= names_chars * SAID_LENGTH:
            said = _trimmed(" ".join(text[starts[0] : _closing(text, end)].split()))
        else:
            said = " ".join(text[at : place + len(name)] for at, (name, place) in zip(starts, part, strict=True))
        yield said, part[0][1], [name for name, _ in part]
    tokens: list[tuple[int, int]] = []
    done: set[tuple[int, int]] = set()
    looked_at = (0, 0)
    for name, place in row:
        window = max(start, place - LOOKED_CHARS), min(stop, place + LOOKED_CHARS)
        if window != looked_at:
            tokens, looked_at = [token.span() for token in _TOKEN.finditer(text, *window)], window
            done.clear()
        for low, high in _spans(text, tokens, place, place + len(name), window[1] - window[0] <= LINE_CHARS):
            if (low, high) in done:
                continue
            stretch = " ".join(text[low:high].split())
            if len(stretch) <= LINE_CHARS + len(name) and not _IS_FIELD(stretch):
                done.add((low, high))
                told = [one for one, at in here if low <= at and at + len(one) <= high]
                yield _trimmed(stretch), place, told


def _spans(
    text: str, tokens: list[tuple[int, int]], start: int, stop: int, is_short: bool
) -> Iterator[tuple[int, int]]:
    """Where stretches around a name begin and end, each with a word that tells something; of a short line the whole."""
    first = max(bisect_right(tokens, start, key=itemgetter(0)) - 1, 0)
    last = min(bisect_left(tokens, stop, key=itemgetter(1)), len(tokens) - 1)
    low, high = 0, len(tokens) - 1
    while is_short and low < first and _is_idle(text, tokens[low]):
        low += 1
    while is_short and high > last and _is_idle(text, tokens[high]):
        high -= 1
    if is_short:
        yield tokens[low][0], tokens[high][1]
    for left, right in _STEPS:
        low, high = first - left, last + right
        if low < 0 or high >= len(tokens):
            continue
        if (left and _is_idle(text, tokens[low])) or (right and _is_idle(text, tokens[high])):
            continue  # a shorter one says as much
        around = tokens[max(0, low - 1) : low] + tokens[high : high + 1 + bool(right)]
        if any(_NEGATES(text[token[0] : token[1]]) for token in around):
            continue  # it would say the contrary
        yield tokens[low][0], tokens[high][1]


def _is_idle(text: str, token: tuple[int, int]) -> bool:
    """Whether a word tells nothing at the edge of a stretch: it only joins others, or is of signs alone."""
    word = text[token[0] : token[1]]
    return word.lower() in _JOINS or _SIGNS(word) is not None


def _opening(text: str, place: int) -> int:
    """Where a name begins with the signs that belong to it: of a path, an option, a variable."""
    if not place or text[place - 1] not in _OPENS:
        return place
    found = _BEFORE.search(text, max(0, place - OPENING_CHARS), place)
    return found.start() if found else place


def _closing(text: str, place: int) -> int:
    """Where a name ends with the brackets and quotes that close behind it."""
    while place < len(text) and text[place] in _BEHIND:
        place += 1
    return place


def _trimmed(stretch: str) -> str:
    """A stretch without the lone brackets, quotation marks and marks at its edges."""
    told = _closed(stretch)
    while told:
        first, last, inside = told[0], told[-1], told[1:-1]
        if _PAIRS.get(last) == first and first not in inside and last not in inside:
            told = inside
        elif last in _ENDS and (last not in _PAIRS or _PAIRS[last] not in told[:-1]):
            told = told[:-1]
        elif first in _EDGES and (first not in _MATES or _MATES[first] not in told[1:]):
            told = told[1:]
        else:
            break
    return told


def _closed(stretch: str) -> str:
    """A stretch without the brackets and quotation marks whose other half was cut off."""
    if not _MARKED.search(stretch):
        return stretch
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
        held[name] = (
            words - taken >= BESIDE
            or (is_number(name) and stretch.endswith(f": {name}"))  # what a number is of takes one word
            or len(set(_WORD.findall(stretch.replace(name, " ")))) >= BESIDE
        )
    return held
