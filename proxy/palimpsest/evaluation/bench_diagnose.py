"""
Benchmark: whether answers are lost when memory is written or when it is read, by WhenLoss's four conditions.

WhenLoss (arXiv 2605.24579). Without `--model` the scores need no reader: turn recall (share of gold turns that are
preserved) and span recall (share of the answer's names, dates and numbers that stand there). With one, a reader answers
from each input, and contains-match and token F1 are told too. `--damage` validates the protocol: entries dropped after
writing must move the write gap, entries swapped after ranking the retrieval gap, and neither the other.
"""

from __future__ import annotations

import asyncio
import random
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Embedder
from palimpsest.evaluation import model as models
from palimpsest.evaluation import vectors
from palimpsest.evaluation.assistant import BenchAssistant
from palimpsest.evaluation.baselines.chunks import ENCODING
from palimpsest.evaluation.datasets import Conversation, Question, read
from palimpsest.evaluation.diagnosis import CONDITIONS, Gaps, Segments, contains_match, gaps, spans, token_f1
from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.nearest import Nearest
from palimpsest.evaluation.palimpsest import Palimpsest
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.score import UNANSWERED
from palimpsest.evaluation.writing import Writer, token_count, writers
from palimpsest.memory.tokens.counter import encoder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WRITE_TOKENS = "5000"  # WhenLoss 5.3; 2,000 for LoCoMo (6.8)
READ_TOKENS = 5_000  # WhenLoss 5.3
READ_ENTRIES = 5  # WhenLoss 5.3
FULL_TOKENS = 32_000  # of TFC, WhenLoss 3.2
ANSWER_TOKENS = 200  # WhenLoss 5.3
OURS_CHARS = 6_000  # a restore: some 1,500 tokens, about as much as five chunks and a half
TURNS, SPANS, CONTAINS, F1 = "turn recall", "span recall", "contains-match", "token F1"
READ = """Based on the following context,
answer the question.
If the answer cannot be determined,
say "I don't know".

Context:
{context}

Question:
{question}"""


@dataclass(frozen=True, slots=True)
class Damage:
    """A share of entries to lose, at a stage: "write" or "retrieval"."""

    stage: str
    share: float


@dataclass(frozen=True, slots=True)
class ScorableQuestion:
    """
    A question that can be scored: the turns that answer it, the day of each, and spans of its answer.

    Only spans that the evidence shows: what has to be concluded stands nowhere, or by chance where a text is long.
    """

    question: Question
    turns: tuple[str, ...]
    days: tuple[str, ...]
    spans: tuple[str, ...]

    @property
    def evidence(self) -> str:
        """The text of the evidence, as OE shows it."""
        return "\n".join(f"[{day}]\n{turn}" for day, turn in zip(self.days, self.turns, strict=True))

    @property
    def answer(self) -> str:
        """The answer that a reader should give; "" where no reader is asked."""
        return "" if self.question.category in UNANSWERED else self.question.answer or ""


