"""
The command line: `palimpsest COMMAND`, its arguments, and the function that runs each command.

Exit status: 0 done, 1 it could not be done, 2 a setting or an argument is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from rich.console import Console

from palimpsest import __version__, terminal
from palimpsest.commands import (
    backup,
    check,
    consolidate,
    facts,
    forgetting,
    gaps,
    hook,
    key,
    mcp,
    openapi,
    retention,
    service,
    stats,
    switch,
    transfer,
    unwrap,
    why_not,
)
from palimpsest.commands.arguments import (
    DONE,
    FAILED,
    WRONG,
    bare_policy_of,
    listen_flags,
    model_flag,
    policy_flags,
    policy_of,
    quiet_policy,
    source_of,
)
from palimpsest.errors import PalimpsestError, PolicyError
from palimpsest.settings import load
from palimpsest.settings.policy import Policy

RESULTS = 20  # a screenful
HELP_COLUMN = 20  # behind the longest name of a command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Errors go to standard error, without a traceback."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        _parser(())[0].print_help(sys.stderr)
        return WRONG
    given = parse(arguments)
    try:
        status: int = given.handler(given)
        return status
    except PolicyError as error:
        sys.stderr.write(f"palimpsest: {error}\n")
        return WRONG
    except PalimpsestError as error:
        sys.stderr.write(f"palimpsest: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return FAILED


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """
    The arguments of a command, one at least, with the function that runs it as `handler`.

    Raises:
        SystemExit: one of them is wrong, and the hint is printed; or help was asked for.
    """
    parser, commands = _parser(arguments)
    if not arguments[0].startswith("-") and arguments[0] not in commands:
        parser.error(f"unknown command {arguments[0]}{_nearest(arguments[0], commands)}")
    given, unknown = parser.parse_known_args(arguments)
    if unknown:
        command = commands.get(arguments[0], parser)
        hint = _nearest(unknown[0].partition("=")[0], re.findall(r"--[\w-]+", command.format_help()))
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return given


def command_names() -> list[str]:
    """The names of all commands."""
    return [*_parser(())[1]]


def _nearest(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _parser(arguments: Sequence[str]) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """The parser of a command line, and those of its commands by name."""
    parser = argparse.ArgumentParser(
        "palimpsest",
        description="A transparent proxy that gives any LLM application memory.",
        epilog="Start with: palimpsest demo. Then: palimpsest wrap -- COMMAND. Details: palimpsest COMMAND --help",
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: object, about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about, formatter_class=_Formatter)
        added.set_defaults(handler=run)
        return added

    serve = command("serve", _serve, "Start the proxy.")
    policy_flags(serve)
    listen_flags(serve)
    model_flag(serve)
    serve.add_argument("--handed-over", action="store_true", help=argparse.SUPPRESS)  # as `wrap` starts it
    serve.add_argument("--workers", type=int, help="processes (1)")
    serve.add_argument(
        "--forward-anyway",
        action="store_true",
        help="where memory cannot start, for a wrong setting or data folder, pass requests without it",
    )
    serve.add_argument("--demo", action="store_true", help="show the demonstration instead")

    wrapped = command("wrap", _wrap, "Run a command with memory: palimpsest wrap -- COMMAND ...")
    wrapped.usage = (
        "palimpsest wrap [--config FILE] [--data DIR] [--host HOST] [--port PORT] [--upstream URL] [--model NAME] "
        "-- COMMAND ..."
    )
    wrapped.epilog = (
        "Uses the proxy that is running at the configured address, or starts one that ends with the command. "
        "OPENAI_BASE_URL and ANTHROPIC_BASE_URL, if they are set, name the provider. Exit status: the command's."
    )
    policy_flags(wrapped)
    listen_flags(wrapped)
    model_flag(wrapped)
    wrapped.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="the command, after --")

    unwrap.add_command(command)
    service.add_command(command)

    command("demo", _demo, "Demonstrate the proxy in half a minute, without a key or a network.")

    doctor = command("doctor", _doctor, "Check everything that the proxy needs, and say how to fix it.")
    doctor.add_argument("--json", action="store_true", help="as JSON, for programs")
    policy_flags(doctor)
    listen_flags(doctor)
    model_flag(doctor)

    healthcheck = command("healthcheck", _healthcheck, "Ask the proxy at the configured address whether it is alive.")
    healthcheck.add_argument("--ready", action="store_true", help="whether it is ready, store included")
    policy_flags(healthcheck)
    listen_flags(healthcheck)

    check_config = command(
        "check-config", _check_config, "Check a configuration and its data folder, and list what it changes."
    )
    check_config.add_argument(
        "config", nargs="*", type=Path, metavar="FILE", help="YAML file, or the name of a preset; later ones win"
    )

    settings = command("settings", _settings, "Print every setting with its default, as a file to start from.")
    settings.add_argument("--markdown", action="store_true", help="as tables, with what is allowed")

    openapi.add_command(command)

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
        "--all",
        action="store_true",
        help="first delete everything that is derived from the journal, and derive it again",
    )
    policy_flags(index)
    model_flag(index)

    search = command("search", _search, "Search the archive as recall would.")
    search.add_argument("query", nargs="+", metavar="QUERY", help="words or a question")
    search.add_argument(
        "--conversation", default="", metavar="ID", help="search only this conversation (x-palimpsest-conversation)"
    )
    search.add_argument("--tenant", default="", metavar="NAME", help="tenant to search; required if several are stored")
    search.add_argument("--limit", type=int, default=RESULTS, metavar="N", help=f"how many ({RESULTS})")
    policy_flags(search)
    model_flag(search)

    explain = command("explain", _explain, "Show what was decided for a request, and why.")
    explain.add_argument(
        "named",
        nargs="?",
        metavar="TURN|CONVERSATION|REQUEST",
        help="x-palimpsest-turn, -conversation or -request of an answer, or CONVERSATION/N; else the newest turn",
    )
    explain.add_argument(
        "number",
        nargs="?",
        type=int,
        metavar="N",
        help="number of the turn in the conversation, from 1; the default is its newest",
    )
    policy_flags(explain)

    why_not.add_command(command)
    gaps.add_command(command)
    transfer.add_commands(command)
    backup.add_commands(command)
    check.add_command(command)
    mcp.add_command(command)
    key.add_command(command)
    facts.add_command(command)
    switch.add_commands(command)
    hook.add_command(command)

    forgetting.add_commands(command)
    retention.add_commands(command)
    consolidate.add_command(command)

    stats.add_command(command)

    bench = command("bench", _bench, "Run a benchmark of memory on known conversations.")
    if arguments[:1] == ["bench"]:  # nobody else waits for what it is made of
        from palimpsest.evaluation.command import add_arguments

        add_arguments(bench, "".join(arguments[1:2]))

    command("version", _version, "Print the version.")
    return parser, commands.choices


class _Formatter(argparse.HelpFormatter):
    """A help formatter that puts each command on one line, if the terminal is wide enough."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=HELP_COLUMN)
        self._action_max_length = HELP_COLUMN  # argparse forgets that commands are indented twice


