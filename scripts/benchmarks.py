#!/usr/bin/env python3
"""
The age of the tables in docs/benchmarks.md and docs/papers.md: whether each was measured on the code that is there.

    scripts/benchmarks.py          status 1 where a table is older than its code and does not say so
    scripts/benchmarks.py TABLE    after it was renewed, or after a change that moves no figure: note its digest

`docs/benchmarks.yaml` says which modules a table measures. The digest is of what they do: comments, docstrings, imports
and the places of files do not count. A table that takes hours says "Measured on an older build" until it is renewed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
SOURCE = "proxy/palimpsest"
NOTED = ROOT / "docs" / "benchmarks.yaml"
PUBLISHED = [ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "papers.md"]
DIGEST_CHARS = 12
OLDER = "Measured on an older build"  # below the heading of a table


def main(arguments: list[str]) -> int:
    """The command line. Returns its status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    given = parser.parse_args(arguments)
    noted = yaml.safe_load(NOTED.read_text("utf-8"))
    if unknown := [name for name in given.tables if name not in noted["tables"]]:
        sys.stderr.write(f"{unknown[0]}: is not in {NOTED.relative_to(ROOT)}\n")
        return 2
    for name in given.tables:
        note(name, digest_of(noted, name))
    if given.tables:
        return 0
    stale = [name for name, held in noted["tables"].items() if held.get("digest") != digest_of(noted, name)]
    published = "\n".join(page.read_text("utf-8") for page in PUBLISHED)
    stale = [name for name in stale if not says_older(published, name)]
    for name in stale:
        sys.stderr.write(
            f"{name}: its code has changed since it was measured. Run the command above the table, "
            f"write what it prints, and then scripts/benchmarks.py '{name}'; only the latter where the change moves no "
            f"figure; or say there: {OLDER}\n"
        )
    return 1 if stale else 0


def says_older(published: str, table: str) -> bool:
    """Whether the part of a document below a table's heading says that it is older than its code."""
    part = re.search(rf"^## {re.escape(table)}\n(.*?)(?=^## |\Z)", published, re.MULTILINE | re.DOTALL)
    return part is not None and OLDER in part[1]


def digest_of(noted: dict[str, Any], table: str, root: Path = ROOT) -> str:
    """
    What the modules of a table do, in short; another one as soon as one of them does something else.

    Args:
        noted: as in `docs/benchmarks.yaml`.
        root: of a checkout. A module that is not there counts as empty.
    """
    listed = [path for name in noted["tables"][table]["of"] for path in noted["parts"].get(name, [name])]
    files = {file for path in listed if path[0] != "-" for file in modules_of(root / SOURCE / path)}
    files -= {file for path in listed if path[0] == "-" for file in modules_of(root / SOURCE / path[1:])}
    does = sorted(repr(shape(ast.parse(file.read_text("utf-8")))) for file in files)
    return sha256("\n".join(does).encode()).hexdigest()[:DIGEST_CHARS]


def modules_of(path: Path) -> list[Path]:
    """A module, or all that a folder holds."""
    return sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []


def shape(node: Any) -> Any:
    """A syntax tree as nested tuples, without what says nothing of what it does."""
    if isinstance(node, list):
        return tuple(shape(one) for one in node if not _is_silent(one))
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, shape(value)) for name, value in ast.iter_fields(node) if value not in (None, []))
    return (type(node).__name__, *fields)


def _is_silent(node: Any) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def note(table: str, digest: str) -> None:
    """Write the digest of a table; its line stays where it is."""
    line = re.compile(rf"^(  {re.escape(table)}: \{{.*?)(, digest: \S+)?\}}$", re.MULTILINE)
    text, count = line.subn(rf'\g<1>, digest: "{digest}"}}', NOTED.read_text("utf-8"))
    if count != 1:
        raise SystemExit(f"{NOTED.relative_to(ROOT)}: {table} has to stand on one line")
    NOTED.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
