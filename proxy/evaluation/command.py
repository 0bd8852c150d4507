"""What can be measured? `palimpsest bench NAME DATA...`; a benchmark is loaded when it is asked for."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from proxy import logs, terminal
from proxy.errors import PolicyError
from proxy.policy import LogPolicy

SEED = 42  # LANTERN 4
BUDGET_CHARS = "6000"  # what a restore may say (policy: restore.chars)

BENCHMARKS: Mapping[str, str] = {
    "recall": "Is the evidence of a question in what comes back after everything was lost?",
}


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
            _shared(added)
            module.add_arguments(added)
            added.set_defaults(bench=module)


def run(given: argparse.Namespace) -> None:
    """Measure, show, and write what was asked for."""
    from proxy.evaluation.report import drawing, provenance

    logs.configure(LogPolicy(level="error"))
    if given.plot:
        drawing()  # a missing library is said now, not after minutes of measuring
    started = perf_counter()
    report = asyncio.run(given.bench.run(given))
    report = replace(report, provenance=provenance(given.seed, perf_counter() - started))
    report.show(terminal.console())
    if given.json:
        given.json.write_text(report.to_json(), encoding="utf-8")
    if given.plot:
        report.plot(given.plot)


def budgets(text: str) -> list[int]:
    """`6000,3000` as numbers, for argparse."""
    return [int(part) for part in text.split(",")]


def systems(given: argparse.Namespace, embedder: Any) -> Sequence[Any]:
    """
    Ours first, then the baselines that `--systems` names.

    Raises:
        PolicyError: one of them is not known.
    """
    from proxy.evaluation.baselines.known import BASELINES
    from proxy.evaluation.palimpsest import Palimpsest

    known = {Palimpsest.name: Palimpsest, **BASELINES}
    names = given.systems.split(",") if given.systems else list(known)
    for name in names:
        if name not in known:
            raise PolicyError(f"--systems {name}: is not known; there are {', '.join(known)}")
    return [make(embedder) for name, make in known.items() if name in names or make is Palimpsest]


def _module(name: str) -> Any:
    return import_module(f"proxy.evaluation.bench_{name}")


def _shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help="a .jsonl(.gz) file, or a folder with one")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="questions of each conversation (0: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them: .svg or .png")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of everything random ({SEED})")
