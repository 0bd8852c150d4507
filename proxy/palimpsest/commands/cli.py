"""
The command line: `palimpsest COMMAND`, its arguments, and the function that runs each command.

Exit status: 0 done, 1 it could not be done, 2 a setting or an argument is wrong.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from palimpsest import __version__
from palimpsest.console.arguments import (
    DONE,
    FAILED,
    WRONG,
    bare_policy_of,
    listen_flags,
    model_flag,
    policy_flags,
    policy_of,
    server_flags,
    source_of,
)
from palimpsest.domain.errors import PalimpsestError, PolicyError
from palimpsest.features.registry import COMMANDS
from palimpsest.settings import load

NO_BENCHMARKS = "the benchmarks are not installed with the proxy; in a checkout of it: pip install -e '.[bench]'"
HELP_COLUMN = 20  # behind the longest name of a command

MODULES = {  # by the commands that they add, in the order of the help; only that of the command that is run is imported
    "commands.unwrap": ("unwrap",),
    "commands.service": ("service",),
    "commands.health": ("doctor", "healthcheck", "check-config", "settings", "openapi"),
    "commands.searching": ("model", "index", "search", "explain"),
    "commands.open": ("open",),
    "commands.why_not": ("why-not",),
    "commands.check": ("check",),
    "commands.key": ("key",),
    "commands.switch": ("disable", "enable"),
    "commands.hook": ("hook",),
    "commands.forgetting": ("forget", "retire", "unretire", "receipt"),
    "commands.retention": ("retention", "vacuum"),
    "commands.stats": ("stats",),
    **COMMANDS,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Errors go to standard error, without a traceback."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        _parser(())[0].print_help(sys.stderr)
        return WRONG
    try:
        given = parse(arguments)
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
    finally:
        gc.freeze()  # else Python looks through all that was imported for garbage as it ends, a quarter of a short run


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """
    The arguments of a command, one at least, with the function that runs it as `handler`.

    Raises:
        PolicyError: the benchmarks are asked for, and not installed.
        SystemExit: one of them is wrong, and the hint is printed; or help was asked for.
    """
    parser, commands = _parser(arguments, [name for name, added in MODULES.items() if arguments[0] in added])
    if arguments[0] not in (*commands, "--version"):
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
    return [*_parser(())[1]]


def _nearest(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _parser(
    arguments: Sequence[str], modules: Collection[str] = MODULES
) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """The parser of a command line, and those of its commands by name, for the commands of these modules."""
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
    server_flags(serve)
    model_flag(serve)
    serve.add_argument("--handed-over", action="store_true", help=argparse.SUPPRESS)  # as `wrap` starts it
    serve.add_argument("--workers", type=int, help="number of processes (1)")
    serve.add_argument(
        "--forward-anyway",
        action="store_true",
        help="if memory cannot start because of a wrong setting or data folder, pass requests without it",
    )
    serve.add_argument("--demo", action="store_true", help="show the demonstration instead")

    wrapped = command("wrap", _wrap, "Run a command with memory: palimpsest wrap -- COMMAND ...")
    wrapped.usage = (
        "palimpsest wrap [--config FILE] [--data DIR] [--host HOST] [--port PORT] [--upstream URL] [--model NAME] "
        "[--scope NAME] [--server URL [--key-file FILE | --key KEY] [--insecure]] -- COMMAND ..."
    )
    wrapped.epilog = (
        "Uses the proxy that is running at the configured address, or starts one that ends with the command. "
        "OPENAI_BASE_URL and ANTHROPIC_BASE_URL, if they are set, name the provider. Exit status: the command's."
    )
    policy_flags(wrapped)
    listen_flags(wrapped)
    server_flags(wrapped)
    model_flag(wrapped)
    about = "project of its requests, which recall what was said in it and nothing else; '.' names the repository"
    wrapped.add_argument("--scope", metavar="NAME", help=about)
    wrapped.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="the command, after --")

    demo = command("demo", _demo, "Demonstrate the proxy in half a minute, without a key or a network.")
    demo.add_argument("--web", action="store_true", help="show it on the proxy's page, until Ctrl-C")
    for module in MODULES:
        if module in modules:
            import_module(f"palimpsest.{module}").add_commands(command)

    bench = command("bench", _bench, "Run a benchmark of memory on known conversations.")
    if arguments[:1] == ["bench"]:  # nobody else waits for what it is made of
        if find_spec("palimpsest.evaluation") is None:
            raise PolicyError(f"bench: {NO_BENCHMARKS}")
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

    if given.key:
        os.environ[load.SERVER_KEY_ENV] = given.key
    if given.handed_over:
        serve(load.handed_over(os.environ))
    elif given.forward_anyway:
        from palimpsest.commands.serving import policy_anyway

        with policy_anyway(partial(policy_of, given), partial(bare_policy_of, given), source_of(given), os.environ) as (
            policy,
            source,
        ):
            serve(policy, source)
    else:
        serve(policy_of(given), source_of(given))
    return DONE


def _wrap(given: argparse.Namespace) -> int:
    from palimpsest.commands.wrap import repository, wrap
    from palimpsest.core.caller.client_table import ID_CHARS

    words = given.command[given.command[:1] == ["--"] :]
    if not words:
        raise PolicyError("wrap: no command given; use palimpsest wrap -- COMMAND ...")
    own = {load.SERVER_KEY_ENV: given.key} if given.key else {}
    scope = repository() if given.scope == "." else given.scope or ""
    if given.scope is not None and not (scope.strip() and scope.isprintable() and len(scope) <= ID_CHARS):
        nameless = ", and this folder has none" if given.scope == "." else ""
        raise PolicyError(f"wrap: --scope must be a name of at most {ID_CHARS} characters{nameless}")
    return wrap(policy_of(given), words, os.environ | own, scope)


def _demo(given: argparse.Namespace) -> int:
    from palimpsest.commands import demo

    return demo.main(in_browser="web" in given and given.web)


def _bench(given: argparse.Namespace) -> int:
    from palimpsest.evaluation import command

    command.run(given)
    return DONE


def _version(_given: argparse.Namespace) -> int:
    sys.stdout.write(f"{__version__}\n")
    return DONE
