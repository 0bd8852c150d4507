#!/usr/bin/env python3
"""
Fit the weights of `proxy/palimpsest/core/recall/weights.py` again, and check them with each group of sets left out.

    scripts/fit.py [--everyday FILE ...] [--chat FILE ...] [--life FILE ...] [--pairs FILE ...]
                   [--questions FILE ...] [--answers FILE] [--others FILE ...] [--fill CHARS ...]

Each everyday file becomes a conversation a language: facts told in passing between real answers of assistants; each
chat one with a window of ten messages; each life and each file of pairs one; each file of questions its conversations,
asked their own questions and each other's. What answers is labelled by the sets themselves. Everything is asked alone
and behind so many characters of other conversations, so that no weight learns the size of an archive, and ranked twice,
with vectors and by words alone. Printed: the rank of what answers, how often the gate opens to own and to foreign
questions, with the weights in force and with those fitted without the group (of talks whose texts name their speakers:
each conversation); then the tables, to be put into the file by hand. Run it with the environment's Python; it takes
some minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain, cycle, zip_longest
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from palimpsest.core.recall import relevance
from palimpsest.core.recall.ranking import rank
from palimpsest.core.recall.relevance import help_signals, names_speakers, passage_signals
from palimpsest.core.recall.weights import OF_SPEAKERS, OF_SPEAKERS_BY_WORDS, PLAIN, PLAIN_BY_WORDS
from palimpsest.domain import Query, Reach
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation import palimpsest, vectors
from palimpsest.evaluation.bench_lives import Turn, read_sessions
from palimpsest.evaluation.datasets import Conversation, DatasetMessage, read
from palimpsest.evaluation.palimpsest import Store
from palimpsest.memory.recall.eligibility import first_of_equals
from palimpsest.memory.recall.question import with_cosines
from scipy.optimize import minimize

OWN = Path(__file__).parents[1] / "tests" / "everyday"
FIRST = 1_700_000_000.0  # Unix seconds
WINDOW = 10  # messages that a chat's client keeps
SHOWN = 6  # messages that stand after a compaction
JUDGED = 100  # as `recall.JUDGED_PASSAGES`
FOREIGN_EVERY = 4  # of each other's questions: enough, and not more than own ones
RIDGE, RIDGE_OF_HELP = 3e-4, 1e-3
OTHER_LANGUAGES = 2  # weight of unrelated prompts in them: the English model finds many of their passages alike
ANSWERED = 0.41  # of questions in talks of speakers; so their probabilities are worth as much room as all others
NEAR = {
    "cosine",
    "near",
    "very_near",
    "ahead",
    "meaning",
    "by_cosine",
    "personal_cosine",
    "other_cosine",
}  # need vectors
ONE_USER = {"user", "user_tells", "answers", "by_covered", "by_cosine", "personal_cosine"} | {
    *("other", "other_cosine", "other_words", "other_covered")
}  # signals that say nothing in talks of speakers, or that LoCoMo alone cannot tell
OTHERS_CHARS, OTHERS_MESSAGES = 2000, 150  # of a message, and of a conversation, that is stored before
DIFFERING = ("score", "words", "cosine", "by_score")  # signals that count otherwise in talks of speakers
KINDS = ("asked", "needed")  # the two requests of each pair
LEAST_ROWS = 40  # a group of fewer questions counts less
NO_WISH = 0.3  # weight of questions whose answer is a lasting wish: they are found by another way, too


Opener = Callable[[], AbstractAsyncContextManager[Store]]


@dataclass(frozen=True, slots=True)
class Row:
    """One question, ranked: the signals of its passages, which of them answer, and what the gate sees of it."""

    group: str
    kind: str
    conversation: str
    by_words: bool
    of_speakers: bool
    signals: dict[str, np.ndarray]
    answers: np.ndarray
    help: dict[str, float]
    fill_chars: int = 0


async def ask(
    store: Store, group: str, kind: str, conversation: Conversation, text: str, lost: int | None, gold: set[int]
) -> list[Row]:
    """One question as recall would see it, with vectors and without."""
    reader = store.reader(conversation, Reach.TENANT)
    memory = reader._recall  # the same look-up, a step at a time
    query = reader._within(Query("", "", text), lost)
    looked = await memory._database.ask(functools.partial(memory._look, query, (text,)))
    if looked is None:
        return []
    table, eligible, (known,) = looked.table, looked.eligible, looked.asked
    known = with_cosines(known, table, await memory._vectors(text))
    occurrences = store.occurrences(conversation)
    rows = []
    for asked in (known, replace(known, cosines=None, about=None)) if eligible.any() else ():
        ranked = rank(table, asked, eligible, memory._clock())
        ranked = ranked.part(first_of_equals(table, ranked.rows, JUDGED)).part(slice(JUDGED))
        if len(ranked.rows):
            answers = np.isin(table.occurrences[ranked.rows], [occurrences[at] for at in gold]).astype(float)
            signals = passage_signals(table, asked, ranked)
            help = help_signals(table, asked, signals, np.full(len(answers), 0.01))
            of_speakers = names_speakers(table, ranked)
            seen = {name: float(value[0]) for name, value in help.items()}
            by_words = asked.cosines is None
            rows.append(Row(group, kind, conversation.id, by_words, of_speakers, signals, answers, seen))
    return rows


def talk(name: str, turns: Sequence[tuple[str, str]]) -> Conversation:
    messages: list[DatasetMessage] = []
    for at, turn in enumerate(turns):
        for role, text in zip(("user", "assistant"), turn, strict=True):
            raw = {"role": role, "content": text}
            messages.append(DatasetMessage(f"{name}-{len(messages)}", role, text, text, FIRST + 60 * at, 0, (), raw))
    return Conversation(name, tuple(messages), (), 1)


class Archive:
    """What a person has stored before: other conversations, ever more of them."""

    def __init__(self, embedder: Embedder, folder: Path, others: Iterator[Conversation]) -> None:
        self._embedder, self._folder, self._others, self._chars = embedder, folder, others, 0

    async def grow(self, chars: int) -> None:
        """Store other conversations until they have so many characters, or there are no more."""
        more = []
        while self._chars < chars and (conversation := next(self._others, None)) is not None:
            said = [m for m in conversation.messages if m.role in ("user", "assistant") and m.content]
            cut = tuple(
                replace(m, content=m.content[:OTHERS_CHARS], raw={"role": m.role, "content": m.content[:OTHERS_CHARS]})
                for m in said[:OTHERS_MESSAGES]
            )
            if cut:
                more.append(replace(conversation, id=f"other-{conversation.id}", messages=cut, questions=()))
                self._chars += sum(len(message.content) for message in cut)
        async with palimpsest.opened(self._embedder, folder=self._folder) as store:
            await store.write(more)

    @asynccontextmanager
    async def copied(self) -> AsyncIterator[Store]:
        """A store that holds them, to be written to."""
        with TemporaryDirectory(prefix="palimpsest-fit-") as folder:
            await asyncio.to_thread(shutil.copytree, self._folder, folder, dirs_exist_ok=True)
            async with palimpsest.opened(self._embedder, folder=Path(folder)) as store:
                yield store


async def everyday(store_of: Opener, file: Path, answers: list[str]) -> AsyncIterator[Row]:
    for code, part in json.loads(await asyncio.to_thread(file.read_text, "utf-8"))["sets"].items():
        facts = random.Random(3).sample(part["facts"], len(part["facts"]))
        said = cycle(answers)
        turns = []
        for at, fact in enumerate(facts):
            turns += [
                (f"{part['filler'][at % len(part['filler'])]} ({at})", next(said)),
                (fact["fact"], next(said)[:160]),
            ]
        turns += [(filler, next(said)) for filler in part["filler"][:SHOWN]]
        conversation = talk(f"{file.stem}-{code}", turns)
        where = {message.content: at for at, message in enumerate(conversation.messages)}
        asked = [(f["question"], f["kind"], {where[f["fact"]]}) for f in facts]
        asked += [(text, "foreign", set()) for text in part["unrelated"]]
        group = f"{file.stem} {'en' if code == 'en' else 'others'}"
        async with store_of() as store:
            await store.write([conversation])
            for text, kind, gold in asked:
                lost = len(conversation.messages) - SHOWN
                for row in await ask(store, group, kind, conversation, text, lost, gold):
                    yield row


async def chat(store_of: Opener, file: Path, answers: list[str]) -> AsyncIterator[Row]:
    told = json.loads(await asyncio.to_thread(file.read_text, "utf-8"))
    order, said = random.Random(7), cycle(answers)
    turns: list[tuple[str, str, str]] = []
    topics = cycle(order.sample(told["topics"], len(told["topics"])))
    for fact in [*told.get("superseded", []), *told["facts"]]:
        turns += [
            (next(topics), "foreign", ""),
            (fact["text"], "told", ""),
            (order.choice(told["small"]), "foreign", ""),
        ]
    for at, fact in enumerate(order.sample(told["facts"], len(told["facts"]))):
        turns += [(fact["question"], "asked", fact["text"]), (order.choice(told["small"]), "foreign", "")]
        turns.append((next(topics), "foreign", "") if at % 3 else (order.choice(told["follow"]), "foreign", ""))
        if at < len(told["never"]):
            turns.append((told["never"][at], "never", ""))
    conversation = talk(file.stem, [(text, next(said)[:200]) for text, _, _ in turns])
    first = {text: 2 * at for at, (text, _, _) in reversed([*enumerate(turns)])}
    async with store_of() as store:
        await store.write([conversation])
        for at, (text, kind, fact) in enumerate(turns):
            lost = 2 * at + 1 - WINDOW
            if lost > 0:
                gold = {first[fact]} if fact else set()
                kind = "foreign" if kind == "told" else kind
                for row in await ask(store, file.stem, kind, conversation, text, lost, gold):
                    yield row


async def life(store_of: Opener, file: Path) -> AsyncIterator[Row]:
    """Months of one person's sessions: each request is asked of the sessions before its own."""
    turns: list[tuple[int, Turn]] = []  # with the place of the first turn of their session
    for session in read_sessions(file):
        start = len(turns)
        turns += [(start, turn) for turn in session.turns if isinstance(turn, Turn)]
    conversation = talk(file.stem, [(turn.user, turn.answer) for _, turn in turns])
    async with store_of() as store:
        await store.write([conversation])
        for start, turn in turns:
            told = [message.content.lower() for message in conversation.messages[: 2 * start]]
            gold = {at for at, text in enumerate(told) if any(words.lower() in text for words in turn.needs)}
            if start and (gold or not turn.needs):
                kind = "needed" if gold else "foreign"
                for row in await ask(store, file.stem, kind, conversation, turn.user, 2 * start, gold):
                    yield row


