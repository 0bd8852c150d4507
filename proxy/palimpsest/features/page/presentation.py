"""The forms in which the page shows times, numbers and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from palimpsest.core.recall.trail import required
from palimpsest.domain import Event, Rebuild

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
EVENTS: Mapping[str, str] = {
    Event.START: "begins",
    Event.APPEND: "goes on",
    Event.TOOL: "tool answered",
    Event.EDIT: "history edited",
    Event.RETRY: "asked again",
    Event.SUMMARY: "compacted by a summary",
    Event.TRUNCATE: "oldest messages dropped",
    Event.CLEAR: "tool results cleared",
}
REBUILDS: Mapping[str, str] = {
    Rebuild.NONE: "",
    Rebuild.FIRST: "first",
    Rebuild.CLIENT: "the client changed it",
    Rebuild.OURS: "memory changed it",
    Rebuild.IDLE: "after a pause",
    Rebuild.UNEXPECTED: "unexpected",
}


def moment(seconds: float | None) -> str:
    """A time in UTC, to the second."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def count(number: float | None) -> str:
    """A number with its thousands parted; a dash where it is not known."""
    return "-" if number is None else f"{number:,.0f}"


def inert(text: str | None) -> str:
    """Archived text without signs that a terminal or the direction of writing would obey; they are shown as boxes."""
    return "(erased)" if text is None else _HIDDEN.sub("\u25a1", text)


def event(name: str) -> str:
    """What a client did to its history, in words."""
    return EVENTS.get(name, name)


def rebuild(name: str | None) -> str:
    """Why a provider rebuilt its cache, in words; "" where that is not known."""
    return "" if name is None else REBUILDS.get(name, name)


def size(turn: Mapping[str, Any]) -> int:
    """Tokens of a request, with those that stayed behind."""
    return tokens(turn) + int(turn["trimmed_tokens"])


def tokens(turn: Mapping[str, Any]) -> int:
    """Tokens of a request as it was sent: as the provider counts, or else by our count; 0: neither is known."""
    own = turn["own_tokens"]
    return int(turn["prompt_tokens"] or (0 if own is None else own + turn["added_tokens"]))


def combined(query: Mapping[str, str], **more: str) -> str:
    """A query with other values, as it stands in an address."""
    return urlencode({**query, **more})


FILTERS: Mapping[str, Callable[..., Any]] = {
    "moment": moment,
    "count": count,
    "inert": inert,
    "event": event,
    "rebuild": rebuild,
    "combined": combined,
    "size": size,
    "tokens": tokens,
    "required": required,
}
COMPACTIONS = frozenset(event.value for event in Event if event.is_compaction)