def _serve(given: argparse.Namespace) -> int:
    if given.demo:
        return _demo(given)
    from palimpsest.commands.serving import serve  # half of what the proxy is made of: only who serves waits for it

    if given.handed_over:
        serve(load.handed_over(os.environ))
    elif given.forward_anyway:
        from palimpsest.commands.forwarding import policy_anyway

        with policy_anyway(partial(policy_of, given), partial(bare_policy_of, given), source_of(given), os.environ) as (
            policy,
            source,
        ):
            serve(policy, source)
    else:
        serve(policy_of(given), source_of(given))
    return DONE


def _wrap(given: argparse.Namespace) -> int:
    from palimpsest.commands.wrap import wrap

    words = given.command[given.command[:1] == ["--"] :]
    if not words:
        raise PolicyError("wrap: no command given; use palimpsest wrap -- COMMAND ...")
    return wrap(policy_of(given), words, os.environ)


def _demo(_given: argparse.Namespace) -> int:
    from palimpsest.commands import demo

    return demo.main()


def _doctor(given: argparse.Namespace) -> int:
    from palimpsest.commands.doctor import report
    from palimpsest.commands.doctor.examination import examine
    from palimpsest.commands.doctor.finding import is_fine, refusal

    try:
        policy = quiet_policy(given)
    except PolicyError as error:
        findings = [refusal("settings", mistake) for mistake in str(error).splitlines()]
    else:
        findings = asyncio.run(examine(policy, os.environ, time.time))
    out = terminal.console()
    out.print(report.document(findings) if given.json else report.table(findings), soft_wrap=given.json)
    return DONE if is_fine(findings) else FAILED


