#!/usr/bin/env python3
"""
Fit the weights of `proxy/core/recall/relevance.py` again, and check them with each group of sets left out.

    scripts/fit.py [--everyday FILE ...] [--chat FILE ...] [--questions FILE ...] [--answers FILE]

Each everyday file becomes a conversation a language: facts told in passing between real answers of assistants; each
chat one with a window of ten messages; each file of questions its conversations, asked their own questions and each
other's. What answers is labelled by the sets themselves. Printed: the rank of what answers, how often the gate opens
to own and to foreign questions, with the group left out; then the tables, to be put into the file by hand. Run it with
the environment's Python; it takes some minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from proxy.core.archive.chunking import query_terms
from proxy.core.recall.ranking import rank
from proxy.core.recall.relevance import help_signals, passage_signals
from proxy.domain import Query
from proxy.evaluation import palimpsest, vectors
from proxy.evaluation.datasets import Conversation, DatasetMessage, read
from proxy.evaluation.palimpsest import Store
from proxy.memory import recall as recalling

OWN = Path(__file__).parents[1] / "tests" / "everyday"
FIRST = 1_700_000_000.0  # Unix seconds
WINDOW = 10  # messages that a chat's client keeps
SHOWN = 6  # messages that stand after a compaction
JUDGED = 100  # as `recall.JUDGED_PASSAGES`
FOREIGN_EVERY = 4  # of each other's questions: enough, and not more than own ones
RIDGE, RIDGE_OF_HELP = 3e-4, 1e-3
NO_WISH = 0.3  # weight of questions whose answer is a lasting wish: they are found by another way, too


@dataclass(frozen=True, slots=True)
class Row:
    """One question: the signals of its passages, which of them answer, and what the gate sees of it."""

    group: str
    kind: str
    signals: dict[str, np.ndarray]
    answers: np.ndarray
    help: dict[str, float]


async def ask(store: Store, conversation: Conversation, text: str, lost: int | None, gold: set[int]) -> tuple | None:
    """The signals of one question, as recall would see them."""
    reader = store.reader(conversation)
    memory = reader._recall  # the same look-up, a step at a time
    query = reader._within(Query("", "", text), lost)
    looked = await memory._sql.ask(functools.partial(memory._look, query, query_terms(text)))
    if looked is None:
        return None
    own, shelf, words, _ = looked
    asked = recalling._asked(text, memory._clock(), shelf, await memory._vectors(text), words)
    eligible = recalling._eligible(shelf, query, own)
    if not eligible.any():
        return None
    ranked = rank(shelf, asked, eligible, memory._clock())
    first = recalling._first_of_equals(shelf.fulls[ranked.rows], shelf.occurrences[ranked.rows])
    ranked = ranked.part(first).part(slice(JUDGED))
    if not len(ranked.rows):
        return None
    occurrences = store.occurrences(conversation)
    answers = np.isin(shelf.occurrences[ranked.rows], [occurrences[at] for at in gold])
    signals = passage_signals(shelf, asked, eligible, ranked)
    help = help_signals(shelf, asked, ranked, signals, np.full(len(answers), 0.01))
    return signals, answers.astype(float), {name: float(value[0]) for name, value in help.items()}


def talk(name: str, turns: Sequence[tuple[str, str]]) -> Conversation:
    messages = []
    for at, turn in enumerate(turns):
        for role, text in zip(("user", "assistant"), turn, strict=True):
            raw = {"role": role, "content": text}
            messages.append(DatasetMessage(f"{name}-{len(messages)}", role, text, text, FIRST + 60 * at, 0, (), raw))
    return Conversation(name, tuple(messages), (), 1)


async def everyday(store_of: functools.partial, file: Path, answers: list[str]) -> AsyncIterator[Row]:
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
                if found := await ask(store, conversation, text, len(conversation.messages) - SHOWN, gold):
                    yield Row(group, kind, *found)


async def chat(store_of: functools.partial, file: Path, answers: list[str]) -> AsyncIterator[Row]:
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
            if lost > 0 and (found := await ask(store, conversation, text, lost, {first[fact]} if fact else set())):
                yield Row(file.stem, "foreign" if kind == "told" else kind, *found)


async def questions(store_of: functools.partial, file: Path) -> AsyncIterator[Row]:
    conversations = read(file)
    for conversation in conversations:
        async with store_of() as store:
            await store.write([conversation])
            for asker in conversations:
                is_own = asker is conversation
                for question in asker.questions if is_own else asker.questions[::FOREIGN_EVERY]:
                    gold = set(conversation.gold(question)) if is_own else set()
                    if found := await ask(store, conversation, question.text, None, gold):
                        yield Row(file.stem, question.category if is_own else "foreign", *found)


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


def fitted(rows: Sequence[Row], of: Sequence[Row]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
    """Both tables from some rows, and what they say of others: probabilities of passages, and that memory helps."""
    share = {row.group: 1 / sum(other.group == row.group for other in rows) for row in rows}
    matrix = np.concatenate([np.stack([*row.signals.values()], 1) for row in rows])
    each = [np.full(len(r.answers), share[r.group] * (NO_WISH if r.kind == "instruction" else 1)) for r in rows]
    passage = logistic(matrix, np.concatenate([row.answers for row in rows]), np.concatenate(each), RIDGE)
    seen = [row for row in rows if row.kind != "instruction"]
    gate = np.array([seen_by_gate(row, passage) for row in seen])
    helps = np.array([float(row.answers.any()) for row in seen])
    balance = np.array([share[row.group] for row in seen])
    help = logistic(gate, helps, balance, RIDGE_OF_HELP)
    worth = [applied(np.stack([*row.signals.values()], 1), passage) for row in of]
    return passage, help, worth, applied(np.array([seen_by_gate(row, passage) for row in of]), help)


def seen_by_gate(row: Row, passage: np.ndarray) -> list[float]:
    """The signals of the gate, those filled in that follow from the passages' probabilities."""
    worth = applied(np.stack([*row.signals.values()], 1), passage)
    best = int(worth.argmax())
    kept = min(max(float(worth[best]), 1e-5), 1 - 1e-5)
    found = row.help | {"best": np.log(kept / (1 - kept)), "together": np.log(min(worth.sum(), 20.0) + 1e-4)}
    found |= {name: row.signals[name][best] for name in ("above", "covered", "user", "tells", "asks", "absent")}
    return [float(found[name]) for name in row.help]