async def pairs(store_of: Opener, file: Path, idle: Sequence[str], answers: list[str]) -> AsyncIterator[Row]:
    """What many people told in passing, and requests that need it, asked for or not; `idle` ones need nothing of it."""
    lines = (await asyncio.to_thread(file.read_text, "utf-8")).splitlines()
    told, said = [json.loads(line) for line in lines], cycle(answers)
    conversation = talk(file.stem, [(one["said"], next(said)[:300]) for one in told])
    asked = [
        (text, kind, {2 * at}) for at, one in enumerate(told) for text, kind in zip(one["asked"], KINDS, strict=True)
    ]
    async with store_of() as store:
        await store.write([conversation])
        for text, kind, gold in (*asked, *((text, "foreign", set()) for text in idle)):
            for row in await ask(store, file.stem, kind, conversation, text, None, gold):
                yield row


async def questions(store_of: Opener, file: Path) -> AsyncIterator[Row]:
    conversations, group = read(file), f"{file.parent.name}/{file.stem}"  # data sets have files of one name
    for conversation in conversations:
        async with store_of() as store:
            await store.write([conversation])
            for asker in conversations:
                is_own = asker is conversation
                for question in asker.questions if is_own else asker.questions[::FOREIGN_EVERY]:
                    gold = set(conversation.gold(question)) if is_own else set()
                    kind = question.category if is_own else "foreign"
                    for row in await ask(store, group, kind, conversation, question.text, None, gold):
                        yield row


