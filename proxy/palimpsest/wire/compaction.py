"""
Requests for a compaction (`/v1/responses/compact`): they say what others of their wire say, but for their purpose.
"""

from __future__ import annotations

from dataclasses import replace

from palimpsest.domain import Chat
from palimpsest.wire import responses
from palimpsest.wire.layout import KnownBody
from palimpsest.wire.responses import API, FOLDS, LISTED, render, reply

__all__ = ["API", "FOLDS", "LISTED", "parse", "render", "reply"]


def parse(body: bytes, known: KnownBody | None = None) -> Chat:
    """
    Read a request.

    Raises:
        WireError: the body is no request that we understand; pass it on untouched.
    """
    return replace(responses.parse(body, known), compacts=True)
