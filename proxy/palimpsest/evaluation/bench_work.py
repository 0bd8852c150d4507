"""
Benchmark: what the rest of a piece of work needs after a compaction in the middle of it, judged by its own future.

A recorded session is cut where its model is about to answer; its client keeps the last messages and a summary of the
user's own words. *Needed* is a name (path, identifier, version, number) that was said before, stands in nothing that is
still sent, and that the assistant or the user writes within the next messages before any tool shows it again. Names are
counted where they stand at all, and *in context*: beside two other words of a line in which they were said, so that a
list of names is worth nothing.

What is measured is the account of work (`core/work/account.py`), without store and quotes. Beside it stand, in as many
characters: the lost names by frequency, BM25 asked by the newest two messages, the newest text, and the passages that
hold most of what is needed, chosen with that knowledge.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

from palimpsest.core.recall.diagnosis import ACCOUNT_CHARS
from palimpsest.core.work.account import LostMessage, account
from palimpsest.evaluation.datasets import Conversation, DatasetMessage, read
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.wire.message import readable

OURS = "palimpsest"
SHARES = (0.35, 0.7)  # of a session's characters, where it is cut
MIN_MESSAGES = 30  # of a session that counts
KEPT_MESSAGES = 4  # by the client
AHEAD_MESSAGES = 40  # that show what is needed
MIN_NEEDED = 3  # names of a cut that counts
PASSAGE_CHARS = 400  # of the baselines
MESSAGE_CHARS = 8_000  # of a message, as recall reads them
QUOTED_CHARS = 400  # of the user's words in the summary
NEAR_CHARS, BESIDE_CHARS, BESIDE_WORDS = 150, 100, 2  # around a name where it was said, and in a block

_NAME = re.compile(r"[A-Za-z0-9_@][\w./\-:@]*[\w]")
_IS_NAME = re.compile(r"[_/@]|\w\.\w|[a-z][A-Z]|\d")
_WORD = re.compile(r"[A-Za-z]{3,}")
_SUMMARY = (
    "This session is being continued. The user's first request was: {first}\nThe newest before this point: {last}"
)


@dataclass(frozen=True, slots=True)
class Cut:
    """One compaction: what was lost, all that is still seen, the newest messages, and the names that are needed."""

    session: str
    lost: tuple[DatasetMessage, ...]
    visible: str
    query: str
    needed: frozenset[str]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument("--chars", type=int, default=ACCOUNT_CHARS, metavar="N", help="of what is told")


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    rows: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    sessions: set[str] = set()
    for path in given.data:
        chosen = [one for one in read(path) if len(one.messages) >= MIN_MESSAGES]
        with progress() as bar:
            for conversation in bar.track(chosen[: given.limit or None], description=f"cutting {path.name}"):
                for cut in cuts(conversation):
                    sessions.add(cut.session)
                    said = said_beside(cut)
                    for name, tell in SYSTEMS.items():
                        told = tell(cut, given.chars)
                        rows[name].append((held(cut.needed, told), held_in_context(told, said), len(told)))
    return report(rows, len(sessions), given.chars)


def report(rows: Mapping[str, Sequence[tuple[float, float, int]]], sessions: int, chars: int) -> Report:
    """One table: for each system the mean over cuts."""
    means = {name: np.array(each).mean(axis=0) for name, each in rows.items()}
    count = len(rows.get(OURS, ()))
    table = Table(
        f"names that the rest of the work needed, {count} cuts of {sessions} sessions, {chars:,} characters",
        ("system", "told", "in context", "characters"),
        [[name, float(mean[0]), float(mean[1]), round(float(mean[2]))] for name, mean in means.items()],
    )
    data = {"n": count, "chars": chars, "systems": {name: mean.tolist() for name, mean in means.items()}}
    return Report("work: what the rest of a session needs", data, [table], ())


def cuts(conversation: Conversation) -> Iterator[Cut]:
    """The compactions of a session after which enough of what was lost is needed."""
    said = [one for one in conversation.messages if one.role not in ("system", "developer") and text_of(one)]
    total, places = sum(len(text_of(one)) for one in said), []
    for share in SHARES:
        read_chars = 0
        for at, one in enumerate(said, start=1):
            read_chars += len(text_of(one))
            if read_chars >= share * total:
                places.append(_turn_at(said, at))
                break
    for at in dict.fromkeys(places):
        start = max(0, at - KEPT_MESSAGES)
        while start > 0 and said[start].role == "tool":
            start -= 1
        asked = [text_of(one) for one in said[:at] if one.role == "user"]
        if at >= len(said) - 5 or not start or not asked:
            continue
        summary = _SUMMARY.format(first=asked[0][:QUOTED_CHARS], last=asked[-1][:QUOTED_CHARS])
        visible = "\n".join([summary, *map(text_of, said[start:at])])
        needed = names_needed(said[:start], visible, said[at : at + AHEAD_MESSAGES])
        if len(needed) >= MIN_NEEDED:
            query = "\n".join(text_of(one)[:2000] for one in said[at - 2 : at])
            yield Cut(conversation.id, tuple(said[:start]), visible, query, needed)


def names_of(text: str) -> set[str]:
    """Paths, identifiers, versions, numbers and codes of a text: by a rule of the benchmark's own."""
    found = {token.strip(".:-/") for token in _NAME.findall(text)}
    return {name for name in found if 4 <= len(name) <= 120 and _IS_NAME.search(name)}


