"""`python -m proxy` is the command `palimpsest`."""

import sys

from proxy.commands.cli import main

if __name__ == "__main__":  # workers import this file, too
    sys.exit(main())
