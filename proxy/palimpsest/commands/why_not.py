"""`palimpsest why-not`: where a statement got lost on its way from the archive into a request."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from palimpsest.commands.searching import not_blank
from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, ask_models_flag, model_flag, policy_flags, quiet_policy
from palimpsest.core.recall import gaps
from palimpsest.core.recall.trail import Trace, as_json, last_stage, stages
from palimpsest.domain import Json

if TYPE_CHECKING:
    from palimpsest.console.offline import Commands

MARKS = {True: "yes", False: "no", None: ""}


def add_commands(command: Command) -> None:
    parser = command("why-not", _why_not, "Show at which stage a statement was lost on its way into a request.")
    parser.add_argument(
        "conversation",
        nargs="?",
        metavar="CONVERSATION",
        help="x-palimpsest-conversation of an answer; default: newest",
    )
    parser.add_argument(
        "statement", nargs="+", type=not_blank, metavar="TEXT", help="the statement, or a question that it answers"
    )
    parser.add_argument(
        "--turn", metavar="ID", help="x-palimpsest-turn of the request, or its number; the default is the newest"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    ask_models_flag(parser)
    policy_flags(parser)
    model_flag(parser)


def _why_not(given: argparse.Namespace) -> int:
    from palimpsest.console import offline
    from palimpsest.features.registry import ASSISTANCE
    from palimpsest.store.operation.probes import live_estimate

    async def trail(archive: Commands) -> tuple[Trace, Json | None]:
        given.conversation = given.conversation or await archive.newest_conversation()
        named = f"{given.conversation}/{given.turn}" if (given.turn or "").isdecimal() else given.turn
        trace = await archive.trail(" ".join(given.statement), given.conversation, named)
        return trace, gaps.as_json(await archive.database.ask(live_estimate))

    trace, live = offline.run(quiet_policy(given), trail, assistance=ASSISTANCE, asks_models=given.ask_models)
    passed = stages(trace)
    end = last_stage(passed)
    out = terminal.console()
    if given.json:
        out.print(json.dumps(as_json(trace) | {"gaps": live}, ensure_ascii=False), soft_wrap=True)
    else:
        out.print(f"turn {trace.turn} of {trace.turns} of {given.conversation}")
        table = Table("stage", "passed", "found", box=None, padding=(0, 2, 0, 0))
        for stage in passed:
            table.add_row(stage.name, MARKS[stage.passed], terminal.safe(stage.detail))
        out.print(table)
        out.print()
        out.print(Text("it was said" if end is None else f"lost at: {end.name}", style="bold"))
        if end is not None and end.advice:
            out.print(terminal.safe(f"to change it: {end.advice}"))
        if live is not None:
            out.print(f"in general: {terminal.gaps(live)}")
    return DONE if end is None else FAILED
