"""
Settings in structured text: `KEY=value` lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.domain import PROJECT_SUBJECT, FactCategory, FactProposal

CONFIDENCE = 0.95
MOST_SETTINGS = 40  # of one message; more of them are a dump of an environment
MOST_TEXT_CHARS = 20_000  # of a message that is read; what is longer is a log

_ASSIGNMENT = re.compile(
    r"^(?:export |set )?(?P<slot>[A-Z][A-Z0-9_]{2,60})="
    r"(?P<value>[^\s'\"$`{(<]\S{0,120}|\"[^\"\n$`]{1,120}\"|'[^'\n$`]{1,120}')$",
    re.MULTILINE,
)
_PASSING = re.compile(
    r"(?:^|_)(?:EXIT|STATUS|RC|RET|CODE|RESULT|PID|TIME|COUNT|PWD|OLDPWD|SHLVL|TERM|LINES|COLUMNS)$"
    r"|^(?:DIR|PATH|TMP|TEMP|HOME)$"
)
_HIDDEN = re.compile(r"\*\*\*|…|\.\.\.$|masked|redacted|withheld|<[a-z-]+>|^(?:your|my|changeme|xxx)", re.IGNORECASE)


def assigned(text: str) -> Iterator[FactProposal]:
    """The settings that a text assigns."""
    if len(text) > MOST_TEXT_CHARS or "=" not in text:
        return
    found = list(_ASSIGNMENT.finditer(text))
    if len(found) > MOST_SETTINGS:
        return
    for match in found:
        if not _PASSING.search(match["slot"]) and not _HIDDEN.search(match["value"]):
            value = match["value"].strip("\"'")
            yield FactProposal(
                *(PROJECT_SUBJECT, match["slot"], value, FactCategory.SETTING, *match.span()), True, CONFIDENCE
            )
