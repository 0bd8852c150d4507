"""The result of a check: its state, what was found, and what to do; and the report of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from palimpsest.console.terminal import safe
from palimpsest.domain.errors import PalimpsestError


class State(StrEnum):
    """Fine; works, but something should be done; does not work."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. It never contains a message or a credential."""

    check: str
    state: State
    found: str
    advice: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check, State.OK, found)


def warning(check: str, found: str, advice: str) -> Finding:
    return Finding(check, State.WARNING, found, advice)


def failed(check: str, found: str, advice: str = "") -> Finding:
    return Finding(check, State.FAILED, found, advice)


def refusal(check: str, error: PalimpsestError | str) -> Finding:
    """The finding of a failed check, made of an error, whose remedy follows a semicolon."""
    found, _, advice = str(error).partition("; ")
    return failed(check, found, advice)


def is_fine(findings: Iterable[Finding]) -> bool:
    """Whether no check failed, so that the proxy can work."""
    return all(finding.state is not State.FAILED for finding in findings)


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
