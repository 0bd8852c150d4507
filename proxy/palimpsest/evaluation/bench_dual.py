"""
Benchmark: CALMem's two memories, each alone and both, through the running proxy. Its section 9.7, without a judge.

A chat in which facts are told, with facts taken by patterns where CALMem's agent writes them. *Context recovery*: each
question in a new conversation of the same user; recovered where what the model sees holds the words of a right answer.
*Fact consistency*: the same chat goes on after its client kept four messages, with a message that asks for nothing;
consistent is a fact whose words the model still sees. *Semantic only* is what blocks tell as facts, and nothing that
they quote.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.core.block.fact_lines import ROLE
from palimpsest.evaluation import running
from palimpsest.evaluation.bench_answers import GO_ON, KEPT_MESSAGES, SUMMARY, SYSTEM, headers_of, past
from palimpsest.evaluation.questions import FactQuestion, Talk, talks
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.running import RunningProxy

MODEL = "gpt-4o"  # its window decides nothing here: the chats are short
NONE, EPISODIC, SEMANTIC, BOTH = SYSTEMS = ("no memory", "episodic only", "semantic only", "both")
FACTS = {"PALIMPSEST_FACTS__POLICY": "use"}
RECOVERY, CONSISTENCY = "context recovery", "fact consistency"

Cells = dict[tuple[str, str], list[float]]
"""By system and measure: 1 or 0 for each question or fact."""


def add_arguments(parser: ArgumentParser) -> None:
    help = "of the sets of facts (en)"
    parser.add_argument("--languages", default="en", metavar="CODE[,CODE]", help=help)


async def run(given: Namespace) -> Report:
    languages = given.languages.split(",")
    found = [talk for path in given.data for talk in talks(path, [], given.limit, languages, given.seed)]
    cells: Cells = defaultdict(list)
    for settings in ({}, FACTS):
        async with running.opened(MODEL, settings) as proxy:
            with progress() as bar:
                for talk in bar.track(found, description="with facts" if settings else "without facts"):
                    await _measure(proxy, talk, bool(settings), cells)
    return report(given, found, cells)


async def _measure(proxy: RunningProxy, talk: Talk, with_facts: bool, cells: Cells) -> None:
    await past(proxy, talk)
    kept = [SYSTEM, SUMMARY, *talk.messages[: talk.turns[-1] + 1][-KEPT_MESSAGES:], GO_ON[0]]
    # read-only: every question meets the same memory
    named = headers_of(talk, "") | {"x_palimpsest_memory": "read-only"}
    went_on = await proxy.send(kept, "?", **named)
    client = "\n".join(str(message["content"]) for message in kept)
    for asked in talk.asked:
        _add(cells, CONSISTENCY, asked, client, went_on.added, with_facts)
    named = headers_of(talk, "new") | {"x_palimpsest_memory": "read-only"}
    for asked in talk.asked:
        got = await proxy.send([SYSTEM, {"role": "user", "content": asked.text}], "?", **named)
        _add(cells, RECOVERY, asked, "", got.added, with_facts)


def _add(cells: Cells, measure: str, asked: FactQuestion, client: str, added: str, with_facts: bool) -> None:
    """What the client shows counts for every system."""
    facts = "\n".join(line for line in added.splitlines() if line.startswith(ROLE))
    told = {SEMANTIC: facts, BOTH: added} if with_facts else {NONE: "", EPISODIC: added}
    for system, text in told.items():
        cells[system, measure].append(float(asked.key.holds(f"{client}\n{text}")))


def report(given: Namespace, found: Sequence[Talk], cells: Mapping[tuple[str, str], Sequence[float]]) -> Report:
    told = {
        system: {measure: float(np.mean(cells[system, measure])) for measure in (RECOVERY, CONSISTENCY)}
        for system in SYSTEMS
    }
    n = sum(len(talk.asked) for talk in found)
    return Report(
        "dual: episodic and semantic memory",
        {"data": [str(path) for path in given.data], "n": n, "talks": len(found), "systems": told},
        [
            Table(
                f"{n} facts of {len(found)} chats",
                ("memory", RECOVERY, CONSISTENCY),
                [(k, *v.values()) for k, v in told.items()],
            )
        ],
        ["Facts are taken by patterns, no agent writes them; whether an answer would be right nobody judges."],
    )
