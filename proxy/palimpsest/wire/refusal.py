"""Errors of the proxy itself, in the format of the client's API, so that its SDK understands them."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from palimpsest.domain import Api, RawHeaders

Refusal = Callable[[int, str, str], bytes]
"""The body of an error: from its HTTP status, a code for programs and a text for people."""

FIRST_SERVER_ERROR_STATUS = 500
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


def refusal_of(path: str, headers: RawHeaders) -> Refusal:
    """The shape for one request. Anthropic's SDKs name their version on every path, Messages is theirs alone."""
    return anthropic if api_of(path, headers) is Api.ANTHROPIC else openai


def api_of(path: str, headers: RawHeaders) -> Api:
    """The API that a request is for; what does not look like Anthropic's is taken for OpenAI's."""
    is_anthropic = "/v1/messages" in path or any(name.startswith(b"anthropic-") for name, _ in headers)
    return Api.ANTHROPIC if is_anthropic else Api.OPENAI


def openai(status: int, code: str, text: str) -> bytes:
    """An error body as Chat Completions and Responses have it."""
    kind = "api_error" if status >= FIRST_SERVER_ERROR_STATUS else "invalid_request_error"
    return orjson.dumps({"error": {"message": text, "type": kind, "param": None, "code": code}})


def anthropic(status: int, code: str, text: str) -> bytes:
    """An error body as Messages has it, whose type stands for a code."""
    fallback = "api_error" if status >= FIRST_SERVER_ERROR_STATUS else "invalid_request_error"
    kind = _ANTHROPIC_TYPES.get(status, fallback)
    return orjson.dumps({"type": "error", "error": {"type": kind, "message": f"{text} ({code})"}})
