"""
The first-party table: what clients hold back from any address but their provider's own, and the variables that lift it.

Whether a client may be told that the proxy stands for its provider depends on the upstreams, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from palimpsest.domain import Json
from palimpsest.settings.policy import UpstreamPolicy

BY_LITELLM = ""
"""In place of a host: requests are translated there, and what only the provider knows is refused."""


def hosts(wire: str, upstreams: Iterable[UpstreamPolicy]) -> set[str]:
    """The provider hosts that may receive requests of an API."""
    taking = [upstream for upstream in upstreams if upstream.wire in (wire, "any")]
    return {BY_LITELLM if upstream.litellm else urlsplit(upstream.url).hostname or "" for upstream in taking}


def first_party_variables(
    table: Iterable[Json], upstreams: Iterable[UpstreamPolicy], environment: Mapping[str, str]
) -> dict[str, str]:
    """
    The variables to be added for these upstreams.

    Args:
        table: `first_party` of `config/wrap.yaml`. Of each wire the first row counts whose host is that of all
            upstreams; a row without one fits all that pass requests on as they come.
        environment: what is set there stays, and so does a switch that is set to nothing.
    """
    upstreams = tuple(upstreams)
    chosen: dict[str, Mapping[str, str]] = {}
    for row in table:
        if _fits(row.get("host"), hosts(row["wire"], upstreams)):
            chosen.setdefault(row["wire"], row["variables"])
    return {name: text for row in chosen.values() for name, text in row.items() if name not in environment}


def _fits(host: str | None, served: set[str]) -> bool:
    return bool(served) and (BY_LITELLM not in served if host is None else served == {host})
