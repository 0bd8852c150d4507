"""
What does a request for a compaction say (`/v1/responses/compact`)? What others of its wire say, but for its purpose.
"""

from __future__ import annotations

from dataclasses import replace

from proxy.domain import Chat
from proxy.wire import responses
from proxy.wire.responses import render, reply

__all__ = ["parse", "render", "reply"]


def parse(body: bytes) -> Chat:
    """
    Read a request.

    Raises:
        WireError: the body is no request that we understand; pass it on untouched.
    """
    return replace(responses.parse(body), compacts=True)
