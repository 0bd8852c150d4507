"""
Benchmark: one conversation that the running proxy compacts several times, and what is known of its beginning then.

The client speaks the Responses API and asks for a compaction by a trigger, as Codex does, in even distances; from then
on it sends the item that it got and what was said since. Behind the last one all questions are asked whose evidence
stands before the first. The provider writes down what it would have read: the compaction's text, and the block of the
question.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import orjson

from palimpsest.domain import Json
from palimpsest.evaluation import running
from palimpsest.evaluation.datasets import Conversation, read
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.running import RunningProxy
from palimpsest.evaluation.score import count_evidence
from palimpsest.evaluation.scripted import Reply

MODEL = "gpt-4o"
SETTINGS = {"PALIMPSEST_MEMORY__COMPACTION": "answer"}
COMPACTIONS = 5
CONVERSATIONS = 3
TRIGGER: Json = {"type": "compaction_trigger"}
ITEM, WITH = "compaction", "with the block of the question"
MEASURES = tuple(f"{what}, {how}" for what in (ITEM, WITH) for how in ("any", "all"))


@dataclass
class Measured:
    """What became of one conversation."""

    seconds: list[float] = field(default_factory=list)  # of each compaction, as its client waited
    chars: list[int] = field(default_factory=list)  # of what each leaves to the model
    found: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in MEASURES})


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    help = f"of each conversation ({COMPACTIONS})"
    parser.add_argument("--compactions", type=int, default=COMPACTIONS, metavar="N", help=help)
    help = f"of each set, the first ones ({CONVERSATIONS})"
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, metavar="N", help=help)


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    found: dict[str, list[Measured]] = {}
    for path in given.data:
        talks = read(path, given.limit)[: given.conversations]
        with progress() as bar:
            for talk in bar.track(talks, description=path.name):
                async with running.opened(MODEL, SETTINGS) as proxy:
                    found.setdefault(path.name, []).append(await measure(proxy, talk, given.compactions))
    return report(given, found)


async def measure(proxy: RunningProxy, talk: Conversation, compactions: int) -> Measured:
    """
    Replay a conversation, have it compacted, and ask behind the last compaction.

    Args:
        compactions: at least one; the last one stands at the end of the conversation.
    """
    told, named = Measured(), {"authorization": f"Bearer sk-{talk.id}", "thread-id": talk.id}
    asking = named | {"x_palimpsest_memory": "read-only"}
    items: list[Json] = []
    ends = [len(talk.messages) * at // compactions for at in range(1, compactions + 1)]
    for at, said in enumerate(talk.messages):
        if said.role == "assistant":
            await proxy.respond(items, Reply(said.content), **named)
        items.append({"type": "message", "role": said.role, "content": said.content})
        if at + 1 in ends:
            await proxy.indexed()
            started = perf_counter()
            answer, _ = await proxy.respond([*items, TRIGGER], "the provider was asked to compact", **named)
            told.seconds.append(perf_counter() - started)
            items = answer["output"]
            _, seen = await proxy.respond([*items, _asking("Thanks.")], "Yes.", **asking)
            told.chars.append(len(_text(seen)))
    for question, gold in talk.asked_about(ends[0]):
        texts = [talk.messages[index].content for index in gold]
        _, got = await proxy.respond([*items, _asking(question.text)], "?", **asking)
        for what, text in ((ITEM, _text(seen)), (WITH, _text(got))):
            count_evidence(told.found, what, text, texts)
    return told


def _asking(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def _text(body: Json) -> str:
    return orjson.dumps(body["input"]).decode().replace("\\n", "\n").replace('\\"', '"')


def report(given: Namespace, found: Mapping[str, Sequence[Measured]]) -> Report:
    """Make the report: the table, JSON and notes of what was found."""
    rows, data = [], {}
    for name, each in found.items():
        seconds = [1000 * second for one in each for second in one.seconds]
        chars = [count for one in each for count in one.chars]
        measures = {key: [value for one in each for value in one.found[key]] for key in MEASURES}
        means = {key: float(np.mean(values)) if values else None for key, values in measures.items()}
        middle, most = (float(np.quantile(seconds, share)) for share in (0.5, 0.95))
        asked = len(measures[MEASURES[0]])
        times = (len(seconds), round(middle), round(most))
        rows.append((name, *times, round(float(np.mean(chars))), asked, *means.values()))
        data[name] = {"compactions": len(seconds), "median_ms": middle, "p95_ms": most, "asked": asked, **means}
    columns = ("data", "compactions", "median ms", "p95 ms", "characters left", "n", *MEASURES)
    return Report(
        "compactions that the proxy answers, and questions about the beginning",
        {"data": [str(path) for path in given.data], "compactions": given.compactions, "sets": data},
        [Table(f"{given.compactions} compactions in each conversation", columns, rows)],
        ["Evidence stands before the first compaction; characters of what the model reads right after one."],
    )
