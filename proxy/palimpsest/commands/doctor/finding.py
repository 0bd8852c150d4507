"""
The result of a check: its state, what was found, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from palimpsest.domain.errors import PalimpsestError


class State(StrEnum):
    """Fine; works, but something should be done; does not work."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


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
    """A failed check from one of our errors; most name the remedy after a semicolon."""
    found, _, advice = str(error).partition("; ")
    return failed(check, found, advice)


def is_fine(findings: Iterable[Finding]) -> bool:
    """Whether the proxy can work."""
    return all(finding.state is not State.FAILED for finding in findings)
