"""
The confirmation of what cannot be undone: `--yes`, or the word yes typed at a terminal.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from palimpsest.domain.errors import PolicyError


def yes_flag(parser: argparse.ArgumentParser) -> None:
    """The option that confirms beforehand."""
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def is_confirmed(given: argparse.Namespace, command: str, question: str) -> bool:
    """
    Whether the operator confirms, with --yes or when asked. The caller first shows what will be removed.

    Args:
        command: its name, for the error.
        question: ends in what the word yes does.

    Raises:
        PolicyError: there is neither `--yes` nor a terminal.
    """
    if given.yes:
        return True
    if not sys.stdin.isatty():
        raise PolicyError(f"{command}: cannot ask for confirmation without a terminal; add --yes")
    return Console(stderr=True, markup=False, highlight=False).input(question).strip().lower() == "yes"