class Scores:
    """Means by metric and condition, over the questions of which the metric says something."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, metric: str, condition: str, value: float) -> None:
        self._values[metric, condition].append(value)

    def mean(self, metric: str, condition: str) -> float | None:
        values = self._values.get((metric, condition))
        return float(np.mean(values)) if values else None

    def gaps(self, metric: str, oracle: float | None) -> Gaps | None:
        """The gaps against the score of OE; None where nothing was scored."""
        stored, retrieved = self.mean(metric, "CSM"), self.mean(metric, "RM")
        return None if oracle is None or stored is None or retrieved is None else gaps(oracle, stored, retrieved)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    help = f"write budgets; 4%%: of the tokens of each conversation ({WRITE_TOKENS})"
    parser.add_argument("--write-tokens", type=write_budgets, default=WRITE_TOKENS, metavar="N[,N%]", help=help)
    parser.add_argument("--writers", metavar="NAME[,NAME]", help="only these (all)")
    help = f"most tokens that the reader is given of a conversation ({FULL_TOKENS})"
    parser.add_argument("--reader-tokens", type=int, default=FULL_TOKENS, metavar="N", help=help)
    parser.add_argument(
        "--damage", type=damage, metavar="STAGE:PERCENT", help="write:25 or retrieval:50, to validate the protocol"
    )
    models.add_arguments(parser)


def write_budgets(text: str) -> list[str]:
    """`5000,4%` as budgets, for argparse."""
    found = text.split(",")
    if not all(one.removesuffix("%").replace(".", "", 1).isdigit() for one in found):
        raise ArgumentTypeError(f"{text}: expected numbers of tokens, or shares such as 4%")
    return found


def tokens_of(budget: str, conversation: Conversation) -> int:
    """One of `write_budgets` for this conversation."""
    if not budget.endswith("%"):
        return int(budget)
    return round(float(budget[:-1]) / 100 * token_count("\n".join(said.text for said in conversation.messages)))


def damage(text: str) -> Damage:
    """`write:25` as a value, for argparse."""
    stage, _, percent = text.partition(":")
    if stage not in ("write", "retrieval") or not percent.isdigit() or not 0 < int(percent) < 100:
        raise ArgumentTypeError(f"{text}: expected write:PERCENT or retrieval:PERCENT, 1 to 99")
    return Damage(stage, int(percent) / 100)


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    conversations = [conversation for path in given.data for conversation in read(path, given.limit)]
    async with vectors.opened() as embedder, models.opened(given) as model:
        assistant = BenchAssistant(model) if model else None
        made = writers(embedder, model, assistant)
        chosen = given.writers.split(",") if given.writers else [*made]
        if unknown := [name for name in chosen if name not in made]:
            raise PolicyError(f"--writers {unknown[0]}: is not known; there are {', '.join(made)}")
        found: dict[tuple[str, str], Scores] = {}
        shared = Scores()
        ours = Scores()
        with progress() as bar:
            for conversation in bar.track(conversations, description="diagnosing"):
                asked = answerable(conversation)
                await _references(conversation, asked, shared, model, given.reader_tokens)
                await _ours(conversation, asked, ours, embedder, model)
                for name in chosen:
                    for budget in given.write_tokens:
                        scores = found.setdefault((name, budget), Scores())
                        tokens = tokens_of(budget, conversation)
                        await measure(conversation, asked, made[name], tokens, embedder, model, given, scores)
    return report(given, conversations, found, shared, ours, [TURNS, SPANS, *([CONTAINS, F1] if model else [])])


def answerable(conversation: Conversation) -> list[ScorableQuestion]:
    """The questions whose evidence is known."""
    whole = "\n".join(said.content for said in conversation.messages)
    found = []
    for question in conversation.questions:
        if gold := [conversation.messages[at] for at in conversation.gold(question)]:
            named = spans(None if question.category in UNANSWERED else question.answer, whole)
            bare = ScorableQuestion(
                question, tuple(said.content for said in gold), tuple(said.day for said in gold), ()
            )
            shown = Segments([bare.evidence])
            found.append(replace(bare, spans=tuple(span for span in named if shown.span_recall([span]))))
    return found


async def measure(
    conversation: Conversation,
    asked: Sequence[ScorableQuestion],
    writer: Writer,
    tokens: int,
    embedder: Embedder,
    model: Model | None,
    given: Namespace,
    scores: Scores,
) -> None:
    """Write a conversation, read it for every question, and score both."""
    chance = random.Random(f"{given.seed} {conversation.id}")
    entries = list(await writer(conversation, tokens))
    hurt = given.damage or Damage("", 0.0)
    if hurt.stage == "write":
        kept = sorted(chance.sample(range(len(entries)), round(len(entries) * (1 - hurt.share))))
        entries = [entries[at] for at in kept]
    nearest = await Nearest.of(entries, embedder)
    stored = Segments(nearest.texts)
    whole = "\n".join(nearest.texts)
    asking = []
    for one in asked:
        ranked = await nearest.to(one.question.text, None)
        if hurt.stage == "retrieval":
            bottom = ranked[len(ranked) - round(len(ranked) * hurt.share) :]
            ranked = chance.sample(bottom, min(READ_ENTRIES, len(bottom)))
        read_back = _within(ranked[:READ_ENTRIES])
        for condition, segments, text in (("CSM", stored, whole), ("RM", Segments(read_back), "\n".join(read_back))):
            _score(one, condition, segments, scores)
            asking.append(_ask(one, condition, text, model, scores))
    await asyncio.gather(*asking)


async def _references(
    conversation: Conversation,
    asked: Sequence[ScorableQuestion],
    scores: Scores,
    model: Model | None,
    full_tokens: int,
) -> None:
    """Score TFC and OE, which are the same for every memory."""
    days = groupby(conversation.messages, key=lambda said: said.day)
    lines = "\n".join(line for day, stretch in days for line in (f"[{day}]", *(said.text for said in stretch)))
    encoding = encoder(ENCODING)
    recent = encoding.decode(encoding.encode_ordinary(lines)[-full_tokens:])
    full = Segments([recent])
    asking = []
    for one in asked:
        _score(one, "TFC", full, scores)
        _score(one, "OE", Segments([one.evidence]), scores)
        asking.append(_ask(one, "TFC", recent, model, scores))
        asking.append(_ask(one, "OE", one.evidence, model, scores))
    await asyncio.gather(*asking)


async def _ours(
    conversation: Conversation,
    asked: Sequence[ScorableQuestion],
    scores: Scores,
    embedder: Embedder,
    model: Model | None,
) -> None:
    """Score our archive, which keeps all as it was said, so that CSM is OE by construction."""
    async with Palimpsest(embedder).opened(conversation) as reader:
        stored = Segments([*await reader.stored(), *(said.day for said in conversation.messages)])
        asking = []
        for one in asked:
            text = (await reader.pack(one.question.text, OURS_CHARS)).text
            _score(one, "CSM", stored, scores)
            _score(one, "RM", Segments([text]), scores)
            asking.append(_ask(one, "CSM", one.evidence, model, scores))
            asking.append(_ask(one, "RM", text, model, scores))
        await asyncio.gather(*asking)


def _score(one: ScorableQuestion, condition: str, segments: Segments, scores: Scores) -> None:
    """Score what is kept of one question's turns and spans."""
    scores.add(TURNS, condition, segments.turn_recall(one.turns))
    if one.spans:
        scores.add(SPANS, condition, segments.span_recall(one.spans))


