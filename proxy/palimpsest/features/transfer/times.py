"""Times as other programs write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

MAX_SECONDS = 253_370_764_800  # the year 9999, the last that has a date


def seconds(value: Any) -> float:
    """Unix seconds of an ISO 8601 time, UTC unless it has a zone; 0 if it is not a time."""
    if not isinstance(value, str):
        return 0.0
    try:
        read = datetime.fromisoformat(value)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
