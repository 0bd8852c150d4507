"""`python -m palimpsest` is the command `palimpsest`."""

import sys

from palimpsest.commands.cli import main

if __name__ == "__main__":  # workers import this file, too
    sys.exit(main())
