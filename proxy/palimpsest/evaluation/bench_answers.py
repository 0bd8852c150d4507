"""
Benchmark: answers of a real language model to the same questions in four contexts.

    nothing   the question alone
    client    what the client still has: a sentence of summary and the last messages; or, in a new conversation, nothing
    memory    the same request as the running proxy forwarded it
    gold      the question and the messages that hold its answer, in the frame of a block, and nothing else

An answer is right when it holds the words of the key (`questions.py`). What memory is worth is the share of the way
from `nothing` to `gold` that `memory` covers; `client` says how much of it the client covers by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from palimpsest.core.block.packing import pack
from palimpsest.domain import BlockKind, Budget, Candidate, Json, Memory
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation import model as models
from palimpsest.evaluation import running
from palimpsest.evaluation.datasets import DatasetError, read
from palimpsest.evaluation.diagnosis import bleu_1, token_f1
from palimpsest.evaluation.model import ChatModel
from palimpsest.evaluation.questions import FactQuestion, Talk, talks
from palimpsest.evaluation.report import Report, Table, bars, progress
from palimpsest.evaluation.running import RunningProxy
from palimpsest.evaluation.score import BlockText
from palimpsest.evaluation.statistics import gap_closed, mean
from palimpsest.memory.embedding.model import cache_folder
from palimpsest.settings.policy import ModelPolicy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTEXTS = ("nothing", "client", "memory", "gold")
COMPARED = ("nothing", "memory", "gold")  # the rows of a paper: without memory, with it, and at best
SYSTEM: Json = {"role": "system", "content": "You are a helpful assistant. Answer briefly."}
SUMMARY: Json = {
    "role": "user",
    "content": "Summary of the conversation so far:\nThe user asked about several topics and told some facts.",
}
KEPT_MESSAGES = 4  # LANTERN 4.3
GO_ON: tuple[Json, ...] = ({"role": "user", "content": "OK, let us go on."}, {"role": "assistant", "content": "OK."})
TURNS_A_REQUEST = 8  # of the client's past: what is archived is the same as with one
REPLY_TOKENS = 48  # an answer of two sentences; what a small model adds is mostly repetition
ANSWER_CHARS = 500  # of an assistant's text taken from other data: a paragraph
ROOMY = Budget(6000, 1000)  # of a restore: `core/block/pressure`


@dataclass(frozen=True, slots=True)
class Prompted:
    """One question of a chat with the messages of each context."""

    talk: str
    asked: FactQuestion
    prompts: Mapping[str, Sequence[Json]]
    recalled: int  # passages in the newest block
    reached: bool  # all messages that hold the answer stand in what the proxy forwarded
    held: bool  # what it added holds the words of a right answer, as a message or as a fact
    added_tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """What the model answered to one question in each context."""

    prompted: Prompted
    answers: Mapping[str, str]

    @property
    def kind(self) -> str:
        return self.prompted.asked.kind

    def right(self, context: str) -> float:
        return float(self.prompted.asked.key.holds(self.answers[context]))

    def f1(self, context: str) -> float:
        return token_f1(self.answers[context], self.prompted.asked.key.reference)

    def bleu(self, context: str) -> float:
        return bleu_1(self.answers[context], self.prompted.asked.key.reference)

    def to_json(self) -> Json:
        return {
            "talk": self.prompted.talk,
            "kind": self.kind,
            "question": self.prompted.asked.text,
            "key": self.prompted.asked.key.reference,
            "passages": self.prompted.recalled,
            "reached": self.prompted.reached,
            "held": self.prompted.held,
            "added_tokens": self.prompted.added_tokens,
            "contexts": {
                name: {
                    "right": bool(self.right(name)),
                    "f1": round(self.f1(name), 3),
                    "bleu_1": round(self.bleu(name), 3),
                    "answer": self.answers[name],
                    "prompt": list(self.prompted.prompts[name]),
                }
                for name in CONTEXTS
            },
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    models.add_arguments(parser)
    moments = "compacted: the client kept its last messages; new: the same user begins another conversation (compacted)"
    parser.add_argument("--moment", choices=("compacted", "new"), default="compacted", help=moments)
    texts = "conversations whose assistant speaks in the chats that are lists of facts (default: it says All right)"
    parser.add_argument("--assistant", type=Path, metavar="DATA", help=texts)
    parser.add_argument("--languages", default="", metavar="CODE[,CODE]", help="of the sets of facts (all)")


async def run(given: argparse.Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    answers = cache_folder(ModelPolicy()).parent.parent / "evaluation" / "answers.db"
    async with models.opened(given, file=answers) as model:
        if model is None:
            raise PolicyError("asking a model: none is named; give --model NAME, and --upstream URL to ask your own")
        texts = _assistant(given.assistant) if given.assistant else []
        languages = given.languages.split(",") if given.languages else []
        found = [t for path in given.data for t in talks(path, texts, given.limit, languages, given.seed)]
        if not any(talk.asked for talk in found):
            raise DatasetError("looking for questions with answers: there is none")
        rows = await ask(found, model, given.moment)
    return report([str(path) for path in given.data], given.moment, model.name, rows, given.seed)


async def ask(found: Sequence[Talk], model: ChatModel, moment: str) -> list[Row]:
    """Every question under every context: first all through the proxy, then all to the model."""
    with progress() as bar:
        task = bar.add_task("through the proxy", total=sum(len(talk.asked) for talk in found))
        asked: list[Prompted] = []
        async with running.opened(model.name) as proxy:
            for talk in found:
                async for prompted in _prompted(proxy, talk, moment):
                    asked.append(prompted)
                    bar.advance(task)
        task = bar.add_task(f"asking {model.name}", total=len(asked))
        rows = []
        for each in asked:
            answers = await asyncio.gather(*(model.answer(each.prompts[name], REPLY_TOKENS) for name in CONTEXTS))
            rows.append(Row(each, dict(zip(CONTEXTS, answers, strict=True))))
            bar.advance(task)
    return rows


async def _prompted(proxy: RunningProxy, talk: Talk, moment: str) -> AsyncIterator[Prompted]:
    """The four contexts of each question of a chat."""
    state = await _past(proxy, talk, moment)
    for asked in talk.asked:
        question: Json = {"role": "user", "content": asked.text}
        client = [*state, question]
        got = await proxy.send(client, "?", **headers_of(talk, moment), x_palimpsest_memory="read-only")
        gold: Json = {"role": "user", "content": f"{_gold(talk, asked)}\n\n{asked.text}"}
        contexts = ([SYSTEM, question], client, got.messages, [SYSTEM, gold])
        shown = BlockText("\n".join(str(message["content"]) for message in got.messages))
        reached = all(shown.holds(talk.text(at)) for at in asked.gold)
        prompts, held = dict(zip(CONTEXTS, contexts, strict=True)), asked.key.holds(got.added)
        yield Prompted(talk.name, asked, prompts, got.recalled, reached, held, got.added_tokens)


async def past(proxy: RunningProxy, talk: Talk) -> None:
    """Send a chat to the proxy, and wait until it is indexed."""
    for stop in [*talk.turns[TURNS_A_REQUEST - 1 :: TURNS_A_REQUEST], *talk.turns[-1:]]:
        await proxy.send([SYSTEM, *talk.messages[:stop]], talk.text(stop), **headers_of(talk, ""))
    await proxy.indexed()


async def _past(proxy: RunningProxy, talk: Talk, moment: str) -> list[Json]:
    """Send a chat up to the moment of the questions: the messages that a client shows before each."""
    headers = headers_of(talk, "")
    await past(proxy, talk)
    if moment == "new":
        return [SYSTEM]
    state = [SYSTEM, SUMMARY, *talk.messages[: talk.turns[-1] + 1][-KEPT_MESSAGES:]]
    await proxy.send([*state, GO_ON[0]], GO_ON[1]["content"], **headers)
    await proxy.indexed()
    return [*state, *GO_ON]


def headers_of(talk: Talk, moment: str) -> dict[str, str]:
    """A tenant for each chat, and one user in it."""
    headers = {"authorization": f"Bearer sk-{talk.name.replace(' ', '-')}", "x_palimpsest_user": "one"}
    return headers | ({"x_palimpsest_conversation": "another"} if moment == "new" else {})


def _gold(talk: Talk, asked: FactQuestion) -> str:
    """The messages that hold the answer, as a block quotes them."""
    found = [
        Candidate(
            Memory(
                id=at,
                occurrence=at,
                conversation=talk.name,
                position=at,
                role=talk.messages[at]["role"],
                text=talk.text(at),
                created_at=time.time(),
                start=0,
                stop=len(talk.text(at)),
            ),
            1.0,
        )
        for at in asked.gold
    ]
    block, _ = pack(found, ROOMY, BlockKind.RECALL, asked.text)
    return block.text if block else ""


def _assistant(path: Path) -> list[str]:
    """Paragraphs that an assistant said somewhere else."""
    said = (said for conversation in read(path) for said in conversation.messages if said.role == "assistant")
    return list(dict.fromkeys(text[:ANSWER_CHARS] for each in said if (text := each.text.strip())))


def report(data: Sequence[str], moment: str, model: str, rows: Sequence[Row], seed: int) -> Report:
    """Make the report: tables, JSON and notes of what was found."""
    groups = {"all": list(rows)}
    for row in rows:
        groups.setdefault(row.kind, []).append(row)
    told = {name: _told(held, seed) for name, held in groups.items()}
    shares = [
        (
            name,
            held["n"],
            held["reached"],
            held["held"],
            held["added_tokens"],
            *(held["right"][context]["value"] for context in CONTEXTS),
            _gap(held),
        )
        for name, held in told.items()
    ]
    shared = [
        (name, *(held[measure][context]["value"] for measure in ("f1", "bleu_1") for context in COMPARED))
        for name, held in told.items()
    ]
    intervals = [
        (context, *told["all"][measure][context].values()) for measure in ("right", "f1") for context in CONTEXTS
    ]
    gold = sum(row.right("gold") for row in rows)
    measured = {"data": list(data), "model": model, "moment": moment, "groups": told}
    return Report(
        title=f"answers: what {model} answers with memory and without",
        data=measured | {"rows": [row.to_json() for row in rows]},
        tables=[
            Table("right answers", ("questions", "n", "reached", "held", "tokens", *CONTEXTS, "of the gap"), shares),
            Table(
                "words shared with the key",
                ("questions", *(f"{name}, {context}" for name in ("F1", "BLEU-1") for context in COMPARED)),
                shared,
            ),
            Table("all: right answers, then F1, with 95 % bounds", ("context", "share", "low", "high"), intervals),
        ],
        notes=[
            f"Moment: {moment}. With gold {gold:.0f} of {len(rows)} answers are right. Of the gap: (memory - nothing) /"
            " (gold - nothing), with the 95 % bounds of a bootstrap over questions. Reached: all that holds the answer"
            " stands in the request that was forwarded. Held: what was added has the words of a right answer. Tokens:"
            " of what was added, on average.",
        ],
        draw=lambda figure: _draw(figure, told),
    )


def _told(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """The figures of these results as JSON."""
    right = {name: [row.right(name) for row in rows] for name in CONTEXTS}
    f1 = {name: [row.f1(name) for row in rows] for name in CONTEXTS}
    chars = (sum(len(str(message["content"])) for message in row.prompted.prompts["memory"]) for row in rows)
    return {
        "n": len(rows),
        "reached": _mean(row.prompted.reached for row in rows),
        "held": _mean(row.prompted.held for row in rows),
        "added_tokens": round(sum(row.prompted.added_tokens for row in rows) / len(rows)),
        "silent": _mean(not row.prompted.recalled for row in rows),
        "chars": round(sum(chars) / len(rows)),
        "right": {name: mean(values, seed).to_json() for name, values in right.items()},
        "f1": {name: mean(values, seed).to_json() for name, values in f1.items()},
        "bleu_1": {name: mean([row.bleu(name) for row in rows], seed).to_json() for name in CONTEXTS},
        "gap_closed": gap_closed(right["nothing"], right["memory"], right["gold"], seed).to_json(),
        "gap_closed_by_client": gap_closed(right["nothing"], right["client"], right["gold"], seed).to_json(),
        "gap_closed_f1": gap_closed(f1["nothing"], f1["memory"], f1["gold"], seed).to_json(),
    }


def _mean(values: Iterable[bool]) -> float:
    return round(float(np.mean([*values])), 4)


def _gap(held: Mapping[str, Any]) -> str:
    """How much of the gap is closed, in words, with its interval."""
    gap = held["gap_closed"]
    if gap["value"] is None:
        return "-"
    return f"{gap['value']:.2f}" + (f" ({gap['low']:.2f} to {gap['high']:.2f})" if gap["low"] is not None else "")


def _draw(figure: Figure, told: Mapping[str, Any]) -> None:
    """Draw the picture of the report."""
    heights = {name: [held["right"][name]["value"] for held in told.values()] for name in CONTEXTS}
    bars(figure, "Right answers", [*told], heights)