def names_needed(lost: Sequence[DatasetMessage], visible: str, ahead: Sequence[DatasetMessage]) -> frozenset[str]:
    """Names of what was lost that the assistant or the user writes before anything shows them again."""
    left = {name for one in lost for name in names_of(text_of(one)) if name not in visible}
    needed: set[str] = set()
    for one in ahead:
        here = names_of(text_of(one))
        if one.role in ("assistant", "user"):
            needed |= here & left
        left -= here
    return frozenset(needed)


def held(needed: frozenset[str], told: str) -> float:
    """The share of needed names that stand in what is told."""
    return sum(name in told for name in needed) / len(needed)


def said_beside(cut: Cut) -> Mapping[str, list[set[str]]]:
    """Of each needed name the words around it, for each line in which it was said."""
    said: dict[str, list[set[str]]] = {name: [] for name in cut.needed}
    for one in cut.lost:
        for line in text_of(one).split("\n"):
            for name in cut.needed:
                if (at := line.find(name)) >= 0:
                    said[name].append(_around(line, at, name, NEAR_CHARS))
    return said


def held_in_context(told: str, said: Mapping[str, Sequence[set[str]]]) -> float:
    """The share of needed names that stand in what is told beside two words of a line in which they were said."""
    lines = told.split("\n")

    def is_held(name: str) -> bool:
        near = (_around(line, at, name, BESIDE_CHARS) for line in lines if (at := line.find(name)) >= 0)
        return any(len(words & other) >= BESIDE_WORDS for words in near for other in said[name])

    return sum(map(is_held, said)) / len(said)


def ours(cut: Cut, chars: int) -> str:
    """The account of work."""
    lost = [LostMessage(at, one.role, text_of(one)[:MESSAGE_CHARS]) for at, one in enumerate(cut.lost, start=1)]
    told = account(lost, [cut.visible], chars)
    return "\n".join(f"{line.label}: {line.text}" for line in (*told.lines, *told.rules))


def frequent(cut: Cut, chars: int) -> str:
    """The lost names that most messages hold, and nothing else."""
    counted = Counter(name for one in cut.lost for name in sorted(names_of(text_of(one))) if name not in cut.visible)
    return _filled([name for name, _ in counted.most_common()], " ", chars)


def newest(cut: Cut, chars: int) -> str:
    """The newest text."""
    return _filled(_passages(cut)[::-1], "\n", chars)


def by_bm25(cut: Cut, chars: int) -> str:
    """The passages that share most words with the newest two messages."""
    passages = _passages(cut)
    index = BM25Okapi([re.findall(r"\w+", passage.lower()) or ["-"] for passage in passages])
    order = np.argsort(-index.get_scores(re.findall(r"\w+", cut.query.lower())), kind="stable")
    return _filled([passages[at] for at in order], "\n", chars)


def at_best(cut: Cut, chars: int) -> str:
    """The passages that hold most needed names for their length, chosen one by one."""
    rest = [(passage, {name for name in cut.needed if name in passage}) for passage in _passages(cut)]
    left, chosen, room = set(cut.needed), [], chars
    while left:
        passage, has = max(rest, key=lambda one: len(one[1] & left) / len(one[0]), default=("", set()))
        if not has & left or len(passage) > room:
            break
        chosen.append(passage)
        room -= len(passage)
        left -= has
    return "\n".join(chosen)


SYSTEMS: Mapping[str, Callable[[Cut, int], str]] = {
    OURS: ours,
    "frequent names": frequent,
    "bm25": by_bm25,
    "newest": newest,
    "best passages": at_best,
}


def text_of(one: DatasetMessage) -> str:
    """What a message says and does."""
    return readable(one.text, one.calls)


def _turn_at(said: Sequence[DatasetMessage], at: int) -> int:
    """The first place from here on where a request may end."""
    while at < len(said) and not (said[at - 1].role in ("user", "tool") and said[at].role == "assistant"):
        at += 1
    return at


def _passages(cut: Cut) -> list[str]:
    texts = map(text_of, cut.lost)
    return [text[at : at + PASSAGE_CHARS] for text in texts for at in range(0, len(text), PASSAGE_CHARS)]


def _filled(parts: Sequence[str], joint: str, chars: int) -> str:
    """Parts in their order, while there is room."""
    taken, room = [], chars
    for part in parts:
        if len(part) + len(joint) > room:
            break
        taken.append(part)
        room -= len(part) + len(joint)
    return joint.join(taken)


def _around(line: str, at: int, name: str, chars: int) -> set[str]:
    beside = f"{line[max(0, at - chars) : at]} {line[at + len(name) : at + len(name) + chars]}"
    return set(_WORD.findall(beside))
