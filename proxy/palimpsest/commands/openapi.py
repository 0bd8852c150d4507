"""
`palimpsest openapi`: the document of the admin API, for generators of clients and for reading.
"""

from __future__ import annotations

import argparse
import json
import sys

from palimpsest.console.arguments import DONE, Command


def add_commands(command: Command) -> None:
    """Add it to the command line."""
    command("openapi", _openapi, "Print the OpenAPI document of the API under /memory/v1.")


def _openapi(_given: argparse.Namespace) -> int:
    from palimpsest.edge.admin.openapi import document  # late: `--help` must not wait for it
    from palimpsest.edge.admin.routes import all_operations
    from palimpsest.features.registry import OPERATIONS

    sys.stdout.write(json.dumps(document(all_operations(OPERATIONS)), indent=2, ensure_ascii=False) + "\n")
    return DONE
