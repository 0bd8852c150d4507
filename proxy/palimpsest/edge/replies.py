"""Answers of the proxy's own endpoints: JSON that no cache keeps, and errors in the shape that OpenAI clients know."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

UNTRUSTED = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Headers of all answers: stored text is untrusted, never to be taken for a page, nor kept by a cache."""


def json_reply(value: Any, status: int = 200) -> Response:
    body = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return Response(body, status, UNTRUSTED, "application/json")


def error_reply(status: int, text: str) -> Response:
    """An error in the shape that OpenAI clients know."""
    return json_reply({"error": {"message": text, "type": "palimpsest_error", "code": status}}, status)
