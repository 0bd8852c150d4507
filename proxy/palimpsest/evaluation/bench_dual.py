"""
Benchmark: CALMem's two memories, each alone and both, through the running proxy. Its section 9.7, without a judge.

A chat in which facts are told; then a new conversation of the same user. *Context recovery*: it begins with a question;
recovered where what the model sees holds the words of a right answer. *Fact consistency*: it begins with a message that
asks for nothing; consistent is each fact whose words the model sees all the same. *Semantic* is what blocks tell as
facts, and nothing that they quote: taken from the chat by patterns, or written by an agent that keeps all that it is
told, by the tool remember_fact, with room for all of it as in CALMem.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.core.block.fact_lines import ROLE
from palimpsest.evaluation import running
from palimpsest.evaluation.bench_answers import GO_ON, SYSTEM, headers_of, past
from palimpsest.evaluation.questions import Talk, talks
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.running import RunningProxy

MODEL = "gpt-4o"  # its window decides nothing here: the chats are short
NONE, EPISODIC = "no memory", "episodic only"
SEMANTIC, BOTH = "semantic only", "both"
BY_AGENT = ", written by an agent"
SYSTEMS = (NONE, EPISODIC, SEMANTIC, BOTH, SEMANTIC + BY_AGENT, BOTH + BY_AGENT)
FACTS = {"PALIMPSEST_FACTS__POLICY": "use"}
AGENT = {
    "PALIMPSEST_FACTS__POLICY": "all",
    "PALIMPSEST_FACTS__TOKENS": "4000",
    "PALIMPSEST_MCP__ENABLED": "true",
    "PALIMPSEST_MCP__TOOLS": '["remember_fact"]',
}
SLOT_WORDS = 4  # of a fact, as its name
RECOVERY, CONSISTENCY = "context recovery", "fact consistency"

Cells = dict[tuple[str, str], list[float]]
"""By system and measure: 1 or 0 for each question or fact."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    help = "of the sets of facts (en)"
    parser.add_argument("--languages", default="en", metavar="CODE[,CODE]", help=help)


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    languages = given.languages.split(",")
    found = [talk for path in given.data for talk in talks(path, [], given.limit, languages, given.seed)]
    cells: Cells = defaultdict(list)
    for settings, way in (({}, None), (FACTS, ""), (AGENT, BY_AGENT)):
        async with running.opened(MODEL, settings) as proxy:
            with progress() as bar:
                for talk in bar.track(found, description="episodic" if way is None else f"with facts{way}"):
                    await _measure(proxy, talk, way, cells)
    return report(given, found, cells)


async def _measure(proxy: RunningProxy, talk: Talk, way: str | None, cells: Cells) -> None:
    """Send a chat, ask its questions, and score what is told; `way`: how facts come to be, None: none."""
    await past(proxy, talk)
    if way == BY_AGENT:
        told = [" ".join(talk.text(at).split()) for asked in talk.asked for at in asked.gold]
        facts = [
            {"subject": "user", "slot": " ".join(t.split()[:SLOT_WORDS]), "value": t, "category": "note"} for t in told
        ]
        await proxy.remember(facts, **headers_of(talk, ""))
    # read-only: every question meets the same memory
    named = headers_of(talk, "new") | {"x_palimpsest_memory": "read-only"}
    went_on = await proxy.send([SYSTEM, GO_ON[0]], "?", **named)
    for asked in talk.asked:
        got = await proxy.send([SYSTEM, {"role": "user", "content": asked.text}], "?", **named)
        for measure, added in ((RECOVERY, got.added), (CONSISTENCY, went_on.added)):
            facts_told = "\n".join(line for line in added.splitlines() if line.startswith(ROLE))
            seen = {NONE: "", EPISODIC: added} if way is None else {SEMANTIC + way: facts_told, BOTH + way: added}
            for system, text in seen.items():
                cells[system, measure].append(float(asked.key.holds(text)))


def report(given: Namespace, found: Sequence[Talk], cells: Mapping[tuple[str, str], Sequence[float]]) -> Report:
    """Make the report: tables, JSON and notes of what was found."""
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
        ["The agent is a script that keeps every sentence as it was told; nobody judges an answer."],
    )
