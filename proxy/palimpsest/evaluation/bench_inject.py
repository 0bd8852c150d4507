"""
Benchmark: error injection. How far recall falls when queries, selection or what is stored goes wrong.

LightMem-SLM's stress tests (4.6, and group D of 4.7) through the real store and recall. Junk is what is there in life:
the questions of other conversations, their messages, and chatter that came last. Everything is drawn by a seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from palimpsest.core.recall.generosity import DEMANDS
from palimpsest.domain import BlockKind, Candidate, Generosity, Recalled
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation import palimpsest, vectors
from palimpsest.evaluation.datasets import Conversation, DatasetError, DatasetMessage, Question, read
from palimpsest.evaluation.palimpsest import StoreReader
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.score import BlockText, Evidence
from palimpsest.evaluation.statistics import compare
from palimpsest.memory.request.decider import RECALL_LIMIT
from palimpsest.memory.tokens.counter import TokenCounter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET_CHARS = 6000  # of a restore: `core/block/pressure.RESTORE_CHARS`
POOL = 400  # candidates that are put in the order of one signal where nothing selects
FLOOD_TIMES = 3  # as many messages as the conversation has, said after it
LEAST_HELP = DEMANDS[Generosity.BALANCED][BlockKind.RECALL].least_help
TOKENS_OF = "gpt-4o"  # whose tokens are counted


@dataclass(frozen=True, slots=True)
class Group:
    """
    What goes wrong. `writes` is what becomes of what is stored: "" nothing; "beside": junk, as much as there is;
    "instead": junk in place of half of it; "flood": junk behind all of it.
    """

    name: str
    has_junk_queries: bool = False
    selects: bool = True
    writes: str = ""


GROUPS = (
    Group("as it is"),
    Group("half of the queries are junk", has_junk_queries=True),
    Group("no selection: the nearest by meaning", selects=False),
    Group("half of what is stored is junk", writes="beside"),
    Group("half of what was said is lost to junk", writes="instead"),
    Group("junk queries, no selection, junk stored", has_junk_queries=True, selects=False, writes="beside"),
    Group("flood of recent junk", writes="flood"),
)
"""LightMem-SLM's groups A to E of 4.6, with both readings of D, and D of 4.7."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question under one group. `evidence` None: what answers it is not known."""

    category: str
    evidence: Evidence | None
    tokens: int
    helps: float
    helps_stranger: float  # with a question that the conversation cannot answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument(
        "--noise", nargs="+", type=Path, default=[], metavar="DATA", help="chatter of the flood (other conversations)"
    )


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    if len(conversations) < 3:
        raise DatasetError("injecting errors: needs three conversations, for junk and for questions of strangers")
    chatter = [said for path in given.noise for one in read(path) for said in one.messages]
    asked = [one for one in conversations if one.questions]
    found: dict[Group, list[Outcome]] = {group: [] for group in GROUPS}
    async with vectors.opened() as embedder:
        with progress() as bar:
            task = bar.add_task("asking", total=len(GROUPS) * sum(len(one.questions) for one in asked))
            for conversation in asked:
                others = [one for one in conversations if one is not conversation]
                others = Random(f"{given.seed} {conversation.id}").sample(others, len(others))
                junk, strangers = others[: len(others) // 2], others[len(others) // 2 :]
                for group in GROUPS:
                    chance = Random(f"{given.seed} {conversation.id}")  # the same junk in all groups
                    hurt = damaged(conversation, group, junk, chatter, chance)
                    found[group] += await ask(embedder, hurt, conversation, group, strangers, chance)
                    bar.advance(task, len(conversation.questions))
    return report([str(path) for path in given.data], found, given.seed)


def damaged(
    conversation: Conversation,
    group: Group,
    junk: Sequence[Conversation],
    chatter: Sequence[DatasetMessage],
    chance: Random,
) -> Conversation:
    """The conversation with what others said among its messages, as the group wants it."""
    own = conversation.messages
    pool = [said for other in junk for said in other.messages if said.text.strip()]
    if group.writes == "beside":
        beside = [_moved(chance.choice(pool), said, at) for at, said in enumerate(own)]
        return replace(conversation, messages=tuple(chain.from_iterable(zip(own, beside, strict=True))))
    if group.writes == "instead":
        gone = {*chance.sample(range(len(own)), len(own) // 2)}
        kept = (_moved(chance.choice(pool), said, at) if at in gone else said for at, said in enumerate(own))
        return replace(conversation, messages=tuple(kept))
    if group.writes == "flood":
        source = [said for said in chatter if said.text.strip()] or pool
        start = chance.randrange(len(source))
        count = FLOOD_TIMES * len(own)
        flood = [source[(start + at) % len(source)] for at in range(count)]  # talks as they went on, not single lines
        return replace(conversation, messages=(*own, *(_moved(said, own[-1], at) for at, said in enumerate(flood))))
    return conversation


def _moved(junk: DatasetMessage, place: DatasetMessage, number: int) -> DatasetMessage:
    """A message of another conversation, said where this one was."""
    return replace(junk, id=f"junk-{number}", at=place.at, session=place.session)


async def ask(
    embedder: Embedder,
    hurt: Conversation,
    conversation: Conversation,
    group: Group,
    strangers: Sequence[Conversation],
    chance: Random,
) -> list[Outcome]:
    """
    Every question of a conversation, and as many of strangers, of whom nothing is stored.

    Args:
        hurt: what is stored of it.
        conversation: as it was said.
    """
    foreign = [question.text for other in strangers for question in other.questions]
    if not foreign:
        raise DatasetError("injecting errors: needs conversations with questions beside each that is asked")
    count, outcomes = TokenCounter().text, []
    async with palimpsest.opened(embedder) as store:
        await store.write([hurt])
        reader = store.reader(hurt)
        for question in conversation.questions:
            junk, stranger = chance.choice(foreign), chance.choice(foreign)
            recalled = await _recalled(reader, question.text, junk, group)
            unknown = await _recalled(reader, stranger, junk, group)
            block = reader.block(recalled, question.text, BUDGET_CHARS)
            text = block.text if block else ""
            evidence = _evidence(conversation, question, text)
            tokens = count(text, TOKENS_OF)
            outcomes.append(Outcome(question.category, evidence, tokens, recalled.helps, unknown.helps))
    return outcomes


def _evidence(conversation: Conversation, question: Question, text: str) -> Evidence | None:
    gold = [conversation.messages[at].content for at in conversation.gold(question)]
    return BlockText(text).evidence(gold) if gold else None


async def _recalled(reader: StoreReader, question: str, junk: str, group: Group) -> Recalled:
    """Recall for a question, in the order that the group wants."""
    limit = RECALL_LIMIT if group.selects else POOL
    each = [await reader.recall(text, limit) for text in (question, *([junk] if group.has_junk_queries else []))]
    lists = [one.candidates if group.selects else _nearest(one.candidates) for one in each]
    merged = chain.from_iterable(zip_longest(*lists))
    once = {candidate.memory.id: candidate for candidate in reversed([*filter(None, merged)])}
    return replace(
        each[0],
        candidates=tuple(reversed(once.values()))[:RECALL_LIMIT],
        helps=max(one.helps for one in each),
    )


def _nearest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """In the order of meaning alone; none is judged."""
    known = [candidate for candidate in candidates if candidate.signals["meaning"][0]]
    return [replace(one, probability=1.0) for one in sorted(known, key=lambda one: one.signals["meaning"][0])]


def report(data: Sequence[str], found: Mapping[Group, Sequence[Outcome]], seed: int) -> Report:
    """
    Make the report: tables, JSON and notes of what was found.

    Args:
        found: by group, the questions in the same order everywhere.
    """
    told = {group.name: _told(outcomes) for group, outcomes in found.items()}
    usual, *_ = found
    for group, outcomes in found.items():
        told[group.name]["difference"] = compare(_all(outcomes), _all(found[usual]), seed).to_json()
    columns = ("injected", "any", "all", "points of all", "95 %", "tokens", "speaks on own", "silent on others'")
    rows = [
        (
            *(name, one["any"], one["all"], f"{100 * one['difference']['difference']:+.1f}"),
            f"{100 * one['difference']['low']:+.1f} .. {100 * one['difference']['high']:+.1f}",
            *(round(one["tokens"]), one["speaks"], one["silent"]),
        )
        for name, one in told.items()
    ]
    categories = sorted(told[usual.name]["by_category"])
    by_category = [(name, *(one["by_category"][c]["all"] for c in categories)) for name, one in told.items()]
    return Report(
        title="inject: errors in queries, in selection and in what is stored",
        data={"data": list(data), "n": told[usual.name]["n"], "groups": told},
        tables=[
            Table(f"Evidence in a block of {BUDGET_CHARS:,} characters", columns, rows),
            Table("All evidence, by category", ("injected", *categories), by_category),
        ],
        notes=[
            f"{told[usual.name]['n']} questions whose evidence is known, paired by question; tokens of {TOKENS_OF}.",
            f"Silent: memory helps with a probability below {LEAST_HELP}, as an ordinary turn asks for; others' are as "
            "many questions of conversations of which nothing is stored, not even as junk.",
            f"The flood is {FLOOD_TIMES} times as many messages as the conversation has, on its last day.",
        ],
        draw=lambda figure: _draw(figure, told),
    )


def _told(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures of these results as JSON."""
    known = [one.evidence for one in outcomes if one.evidence is not None]
    categories = {one.category for one in outcomes if one.evidence is not None}
    return {
        "n": len(known),
        "any": _mean([evidence.any for evidence in known]),
        "all": _mean([evidence.all for evidence in known]),
        "tokens": _mean([one.tokens for one in outcomes]),
        "speaks": _mean([one.helps >= LEAST_HELP for one in outcomes]),
        "silent": _mean([one.helps_stranger < LEAST_HELP for one in outcomes]),
        "by_category": {
            name: {"n": len(some), "any": _mean([one.any for one in some]), "all": _mean([one.all for one in some])}
            for name in sorted(categories)
            if (some := [one.evidence for one in outcomes if one.category == name and one.evidence is not None])
        },
    }


def _all(outcomes: Sequence[Outcome]) -> list[float]:
    return [float(one.evidence.all) for one in outcomes if one.evidence is not None]


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4) if values else 0.0


def _draw(figure: Figure, told: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the picture of the report."""
    heights = {score: [one[score] for one in told.values()] for score in ("any", "all")}
    bars(figure, "Evidence in the block under errors", [*told], heights)