def logistic(matrix: np.ndarray, answers: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """Weights per unit of each column, and the constant: a weighted logistic regression with a ridge."""
    middle, spread = matrix.mean(0), matrix.std(0) + 1e-6
    columns = np.c_[(matrix - middle) / spread, np.ones(len(matrix))]
    weights = weights / weights.sum()

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        odds = columns @ b
        wrong = weights * (1 / (1 + np.exp(-odds)) - answers)
        value = (weights * (np.logaddexp(0, odds) - answers * odds)).sum() + ridge * (b[:-1] ** 2).sum()
        return float(value), columns.T @ wrong + np.r_[2 * ridge * b[:-1], 0]

    b = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B").x
    return np.r_[b[:-1] / spread, b[-1] - (b[:-1] * middle / spread).sum()]


def applied(matrix: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(matrix @ b[:-1] + b[-1])))


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted tables and what they were fitted on: names of signals, weights with the constant last."""

    names: list[str]
    passage: np.ndarray
    help_names: list[str]
    help: np.ndarray
    of_speakers: bool

    def matrix(self, row: Row) -> np.ndarray:
        """The signals, and for weights of all scopes those that differ in talks of speakers, left out of the tables."""
        matrix = np.stack([row.signals[name] for name in self.names], 1)
        if self.of_speakers:
            return matrix
        differing = [np.ones(len(matrix)), *(row.signals[name] for name in DIFFERING)]
        return np.c_[matrix, np.stack(differing, 1) * row.of_speakers]

    def worth(self, row: Row) -> np.ndarray:
        """The probability of each passage."""
        return applied(self.matrix(row), self.passage)

    def helps(self, row: Row) -> float:
        """The probability that memory helps."""
        return float(applied(self.seen(row)[None], self.help)[0])

    def seen(self, row: Row) -> np.ndarray:
        """The signals of the gate, those filled in that follow from the passages' probabilities."""
        worth = self.worth(row)
        best = int(worth.argmax())
        kept = np.clip(np.sort(np.r_[worth, 0.0])[::-1][:2], 1e-5, 1 - 1e-5)
        surest, second = np.log(kept / (1 - kept))
        found = row.help | {"best": surest, "second": second, "personal_best": row.help["personal"] * surest / 5}
        found |= {name: row.signals[name][best] for name in ("covered", "user", "tells", "asks", "absent")}
        cosine = row.signals["cosine"][best]
        found |= {"cosine": cosine, "near": max(0.0, cosine - relevance.NEAR)}
        found |= {"very_near": max(0.0, cosine - relevance.VERY_NEAR), "ahead": row.signals["ahead"][best]}
        return np.array([float(found[name]) for name in self.help_names])

    def tables(self) -> dict[str, dict[str, float]]:
        """What goes into the file."""
        passage = [*self.passage[: len(self.names)], self.passage[-1]]
        return {
            "passage": dict(zip([*self.names, "bias"], np.round(passage, 3).tolist(), strict=True)),
            "help": dict(zip([*self.help_names, "bias"], self.help.round(3).tolist(), strict=True)),
        }


