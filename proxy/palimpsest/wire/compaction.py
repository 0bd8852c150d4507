"""Requests for a compaction (`/v1/responses/compact`): read like others of their wire, except for their purpose."""

from __future__ import annotations

from dataclasses import replace

from palimpsest.domain import Chat, Json
from palimpsest.wire import responses
from palimpsest.wire.layout import KnownBody
from palimpsest.wire.message import OWN_PREFIX
from palimpsest.wire.responses import API, FOLDS, LISTED, render, reply

_MARK = OWN_PREFIX.encode()

__all__ = ["API", "FOLDS", "LISTED", "may_hold", "parse", "render", "reply"]


def parse(body: bytes, known: KnownBody | None = None, raw: Json | None = None) -> Chat:
    """See `palimpsest.domain.ports.Wire`."""
    return replace(responses.parse(body, known, raw), compacts=True)


def may_hold(body: bytes) -> bool:
    """Whether a request may hold compaction items of the proxy's own; found without parsing it."""
    return _MARK in body
