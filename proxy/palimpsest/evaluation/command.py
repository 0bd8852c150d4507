"""`palimpsest bench NAME DATA...`: the table of benchmarks, each loaded when it is asked for."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from palimpsest.console import terminal
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Embedder
from palimpsest.settings.policy import LogPolicy, Policy
from palimpsest.telemetry import logs

if TYPE_CHECKING:
    from palimpsest.evaluation.model import Model
    from palimpsest.evaluation.palimpsest import Palimpsest
    from palimpsest.evaluation.report import Report
    from palimpsest.evaluation.systems import System

LIMIT = "questions of each conversation, or conversations where nothing is asked (0: all)"
SEED = 42  # LANTERN 4
BUDGET_CHARS = "6000"  # of a restore: `core/block/pressure.RESTORE_CHARS`

BENCHMARKS: Mapping[str, str] = {
    "recall": "Evidence of a question in what comes back after everything was lost.",
    "session": "Rank of the session that holds the answer.",
    "restore": "Lost facts that come back after a compaction, before anyone has asked.",
    "work": "What the rest of a piece of work needs after a compaction in the middle of it.",
    "diagnose": "Whether answers are lost when memory is written, or when it is read.",
    "writing": "The papers' experiments around writers: components, buffers, topic boundaries, calls.",
    "gaps": "Whether what memory's probes say is lost is what questions say.",
    "restraint": "Silence where nothing is known, and what it costs.",
    "identifiers": "Rank of what a question asks for by its exact name.",
    "ablate": "Ablation: what each part of recall is worth.",
    "inject": "Errors in queries, in selection and in what is stored.",
    "calmem": "CALMem's own experiments.",
    "updates": "Whether a block holds the newest of several statements, and shows that it is.",
    "answers": "Answers of a real language model with memory, without, and at best.",
    "facts": "Facts that patterns take from messages, against judgements.",
    "implied": "Needs that nobody asks for, through the running proxy.",
    "lives": "What months of one person's sessions need of each other, through the running proxy.",
    "dual": "CALMem's two memories, each alone and both, through the running proxy.",
    "paper": "A paper's own tables, its numbers beside ours.",
    "overflow": "Conversations that grow far beyond the window, through the running proxy.",
    "compactions": "Compactions that the proxy answers, several in a conversation, through the running proxy.",
    "growth": "Recall, time and memory as the store grows.",
}


class BenchmarkModule(Protocol):
    """What each `bench_NAME.py` holds."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    async def run(self, given: argparse.Namespace) -> Report: ...


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """
    Flags of one benchmark, and the names of the others.

    Args:
        name: what was typed behind `bench`; anything.
    """
    names = parser.add_subparsers(title="benchmarks", required=True, metavar="NAME")
    for each, about in BENCHMARKS.items():
        added = names.add_parser(each, help=about, description=about)
        if each == name:
            module = _module(each)
            module.add_arguments(added)
            _shared(added)
            added.set_defaults(bench=module)


def run(given: argparse.Namespace) -> None:
    """Measure, show, and write what was asked for."""
    from palimpsest.evaluation.report import provenance, ready_to_plot

    logs.configure(LogPolicy(level="error"))
    for file in filter(None, (given.json, given.plot)):  # said now, not after minutes of measuring
        if not file.parent.is_dir():
            raise PolicyError(f"writing {file}: there is no folder {file.parent}")
    if given.plot:
        ready_to_plot(given.plot)
    made, started = provenance(given.seed), perf_counter()  # before: the checkout may change while we measure
    report = asyncio.run(given.bench.run(given))
    report = replace(report, provenance=made | {"seconds": round(perf_counter() - started, 1)})
    report.show(terminal.console())
    if given.json:
        given.json.write_text(report.to_json(), encoding="utf-8")
    if given.plot:
        report.plot(given.plot)


def parsed(name: str, arguments: list[str]) -> tuple[BenchmarkModule, argparse.Namespace]:
    """One benchmark with the arguments that its command line would have."""
    module, parser = _module(name), argparse.ArgumentParser()
    module.add_arguments(parser)
    _shared(parser)
    return module, parser.parse_args(arguments)


def budgets_flag(parser: argparse.ArgumentParser) -> None:
    """`--budget-chars`: a list of numbers."""
    help = f"of a block, frame included ({BUDGET_CHARS})"
    parser.add_argument("--budget-chars", type=numbers, default=BUDGET_CHARS, metavar="N[,N]", help=help)


def systems_flag(parser: argparse.ArgumentParser) -> None:
    """`--systems`: see `systems`."""
    help = "baselines to compare with (all that need no language model)"
    parser.add_argument("--systems", metavar="NAME[,NAME]", help=help)


def systems(
    given: argparse.Namespace, embedder: Embedder, policy: Policy | None = None, model: Model | None = None
) -> tuple[Palimpsest, *tuple[System, ...]]:
    """
    Ours first, then the baselines that `--systems` names.

    Args:
        policy: ours, where it is not the default.
        model: a language model; None: without the baselines that need one.

    Raises:
        PolicyError: one of them is not known.
    """
    from palimpsest.evaluation.baselines.known import BASELINES, MODEL_BASELINES
    from palimpsest.evaluation.palimpsest import OPTIONS, OURS, Palimpsest, with_option

    makers: dict[str, Callable[[], System]] = {name: partial(make, embedder) for name, make in BASELINES.items()}
    if model is not None:
        makers |= {name: partial(make, embedder, model) for name, make in MODEL_BASELINES.items()}
    names = given.systems.split(",") if given.systems else [*makers]
    makers |= {name: partial(with_option, embedder, policy, name) for name in OPTIONS}
    for name in names:
        if name not in (OURS, *makers):
            hint = "; it needs --model" if name in MODEL_BASELINES else ""
            raise PolicyError(f"--systems {name}: is not known; there are {', '.join(makers)}{hint}")
    return Palimpsest(embedder, policy), *(make() for name, make in makers.items() if name in names)


def numbers(text: str) -> list[int]:
    """`6000,3000` as numbers, for argparse."""
    return [int(part) for part in text.split(",")]


def _module(name: str) -> BenchmarkModule:
    found: Any = import_module(f"palimpsest.evaluation.bench_{name}")
    return found  # type: ignore[no-any-return]


def _shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help="a .jsonl(.gz) file, or a folder with one")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help=LIMIT)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them: .svg or .png")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of everything random ({SEED})")
