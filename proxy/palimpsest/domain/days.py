"""Days and times as ISO 8601, in UTC, and the other way round; numbers are Unix seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def day_of(at: float) -> str:
    """The day, as 2026-11-22."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def time_of(at: float) -> str:
    """The day and the time, to the second, with its zone."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def seconds_of(time: datetime) -> float:
    """The Unix seconds of a time, which is UTC unless it says."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
