"""A table whose lines are printed as they come."""

from __future__ import annotations

import sys
from collections.abc import Sequence


class Table:
    """
    Args:
        columns: their titles, each at most as wide as its values are shown.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._widths = [max(len(title), 8) for title in columns]
        self.line(columns)

    def line(self, values: Sequence[object]) -> None:
        """Print one line."""
        shown = (str(value).rjust(width) for value, width in zip(values, self._widths, strict=True))
        sys.stdout.write("  ".join(shown) + "\n")
        sys.stdout.flush()


def note(text: str) -> None:
    """Print a line beside the table."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
