"""Answers of the proxy's own endpoints: JSON that no cache keeps, and errors in the shape that OpenAI clients know."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response


def json_reply(value: Any, status: int = 200) -> Response:
    # Stored text is untrusted: never to be taken for a page, nor kept by a cache.
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    body = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return Response(body, status, headers, "application/json")


def error_reply(status: int, text: str) -> Response:
    """An error in the shape that OpenAI clients know."""
    return json_reply({"error": {"message": text, "type": "palimpsest_error", "code": status}}, status)