async def _ask(one: ScorableQuestion, condition: str, context: str, model: Model | None, scores: Scores) -> None:
    """Let the reader answer a question from a context, and score that."""
    if model is None or not one.answer:
        return
    said = await model.complete(READ.format(context=context, question=one.question.text), ANSWER_TOKENS)
    scores.add(CONTAINS, condition, contains_match(said, one.answer))
    scores.add(F1, condition, token_f1(said, one.answer))


def _within(ranked: Sequence[Piece]) -> list[str]:
    """The texts that fit the read budget, best first."""
    texts = []
    room = READ_TOKENS
    for piece in ranked:
        room -= token_count(piece.text)
        if room < 0:
            break
        texts.append(piece.text)
    return texts


def report(
    given: Namespace,
    conversations: Sequence[Conversation],
    found: dict[tuple[str, str], Scores],
    shared: Scores,
    ours: Scores,
    metrics: Sequence[str],
) -> Report:
    """One table a metric."""
    rows: list[tuple[str, str, Scores]] = [(name, budget, scores) for (name, budget), scores in found.items()]
    rows.append((Palimpsest.name, "all", ours))
    tables = []
    told: dict[str, Any] = {}
    for metric in metrics:
        lines: list[list[str | float | int | None]] = []
        for name, tokens, scores in rows:
            gap = scores.gaps(metric, shared.mean(metric, "OE"))
            if gap is None:
                continue
            stored, retrieved = scores.mean(metric, "CSM"), scores.mean(metric, "RM")
            lines.append([name, tokens, stored, retrieved, gap.write, gap.retrieval, gap.verdict])
            told.setdefault(metric, {}).setdefault(name, {})[tokens] = {
                "CSM": stored,
                "RM": retrieved,
                "write": gap.write,
                "retrieval": gap.retrieval,
                "verdict": gap.verdict,
            }
        reference = ", ".join(f"{c} {shared.mean(metric, c) or 0:.3f}" for c in CONDITIONS[:2])
        columns = ("memory", "tokens", "CSM", "RM", "write gap", "retrieval gap", "verdict")
        tables.append(Table(f"{metric} ({reference})", columns, lines))
    questions = sum(len(answerable(conversation)) for conversation in conversations)
    data = {
        "data": [str(path) for path in given.data],
        "n": questions,
        "damage": f"{given.damage.stage}:{given.damage.share:.0%}" if given.damage else None,
        "references": {m: {c: shared.mean(m, c) for c in CONDITIONS[:2]} for m in metrics},
        "scores": told,
    }
    notes = [
        f"{questions} questions whose evidence is known; RM is the best {READ_ENTRIES} entries within {READ_TOKENS:,} "
        f"tokens, ours a block of {OURS_CHARS:,} characters from an archive without a budget"
    ]
    if len(metrics) == 2:
        notes.append("no --model: no reader was asked, and no writer that needs a model")

    def draw(figure: Figure) -> None:
        names = [f"{name} {tokens}" for name, tokens, _ in rows]
        gap = [scores.gaps(metrics[0], shared.mean(metrics[0], "OE")) for _, _, scores in rows]
        heights = {
            "write gap": [one.write if one else 0.0 for one in gap],
            "retrieval gap": [one.retrieval if one else 0.0 for one in gap],
        }
        bars(figure, f"where {metrics[0]} is lost", names, heights)

    return Report("diagnose: lost in writing, or in reading", data, tables, notes, draw)
