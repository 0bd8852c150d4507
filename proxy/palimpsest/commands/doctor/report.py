"""
The report of an examination, as lines for people or as one JSON document.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from palimpsest.commands.doctor.finding import Finding, State, is_fine
from palimpsest.console.terminal import safe

STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "bold red"}


def table(findings: Sequence[Finding]) -> RenderableType:
    """A line for each check, with the advice below it."""
    lines = Table.grid(padding=(0, 2))
    for finding in findings:
        lines.add_row(Text(finding.state, STYLES[finding.state]), safe(finding.check), safe(finding.found))
        if finding.advice:
            lines.add_row("", "", safe(f"-> {finding.advice}"))
    return lines


def document(findings: Sequence[Finding]) -> str:
    """`{"fine": ..., "checks": [{"check", "state", "found", "advice"}]}`."""
    report = {"fine": is_fine(findings), "checks": list(findings)}
    return orjson.dumps(report, option=orjson.OPT_INDENT_2).decode()
