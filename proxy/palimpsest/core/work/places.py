"""Where work goes on: the branch that is checked out, and the addresses and ports on which something listens."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_ADDRESSES = 4  # told: older ones are seldom of use
_BRANCH = re.compile(
    r"^On branch ([\w./-]+)|^## ([\w./-]+?)\.\.\.|^Switched to (?:a new )?branch '([^'\n]+)'"
    r"|\bgit (?:checkout -b|switch -c) ([\w./-]+)",
    re.MULTILINE,
)
_ADDRESS = re.compile(
    r"\bhttps?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::\d{2,5})?(?:/[\w./-]*\w)?"
    r"|\b[Pp]ort(?: is| to| from|:)? ?=? ?\d{2,5}\b|\b(?:localhost|127\.0\.0\.1):\d{2,5}\b"
)


def branch(texts: Iterable[str]) -> str:
    """The branch that is checked out, "" where nothing tells it. `texts`: of calls and results, oldest first."""
    found = ""
    for text in texts:
        for match in _BRANCH.finditer(text):
            found = next(filter(None, match.groups()))
    return found


def addresses(texts: Iterable[str], visible: str) -> tuple[str, ...]:
    """
    Addresses and ports of this machine, the newest first, each once.

    Args:
        texts: of what was run and of what people said, oldest first.
        visible: what the model still sees: of it none is told again.
    """
    found: dict[str, None] = {}
    for text in texts:
        for match in _ADDRESS.finditer(text):
            found.pop(match[0], None)
            found[match[0]] = None
    told: list[str] = []
    for address in reversed(found):
        number = re.search(r"\d+$", address)
        is_told = any((number[0] if number else address) in other for other in told)
        if not is_told and (number[0] if number else address) not in visible:
            told.append(address)
    return tuple(told[:MOST_ADDRESSES])
