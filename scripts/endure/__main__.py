"""The command line of the endurance runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from scripts import endure
from scripts.endure import forget, kill, reload, rolling, server, soak

RUNS = (forget, kill, server, rolling, reload, soak)


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line names, or these words; 1 where something failed."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.endure",
        description=endure.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    named = parser.add_subparsers(required=True)
    for module in RUNS:
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        each = named.add_parser(name, help=(module.__doc__ or "").strip().partition("\n")[0])
        module.configure(each)
        each.set_defaults(run=module.run)
    arguments = parser.parse_args(words)
    passed: bool = arguments.run(arguments)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
