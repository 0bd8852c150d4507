"""`palimpsest gaps`: how much memory loses in writing and in recall, by questions that it asks itself now."""

from __future__ import annotations

import argparse
import json
from random import Random
from typing import TYPE_CHECKING

from rich.table import Table

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, ask_models_flag, model_flag, policy_flags, quiet_policy
from palimpsest.core.recall.gaps import LOSSES, GapEstimate, ProbeStage, as_json

if TYPE_CHECKING:
    from palimpsest.console.offline import Commands

PROBES = 100  # made in some seconds; the interval is then 10 points to either side at most


def add_commands(command: Command) -> None:
    parser = command(
        "gaps", _gaps, "Measure how much memory loses in writing and in recall, by questions made from the archive."
    )
    parser.add_argument("--probes", type=_count, default=PROBES, metavar="N", help=f"number of questions ({PROBES})")
    parser.add_argument("--seed", type=int, help="seed of the choice of questions; the default differs each time")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    ask_models_flag(parser)
    policy_flags(parser)
    model_flag(parser)


def _gaps(given: argparse.Namespace) -> int:
    from palimpsest.console import offline
    from palimpsest.features.gaps.probing import Prober
    from palimpsest.features.registry import ASSISTANCE

    async def ask(archive: Commands) -> tuple[GapEstimate, bool]:
        has_model = await archive.embedder.warm()  # else recall is by words alone
        await archive.recall()
        prober = Prober.of(archive.archive, archive.embedder, Random(given.seed), archive.assist)
        return await prober.probe_now(given.probes), has_model

    found, has_model = offline.run(quiet_policy(given), ask, assistance=ASSISTANCE, asks_models=given.ask_models)
    out = terminal.console()
    shown = as_json(found)
    if given.json:
        out.print(json.dumps(shown), soft_wrap=True)
    elif shown is None:
        out.print("nothing stored can be asked about")
    if given.json or shown is None:
        return DONE if shown else FAILED
    table = Table("lost", "probes", "share", "why", "to change it", box=None, padding=(0, 2, 0, 0))
    for stage, count in found.stages.items():
        if count and stage is not ProbeStage.FOUND:
            loss = LOSSES[stage]
            table.add_row(f"{loss.gap}: {stage}", str(count), f"{count / found.probes:.0%}", loss.meaning, loss.advice)
    if table.row_count:
        out.print(table)
        out.print()
    out.print(terminal.gaps(shown))
    if not has_model:
        out.print(
            "the embedding model is missing: these figures are of recall by words alone; run palimpsest model install"
        )
    return DONE


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 1")
    return int(text)
