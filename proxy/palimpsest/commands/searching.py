"""`palimpsest model`, `index`, `search` and `explain`: the embedding model, the index, and what recall would find."""

from __future__ import annotations

import argparse
import json
import os

from palimpsest.commands.open import path_of
from palimpsest.commands.own_address import address
from palimpsest.commands.probe import RUNNING, as_running, look
from palimpsest.console import terminal
from palimpsest.console.arguments import (
    DONE,
    Command,
    ask_models_flag,
    model_flag,
    policy_flags,
    policy_of,
    positive,
    quiet_policy,
)
from palimpsest.settings.embedding_models import embedding_models

RESULTS = 20  # a screenful


def add_commands(command: Command) -> None:
    model = command("model", _model, "Manage the embedding model.")
    model.add_argument(
        "action",
        choices=["install", "list"],
        help="install: download the model if it is missing; list: list all models",
    )
    policy_flags(model)
    model_flag(model)

    index = command("index", _index, "Embed all archived passages that have no vector yet.")
    index.add_argument(
        "--all", action="store_true", help="first delete all data derived from the journal, and derive it again"
    )
    policy_flags(index)
    model_flag(index)

    search = command("search", _search, "Search the archive as recall would.")
    search.add_argument("query", nargs="+", type=not_blank, metavar="QUERY", help="words or a question")
    search.add_argument(
        "--conversation", default="", metavar="ID", help="search only this conversation (x-palimpsest-conversation)"
    )
    search.add_argument(
        "--tenant", default="", metavar="NAME", help="search only this tenant; required if there are many"
    )
    search.add_argument("--limit", type=positive, default=RESULTS, metavar="N", help=f"number of results ({RESULTS})")
    search.add_argument("--json", action="store_true", help="as JSON, for programs")
    ask_models_flag(search)
    policy_flags(search)
    model_flag(search)

    explain = command("explain", _explain, "Show what was decided for a request, and why.")
    explain.add_argument(
        "named",
        nargs="?",
        metavar="TURN|CONVERSATION|REQUEST",
        help="x-palimpsest-turn, -conversation or -request of an answer, or CONVERSATION/N (the newest turn)",
    )
    explain.add_argument(
        "number",
        nargs="?",
        type=int,
        metavar="N",
        help="number of the turn in the conversation, from 1; the default is the newest",
    )
    policy_flags(explain)


def not_blank(text: str) -> str:
    """Text that holds more than white space, given as an argument."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be blank")
    return text


def _model(given: argparse.Namespace) -> int:
    from palimpsest.memory.embedding import model

    policy = policy_of(given)
    if given.action == "list":
        terminal.console().print(terminal.models(embedding_models().values(), model.chosen_model(policy.model)))
        return DONE
    with terminal.console(is_aside=True).status("looking for the embedding model") as status:
        folder = model.install(policy.model, status.update)
    terminal.console().print(terminal.safe(f"embedding model {model.chosen_model(policy.model).name}: {folder}"))
    return DONE


def _index(given: argparse.Namespace) -> int:
    from palimpsest.console import offline

    with terminal.console(is_aside=True).status("opening the archive") as status:

        def report(waiting: int) -> None:
            status.update(f"{waiting:,} passages to go")

        offline.run(quiet_policy(given), lambda archive: archive.index(given.all, report))
    terminal.console().print("everything is indexed")
    return DONE


def _search(given: argparse.Namespace) -> int:
    from palimpsest.console import offline
    from palimpsest.features.registry import ASSISTANCE

    searched = offline.run(
        quiet_policy(given),
        lambda archive: archive.search(" ".join(given.query), given.tenant, given.conversation, given.limit),
        assistance=ASSISTANCE,
        asks_models=given.ask_models,
        keeps_to_secret=False,
    )
    out = terminal.console()
    if given.json:
        out.print(
            json.dumps({name: one.as_json() for name, one in searched.items()}, ensure_ascii=False), soft_wrap=True
        )
        return DONE
    for tenant, result in searched.items():
        if len(searched) > 1:
            out.print(terminal.safe(f"tenant {tenant}"))
        for part in terminal.search_results(result.recalled, result.behind):
            out.print(part)
    return DONE


def _explain(given: argparse.Namespace) -> int:
    from palimpsest.console import offline

    policy = quiet_policy(given)
    explained = offline.run(policy, lambda archive: archive.explain(given.named, given.number), keeps_to_secret=False)
    is_shown = policy.page.enabled and look(as_running(policy, os.environ)) in RUNNING
    page = address(policy.listen) + path_of(explained.turn["key"]) if is_shown else ""
    out = terminal.console()
    for part in terminal.explanation(explained.turn, explained.texts, page):
        out.print(part)
    return DONE
