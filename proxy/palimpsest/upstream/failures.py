"""
LiteLLM's failures as clients get them: the provider's own refusal, or that nobody answered.

LiteLLM raises what its providers' libraries raise, some of it wrapped and some of it not. So a failure is read by what
it carries: a status, words, headers, and what it followed from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import orjson

from palimpsest.domain import RawHeaders, frozen
from palimpsest.domain.errors import UpstreamUnreachable
from palimpsest.settings.policy import UpstreamPolicy

LOWEST_ERROR = 400
LOWEST_SERVER_ERROR = 500
CODES = {401: "invalid_api_key", 403: "permission_denied", 404: "model_not_found", 429: "rate_limit_exceeded"}
KEPT = ("retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id")  # of the provider's headers
LATE = ("TimeoutError", "TimeoutException", "APITimeoutError")  # classes, by name: theirs are imported late
BROKEN = ("ConnectionError", "ClientConnectionError", "ClientPayloadError", "TransportError")
UNKNOWN = "APIConnectionError"  # with a status of its own, whatever happened
TOO_LONG = "ContextWindowExceededError"

_LITELLMS_WORDS = re.compile(r"^(?:(?:litellm\.)?\w+Error: )*(?:\w+(?:Exception|Error)(?: \w+)? - )?")
_JSON_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


@frozen
class ProviderRefusal:
    """A provider's own error."""

    status: int
    code: str
    text: str
    headers: RawHeaders


def refused(failure: Exception) -> ProviderRefusal | None:
    """The provider's own error, with status and code; None: it did not answer."""
    status = getattr(failure, "status_code", None)
    if not isinstance(status, int) or status < LOWEST_ERROR:
        return None
    if (status >= LOWEST_SERVER_ERROR or is_late(failure)) and is_broken(failure):
        return None
    if _is_a(failure, (UNKNOWN,)):
        return None
    fallback = "upstream_error" if status >= LOWEST_SERVER_ERROR else "invalid_request_error"
    code = "context_length_exceeded" if _is_a(failure, (TOO_LONG,)) else CODES.get(status, fallback)
    headers = _headers(failure)
    kept = [(name.encode(), str(headers[name]).encode()) for name in KEPT if name in headers]
    return ProviderRefusal(status, code, _words(str(getattr(failure, "message", failure))), kept)


def is_broken(failure: Exception) -> bool:
    """Whether the connection failed; otherwise, without an error of the provider's, LiteLLM itself failed."""
    return any(_is_a(one, (*LATE, *BROKEN)) for one in _chain(failure))


def summary(failure: Exception) -> str:
    """The failure in one line, without LiteLLM's own traceback."""
    return _words(str(failure).partition("\n")[0])


def unreachable(upstream: UpstreamPolicy, failure: Exception) -> UpstreamUnreachable:
    """An error for no answer, in our own words, since the library's quote their input."""
    late = is_late(failure)
    reason = "it sent nothing for too long" if late else f"the connection broke ({type(failure).__name__})"
    text = f"asking upstream {upstream.name!r} ({upstream.litellm}): {reason}; try again, or check its url"
    return UpstreamUnreachable(text, timed_out=late)


def is_late(failure: Exception) -> bool:
    """Whether the failure is a timeout."""
    return _is_a(failure, LATE)


def _is_a(failure: BaseException, names: tuple[str, ...]) -> bool:
    return any(kind.__name__ in names for kind in type(failure).__mro__)


def _chain(failure: BaseException | None) -> Iterator[BaseException]:
    while failure is not None:
        yield failure
        failure = failure.__cause__ or failure.__context__


def _headers(failure: Exception) -> Mapping[str, str]:
    """The headers of the provider's answer, if the failure still has them."""
    response = getattr(failure, "response", None)
    places = (getattr(failure, "litellm_response_headers", None), getattr(response, "headers", None))
    return next((place for place in (*places, getattr(failure, "headers", None)) if place), {})


def _words(text: str) -> str:
    """The provider's message without what LiteLLM puts around it: clients know the former."""
    bare = _LITELLMS_WORDS.sub("", text)
    found = _JSON_OBJECT.search(bare)
    try:
        parsed = orjson.loads(found[0]) if found else {}
    except orjson.JSONDecodeError:
        return bare
    error = parsed.get("error", parsed)
    words = error.get("message") if isinstance(error, dict) else error
    return words if isinstance(words, str) and words else bare