def _healthcheck(given: argparse.Namespace) -> int:
    from palimpsest.commands.probe import refusal

    if why := refusal(policy_of(given).listen, "/readyz" if given.ready else "/livez"):
        sys.stderr.write(f"palimpsest: {why}\n")
        return FAILED
    return DONE


def _check_config(given: argparse.Namespace) -> int:
    from palimpsest.commands.doctor import disk
    from palimpsest.commands.doctor.finding import State

    policy = policy_of(given)
    folder = disk.folder(policy.data)
    if folder.state is State.FAILED:
        raise PolicyError(f"data: {folder.found.removeprefix('data: ')}; {folder.advice}".removesuffix("; "))
    out = terminal.console()
    if folder.state is State.WARNING:
        out.print(terminal.safe(f"{folder.found}: {folder.advice}"))
    named = ", ".join(map(str, load.files_named(given.config, os.environ)))
    out.print(f"{named or 'defaults'}: fine")
    if changes := load.changes(policy):
        out.print(terminal.fields(changes))
    return DONE


def _settings(given: argparse.Namespace) -> int:
    from palimpsest.settings import reference

    sys.stdout.write(reference.as_markdown() if given.markdown else reference.as_yaml())
    return DONE


def _model(given: argparse.Namespace) -> int:
    from palimpsest.embedding import model
    from palimpsest.settings.embedding_models import embedding_models

    policy = policy_of(given)
    if given.action == "list":
        terminal.console().print(terminal.models(embedding_models().values(), model.chosen(policy.model)))
        return DONE
    out = Console(stderr=True, markup=False, highlight=False)
    with out.status("looking for the embedding model") as status:
        folder = model.install(policy.model, status.update)
    terminal.console().print(terminal.safe(f"embedding model {model.chosen(policy.model).name}: {folder}"))
    return DONE


def _index(given: argparse.Namespace) -> int:
    from palimpsest.commands import offline

    async def run(policy: Policy, report: Callable[[int], None]) -> None:
        async with offline.opened(policy) as archive:
            await archive.index(given.all, report)

    with Console(stderr=True).status("opening the archive") as status:
        asyncio.run(run(quiet_policy(given), lambda waiting: status.update(f"{waiting:,} passages to go")))
    terminal.console().print("everything is indexed")
    return DONE


def _search(given: argparse.Namespace) -> int:
    from palimpsest.commands import offline

    async def run(policy: Policy) -> offline.SearchResult:
        async with offline.opened(policy) as archive:
            return await archive.search(" ".join(given.query), given.tenant, given.conversation, given.limit)

    searched = asyncio.run(run(quiet_policy(given)))
    out = terminal.console()
    for part in terminal.found(searched.recalled, searched.behind):
        out.print(part)
    return DONE


def _explain(given: argparse.Namespace) -> int:
    from palimpsest.commands import offline

    async def run(policy: Policy) -> offline.Explanation:
        async with offline.opened(policy) as archive:
            return await archive.explain(given.named, given.number)

    explained = asyncio.run(run(quiet_policy(given)))
    out = terminal.console()
    for part in terminal.explanation(explained.turn, explained.texts):
        out.print(part)
    return DONE


def _bench(given: argparse.Namespace) -> int:
    from palimpsest.evaluation import command

    command.run(given)
    return DONE


def _version(_given: argparse.Namespace) -> int:
    terminal.console().print(__version__)
    return DONE