def fitted(rows: Sequence[Row], *, by_words: bool, of_speakers: bool) -> Fit:
    """
    Both tables from some rows.

    Weights for talks of speakers come from questions that have an answer there: what a question names tells whether it
    has one, and that is for the gate to judge.
    """
    rows = [row for row in rows if row.by_words == by_words and (row.of_speakers or not of_speakers)]
    leave = (NEAR if by_words else set()) | (ONE_USER if of_speakers else set())
    names = [name for name in rows[0].signals if name not in leave]
    help_names = [name for name in rows[0].help if not by_words or name not in NEAR]
    fit = Fit(names, np.empty(0), help_names, np.empty(0), of_speakers)
    answered = [row for row in rows if row.answers.any()] if of_speakers else rows
    each = [np.full(len(row.answers), weight) for row, weight in zip(answered, shares(answered), strict=True)]
    matrix = np.concatenate([fit.matrix(row) for row in answered])
    passage = logistic(matrix, np.concatenate([row.answers for row in answered]), np.concatenate(each), RIDGE)
    passage[-1] += np.log(ANSWERED) if of_speakers else 0.0
    fit = replace(fit, passage=passage)
    seen = [row for row in rows if row.kind != "instruction"]
    helps = np.array([float(row.answers.any()) for row in seen])
    gate = logistic(np.array([fit.seen(row) for row in seen]), helps, np.array(shares(seen)), RIDGE_OF_HELP)
    return replace(fit, help=gate)


def in_force(*, by_words: bool, of_speakers: bool) -> Fit:
    """The tables that recall uses now."""
    plain, speakers = (PLAIN_BY_WORDS, OF_SPEAKERS_BY_WORDS) if by_words else (PLAIN, OF_SPEAKERS)
    tables = speakers if of_speakers else plain
    names, help_names = ([name for name in table if name != "bias"] for table in (tables.passage, tables.help))
    differing = () if of_speakers else np.zeros(1 + len(DIFFERING))
    passage = np.r_[[tables.passage[name] for name in names], differing, tables.passage["bias"]]
    return Fit(names, passage, help_names, np.array([*map(tables.help.get, [*help_names, "bias"])], float), of_speakers)


