"""What commands have in common: options, the policy that follows from them, exit statuses."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from palimpsest.domain.errors import PolicyError
from palimpsest.settings import load, source
from palimpsest.settings.policy import Policy
from palimpsest.settings.source import Source

DONE, FAILED, WRONG = 0, 1, 2
"""Exit statuses: done; it could not be done; a setting or an argument is wrong."""

PROVIDER_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""Environment variables whose values name the tenants of their owner's requests."""

Command = Callable[[str, object, str], argparse.ArgumentParser]
"""Adds a command: its name, the function that runs it, and what it does in one sentence."""


def policy_flags(parser: argparse.ArgumentParser) -> None:
    """Options that say which configuration and which data folder."""
    parser.add_argument(
        "--config",
        type=Path,
        action="append",
        metavar="FILE",
        help="YAML file, or the name of a preset (personal); may be given several times, and later ones win",
    )
    parser.add_argument("--data", metavar="DIR", help="folder that holds the database and the secret")


def listen_flags(parser: argparse.ArgumentParser) -> None:
    """Options that say where the proxy listens and what it forwards to."""
    parser.add_argument("--host", help="address of the proxy (127.0.0.1)")
    parser.add_argument("--port", type=int, help="its TCP port (8484); 0 takes a free one")
    parser.add_argument(
        "--upstream", metavar="URL", help="base URL of the provider (default: OpenAI's and Anthropic's)"
    )


def server_flags(parser: argparse.ArgumentParser) -> None:
    """Options that say which machine keeps the memory."""
    parser.add_argument("--server", metavar="URL", help="keep the memory on another machine's Palimpsest")
    parser.add_argument("--key-file", metavar="FILE", help="file with the key for it (or PALIMPSEST_SERVER_KEY)")
    parser.add_argument("--key", metavar="KEY", help="the key itself, which other users of this machine can see in ps")
    parser.add_argument(
        "--insecure", action="store_true", default=None, help="allow http:// to another machine, readable in between"
    )


def action_of(parser: argparse.ArgumentParser, *, is_required: bool) -> Command:
    """A function that adds actions to a command; each has the options of policy, and --json."""
    actions = parser.add_subparsers(required=is_required, metavar="ACTION")

    def action(name: str, run: object, about: str) -> argparse.ArgumentParser:
        """Add an action with the flags that every action has."""
        added = actions.add_parser(name, help=about, description=about)
        added.set_defaults(handler=run)
        added.add_argument("--json", action="store_true", help="as JSON, for programs")
        policy_flags(added)
        return added

    return action


def model_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="embedding model, as named by palimpsest model list")


def ask_models_flag(parser: argparse.ArgumentParser) -> None:
    """The option that lets a command ask language models as requests do."""
    parser.add_argument(
        "--ask-models",
        action="store_true",
        help="also ask the language models that the settings name for recall, as requests do; it may cost",
    )


def positive(text: str) -> int:
    """A number of at least one, given as an argument."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not allowed; allowed: 1 or more")
    return number


def yes_flag(parser: argparse.ArgumentParser) -> None:
    """The option that confirms beforehand; see `terminal.is_confirmed`."""
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def policy_of(given: argparse.Namespace) -> Policy:
    """The policy of files, environment and options together."""
    return load.load(given.config, os.environ, _flags(given))


def bare_policy_of(given: argparse.Namespace) -> Policy:
    """The policy without memory, and without the settings that only memory needs."""
    return load.load_bare(given.config, os.environ, _flags(given))


def source_of(given: argparse.Namespace) -> Source:
    """The source that the policy of these arguments can be read from anew."""
    return source.source_of(given.config, os.environ, _flags(given))


def _flags(given: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(given, name, None) for name in (*load.SHORT, load.UPSTREAM)}


def refuse_server(policy: Policy, command: str) -> None:
    """Refuse (`PolicyError`) a command that reads the files of a database where `store.url` names a server."""
    if policy.store.url:
        raise PolicyError(f"{command}: the database is a server's (store.url): use the server's own tools")


def quiet_policy(given: argparse.Namespace) -> Policy:
    """The policy of a command that prints on the terminal: only warnings and errors are logged."""
    from palimpsest.telemetry import logs  # late: a third of the start of a command that logs nothing

    policy = policy_of(given)
    logs.configure(policy.log.model_copy(update={"level": "error"}))
    return policy
