"""
Dates in words, resolved to the periods that a question asks about. Memories carry the day when they were told.

On LoCoMo 136 of 1,018 questions name a date. All their evidence within 6,000 characters: .83 without this, .91 with it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
QUESTION_CHARS = 500  # a longer text was pasted: its dates are those of a log, and looking for them takes time
TOLD_WITHIN = timedelta(days=10)  # what happened is mostly told soon afterwards

_MONTH = "|".join(month.capitalize() for month in MONTHS)
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DATES = [
    re.compile(rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)? (?P<month>{_MONTH})\b(?:,? {_YEAR}\b)?"),  # 16 November, 2023
    re.compile(rf"\b(?P<month>{_MONTH}) (?P<day>\d\d?)(?:st|nd|rd|th)?\b(?:,? {_YEAR}\b)?"),  # November 16, 2023
    re.compile(rf"\b(?P<month>{_MONTH})\b(?:,? (?:of )?{_YEAR}\b)?"),  # November 2023
    re.compile(rf"\b{_YEAR}\b"),
]


def periods(text: str, now: float) -> tuple[tuple[float, float], ...]:
    """
    The periods in which a text's dates were probably told of, in Unix seconds, first and last, in order.

    A month or day without a year is the last one that had begun by `now`. Each period ends ten days later than its
    date does. Dates that do not exist are none, nor are those of a text of more than 500 characters.
    """
    if len(text) > QUESTION_CHARS:
        return ()
    found, today = list[tuple[float, float]](), datetime.fromtimestamp(now, UTC)
    for pattern in _DATES:
        found += filter(None, (_period(date.groupdict(), today) for date in pattern.finditer(text)))
        text = pattern.sub("", text)
    return tuple(found)


def _period(date: dict[str, str | None], now: datetime) -> tuple[float, float] | None:
    """The day, month or year of a date in Unix seconds, in the past where it names no year; None: no such date."""
    named = date.get("month")
    month = MONTHS.index(named.lower()) + 1 if named else 0
    try:
        start = datetime(int(date["year"] or now.year), month or 1, int(date.get("day") or 1), tzinfo=UTC)
        if not date["year"] and start > now:
            start = start.replace(year=start.year - 1)
        if date.get("day"):
            stop = start + timedelta(days=1)
        elif month:
            stop = start.replace(year=start.year + month // 12, month=month % 12 + 1)
        else:
            stop = start.replace(year=start.year + 1)
    except (ValueError, OverflowError):
        return None
    return start.timestamp(), (stop + TOLD_WITHIN).timestamp()