def report(group: str, rows: Sequence[Row], worth: Sequence[np.ndarray], helps: np.ndarray) -> str:
    asked = [
        (r, w, h) for r, w, h in zip(rows, worth, helps, strict=True) if r.answers.any() and r.kind != "instruction"
    ]
    first = [int(np.argmax(row.answers[np.argsort(-w)])) for row, w, _ in asked]
    others = [h for row, h in zip(rows, helps, strict=True) if row.kind == "foreign"]
    ranks = " ".join(f"@{k} {np.mean(np.array(first) < k):.2f}" for k in (1, 3, 10)) if first else "-"
    opens = " ".join(
        f"{np.mean([h >= t for _, _, h in asked] or [0]):.2f}/{np.mean(np.array(others) >= t):.2f}"
        for t in (0.3, 0.5, 0.7)
    )
    return f"{group:28} n {len(asked):4}  {ranks}  opens to own/others at .3 .5 .7: {opens}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--everyday", type=Path, nargs="*", default=[OWN / "english.json", OWN / "languages.json"])
    parser.add_argument("--chat", type=Path, nargs="*", default=sorted(OWN.glob("chat_*.json")))
    parser.add_argument("--questions", type=Path, nargs="*", default=[])
    parser.add_argument("--answers", type=Path, help="conversations whose answers stand between what is told")
    given = parser.parse_args()
    spoken = read(given.answers) if given.answers else []
    answers = [m.content[:500] for c in spoken for m in c.messages if m.role == "assistant" and len(m.content) > 120]
    answers = answers or ["That is a good question, and there are several answers to it. " * 5]
    rows: list[Row] = []
    async with vectors.opened() as embedder:
        store_of = functools.partial(palimpsest.opened, embedder)
        for made in (
            *(everyday(store_of, file, answers) for file in given.everyday),
            *(chat(store_of, file, answers) for file in given.chat),
            *(questions(store_of, file) for file in given.questions),
        ):
            rows += [row async for row in made]
    for group in dict.fromkeys(row.group for row in rows):
        left_out = [row for row in rows if row.group == group]
        _, _, worth, helps = fitted([row for row in rows if row.group != group], left_out)
        print(report(group, left_out, worth, helps))  # noqa: T201
    passage, help, _, _ = fitted(rows, rows)
    for name, signals, table in (("PASSAGE", rows[0].signals, passage), ("HELP", rows[0].help, help)):
        print(name, dict(zip([*signals, "bias"], table.round(3).tolist(), strict=True)))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
