"""
The client table: where clients say who they are and which conversation this is.

The table is `config/clients.yaml`; this file knows no client by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from palimpsest.domain import Json, frozen
from palimpsest.domain.errors import PolicyError

Headers = Mapping[str, str]
"""Lower-case names to values."""
ID_CHARS = 200  # a longer id is no id: cut short it would be somebody else's, and hashing it would burn our time


@frozen
class Signal:
    """
    One place on the wire where a client names something.

    Parts that end in `?` may be absent; those that end in `!` must be there and are no part of the name.
    """

    name: str
    parts: tuple[tuple[str, str, str], ...]  # (header or body, path, how it counts: "", "?" or "!")
    unless: re.Pattern[str] | None = None  # a value in which this is found names something else

    def read(self, headers: Headers, body: Json) -> str:
        """The value, parts joined by "/", or "" when a part that must be there is not, or the whole is too long."""
        values = []
        for source, path, counts in self.parts:
            value = headers.get(path, "") if source == "header" else _string_at(body, path)
            if not value and counts != "?":
                return ""
            if value and counts != "!":
                values.append(value)
        joined = "/".join(values)
        if len(joined) > ID_CHARS or (self.unless is not None and self.unless.search(joined)):
            return ""
        return joined


@frozen
class Asides:
    """Messages that clients write in the user's role: patterns of whole texts, lower-case, white space squeezed."""

    texts: tuple[re.Pattern[str], ...] = ()


@frozen
class Signals:
    """The whole table."""

    conversation_ids: tuple[Signal, ...] = ()
    parent_ids: tuple[Signal, ...] = ()
    user_ids: tuple[Signal, ...] = ()
    scope_ids: tuple[Signal, ...] = ()
    retries: tuple[Signal, ...] = ()
    defines: tuple[re.Pattern[str], ...] = ()
    instructs: tuple[re.Pattern[str], ...] = ()
    asks: tuple[re.Pattern[str], ...] = ()
    any_asks: re.Pattern[str] | None = None  # matches where any of `asks` does: one search instead of one for each
    forms: tuple[re.Pattern[str], ...] = ()
    probes: tuple[re.Pattern[str], ...] = ()
    asides: Asides = Asides()

    @property
    def header_names(self) -> frozenset[str]:
        """The headers that may name something."""
        rows = (self.conversation_ids, self.parent_ids, self.user_ids, self.scope_ids, self.retries)
        parts = (part for signals in rows for signal in signals for part in signal.parts)
        return frozenset(path for source, path, _ in parts if source == "header")


def read_signals(table: Mapping[str, Any]) -> Signals:
    """Read the client table; `PolicyError` names the section and the row that is malformed."""

    def rows(section: str) -> tuple[Signal, ...]:
        return tuple(_signal(section, row) for row in table.get(section) or ())

    def listed(section: str, kind: str) -> tuple[str, ...]:
        return tuple((table.get(section) or {}).get(kind) or ())

    def patterns(kind: str, section: str = "side_requests") -> tuple[re.Pattern[str], ...]:
        try:
            return tuple(re.compile(pattern) for pattern in listed(section, kind))
        except re.error as cause:
            raise PolicyError(
                f"client table, {section}.{kind}: {cause.pattern!r} is not a valid pattern: {cause}"
            ) from cause

    asks = patterns("asks")
    return Signals(
        conversation_ids=rows("conversation_ids"),
        parent_ids=rows("parent_ids"),
        user_ids=rows("user_ids"),
        scope_ids=rows("scope_ids"),
        retries=rows("retries"),
        defines=patterns("defines"),
        instructs=patterns("instructs"),
        asks=asks,
        any_asks=re.compile("|".join(f"(?:{pattern.pattern})" for pattern in asks)) if asks else None,
        forms=patterns("forms"),
        probes=patterns("probes"),
        asides=Asides(patterns("texts", "asides")),
    )


def first(signals: Sequence[Signal], headers: Headers, body: Json) -> str:
    """The value of the first signal that is present, or ""."""
    return next((value for signal in signals if (value := signal.read(headers, body))), "")


def first_named(signals: Sequence[Signal], headers: Headers, body: Json) -> tuple[str, ...]:
    """The first signal that is present, as "name:value", or nothing: equal values of two clients are two ids."""
    return next(((f"{signal.name}:{value}",) for signal in signals if (value := signal.read(headers, body))), ())


def _signal(section: str, row: Any) -> Signal:
    """Parse one row of the table; raises PolicyError where it is malformed."""
    if not isinstance(row, Mapping) or not row.get("name") or not row.get("at"):
        raise PolicyError(f"client table, {section}: every row needs `name` and `at`, got {row!r}")
    parts = []
    for part in row["at"]:
        source, _, path = str(part).partition(":")
        if source not in ("header", "body") or not path:
            raise PolicyError(f"client table, {section}.{row['name']}: {part!r} is neither header:NAME nor body:PATH")
        counts = path[-1] if path[-1] in "?!" else ""
        path = path.removesuffix(counts)
        parts.append((source, path.lower() if source == "header" else path, counts))
    try:
        unless = re.compile(row["unless"]) if row.get("unless") else None
    except re.error as cause:
        raise PolicyError(f"client table, {section}.{row['name']}.unless: not a valid pattern: {cause}") from cause
    return Signal(str(row["name"]), tuple(parts), unless)


def _string_at(body: Json, path: str) -> str:
    """The string at a dotted path of a body; "" where there is none."""
    value: Any = body
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
