"""
Say of each folder of proxy/ what share of its branches was taken; the status is 1 where it is less than was asked for.

    coverage json -o - | scripts/branches.py PERCENT FOLDER...

`coverage report --fail-under` counts lines and branches together, so that many lines would hide missing branches.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def percent_taken(files: dict[str, Any], folder: str) -> float:
    """Of the branches of a folder's files; 100 where they have none."""
    of = [file["summary"] for name, file in files.items() if name.startswith(f"proxy/palimpsest/{folder}/")]
    there, taken = (sum(summary[name] for summary in of) for name in ("num_branches", "covered_branches"))
    return 100 * taken / there if there else 100.0


def main(least: str, *folders: str) -> int:
    """The exit status."""
    files = json.load(sys.stdin)["files"]
    percents = {folder: percent_taken(files, folder) for folder in folders}
    for folder, percent in percents.items():
        sys.stdout.write(
            f"proxy/palimpsest/{folder}: {percent:.1f} % of the branches are taken, {least} % are asked for\n"
        )
    return int(min(percents.values()) < float(least))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