def shares(rows: Sequence[Row]) -> list[float]:
    """What each row counts: every group the same in all, wishes less, what is unrelated in other languages more."""
    of_group = Counter((row.group, row.fill_chars) for row in rows)
    more = {"instruction": NO_WISH, "foreign others": OTHER_LANGUAGES}
    kinds = (f"foreign {row.group.split()[-1]}" if row.kind == "foreign" else row.kind for row in rows)
    return [
        more.get(kind, 1) / max(of_group[row.group, row.fill_chars], LEAST_ROWS)
        for row, kind in zip(rows, kinds, strict=True)
    ]


def report(group: str, rows: Sequence[Row], fit: Fit) -> str:
    helps = [fit.helps(row) for row in rows]
    own = [(row, h) for row, h in zip(rows, helps, strict=True) if row.answers.any() and row.kind != "instruction"]
    asked = [(row, fit.worth(row), h) for row, h in own]
    first = [int(np.argmax(row.answers[np.argsort(-w)])) for row, w, _ in asked]
    others = [h for row, h in zip(rows, helps, strict=True) if row.kind == "foreign"]
    ranks = " ".join(f"@{k} {np.mean(np.array(first) < k):.2f}" for k in (1, 3, 10)) if first else "-"
    opens = " ".join(
        f"{np.mean([h >= t for _, _, h in asked] or [False]):.2f}/{np.mean(np.array(others) >= t):.2f}"
        for t in (0.3, 0.5, 0.7)
    )
    return f"{group:28} n {len(asked):4}  {ranks}  opens to own/others at .3 .5 .7: {opens}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--everyday", type=Path, nargs="*", default=[OWN / "english.json", OWN / "languages.json"])
    parser.add_argument("--chat", type=Path, nargs="*", default=sorted(OWN.glob("chat_*.json")))
    parser.add_argument("--life", type=Path, nargs="*", default=sorted((OWN / "lives").glob("*.txt")))
    parser.add_argument("--pairs", type=Path, nargs="*", default=sorted(OWN.glob("pairs_*.jsonl")))
    parser.add_argument("--questions", type=Path, nargs="*", default=[])
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="conversations that are stored before")
    parser.add_argument("--fill", type=int, nargs="*", default=[], help="characters of them, each size in turn")
    parser.add_argument("--answers", type=Path, help="conversations whose answers stand between what is told")
    given = parser.parse_args()
    spoken = read(given.answers) if given.answers else []
    answers = [m.content[:500] for c in spoken for m in c.messages if m.role == "assistant" and len(m.content) > 120]
    answers = answers or ["That is a good question, and there are several answers to it. " * 5]
    idle = json.loads((OWN / "needs.json").read_text("utf-8"))["idle"]
    rows: list[Row] = []
    others = list(chain.from_iterable(zip_longest(*(read(file) for file in given.others))))
    async with vectors.opened() as embedder:
        with TemporaryDirectory(prefix="palimpsest-fit-") as folder:
            archive = Archive(embedder, Path(folder), iter([one for one in others if one is not None]))
            for fill_chars in sorted({0, *given.fill}):
                await archive.grow(fill_chars)
                for made in (
                    *(everyday(archive.copied, file, answers) for file in given.everyday),
                    *(chat(archive.copied, file, answers) for file in given.chat),
                    *(life(archive.copied, file) for file in given.life),
                    *(pairs(archive.copied, file, idle, answers) for file in given.pairs),
                    *(questions(archive.copied, file) for file in given.questions),
                ):
                    rows += [replace(row, fill_chars=fill_chars) async for row in made]
    talks = [row for row in rows if row.of_speakers]
    for by_words in (False, True):
        for of_speakers, some in ((False, [row for row in rows if not row.of_speakers]), (True, talks)):
            if not some:
                continue
            kind = {"by_words": by_words, "of_speakers": of_speakers}
            group_of = attrgetter("conversation" if of_speakers else "group")
            for group in dict.fromkeys(map(group_of, some)):
                left_out = [row for row in some if group_of(row) == group and row.by_words == by_words]
                print(report(f"{group}, in force", left_out, in_force(**kind)))  # noqa: T201
                print(report(group, left_out, fitted([row for row in rows if group_of(row) != group], **kind)))  # noqa: T201
            print(kind, fitted(rows, **kind).tables())  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
