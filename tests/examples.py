"""How many examples a property is tried with where the usual number is not the right one."""

from __future__ import annotations

from hypothesis import settings

QUICK = "quick"
QUICK_EXAMPLES = 20  # of each property in a quick run
USUAL_EXAMPLES = 100  # in all others; what hypothesis has for its default


def examples(count: int) -> int:
    """The number of examples to try: `count`, and in a quick run the same share of it as of the usual number."""
    return max(1, count * settings().max_examples // USUAL_EXAMPLES)
