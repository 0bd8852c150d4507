"""
Pages of a list: how many things come at once, a cursor that names where the next page begins, and the period asked for.

A cursor says where its page begins, and of which list: clients pass it on as they got it.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from palimpsest.domain.days import seconds_of
from palimpsest.edge.admin.operation import OfTenant, Refused

PAGE = 50  # two screenfuls
MAX_PAGE = 200  # some 200 KB of passages
MAX_CURSOR_CHARS = 200

NextCursor = Annotated[str | None, Field(description="The cursor of the next page; null: this is the last one.")]
Time = datetime | None

_POSITION = re.compile(r"([a-z]+)((?:\.\d{1,18})+)")


@dataclass(frozen=True, kw_only=True)
class Paged(OfTenant):
    """Parameters of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE, description="Maximum number of results.")] = PAGE
    cursor: Annotated[
        str, Field(max_length=MAX_CURSOR_CHARS, description="Where the page begins: `next` of the page before.")
    ] = ""


@dataclass(frozen=True, kw_only=True)
class OfPeriod(OfTenant):
    """Parameters of what has a time."""

    since: Annotated[
        Time, Field(description="From this time on: a date, a date with a time (UTC unless it says), or Unix seconds.")
    ] = None
    until: Annotated[Time, Field(description="Before this time, in the same formats.")] = None

    @property
    def period(self) -> tuple[float | None, float | None]:
        """Unix seconds."""
        return seconds(self.since), seconds(self.until)


@dataclass(frozen=True, kw_only=True)
class InPeriod(OfPeriod, Paged):
    """Parameters of a list of things that have a time."""


def cursor_to(name: str, *position: int) -> str | None:
    """The cursor of the page of list `name` that begins behind this position; None: there is none, all are 0."""
    if not any(position):
        return None
    text = ".".join((name, *map(str, position)))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def position_of(name: str, cursor: str, size: int = 1) -> tuple[int, ...]:
    """The position that a cursor encodes, zeros for the first page; raises `Refused` where it is not of this list."""
    if not cursor:
        return (0,) * size
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    match = _POSITION.fullmatch(text)
    position = tuple(map(int, match[2][1:].split("."))) if match else ()
    if match is None or match[1] != name or len(position) != size:
        raise Refused(400, "cursor: not one of this list; send `next` of the page before, or leave it out")
    return position


def seconds(time: Time) -> float | None:
    """Unix seconds of a time, which is UTC unless it says."""
    return None if time is None else seconds_of(time)
