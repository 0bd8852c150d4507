"""A failure of LiteLLM's is the provider's refusal, a broken way, or a request that it could not translate."""

from __future__ import annotations

import pytest
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.upstream.failures import is_broken, refused, summary, unreachable


class Failure(Exception):
    """As LiteLLM raises them: with a status and a message."""

    def __init__(self, message: str = "", status_code: int = 0, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message, self.status_code, self.headers = message, status_code, headers


class ContextWindowExceededError(Failure):
    pass


class APIConnectionError(Failure):
    pass


class Timeout(Failure, TimeoutError):
    pass


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('litellm.RateLimitError: AnthropicException - {"error":{"message":"slow down"}}', "slow down"),
        ('litellm.NotFoundError: GeminiException - b\'{"error":{"message":"no such model"}}\'', "no such model"),
        ('litellm.AuthenticationError: Ollama_chatException - {"error":"bad key"}', "bad key"),
        ("litellm.BadRequestError: OpenAIException - bad key", "bad key"),
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow", "slow"),
        ("litellm.BadRequestError: GeminiException BadRequestError - {broken", "{broken"),
        ("something else", "something else"),
    ],
)
def test_the_providers_words_come_out_of_litellms(said: str, words: str) -> None:
    no = refused(Failure(said, 400))
    assert no is not None and no.text == words


def test_status_code_and_wait_are_kept() -> None:
    no = refused(Failure("x", 429, {"retry-after": "7", "content-type": "text/html"}))
    assert no is not None
    assert (no.status, no.code, no.headers) == (429, "rate_limit_exceeded", [(b"retry-after", b"7")])
    too_long = refused(ContextWindowExceededError("x", 400))
    assert too_long is not None and too_long.code == "context_length_exceeded"
    down = refused(Failure("x", 503))
    assert down is not None and down.code == "upstream_error"


def test_what_followed_from_a_broken_connection_is_no_word_of_the_providers() -> None:
    failure = Failure("Connection error.", 500)
    failure.__cause__ = ConnectionResetError()
    assert refused(failure) is None and is_broken(failure)
    assert unreachable(UpstreamPolicy(), failure).http_status == 502
    late = Timeout("x", 408)
    assert refused(late) is None and unreachable(UpstreamPolicy(), late).http_status == 504


def test_what_litellm_could_not_translate_is_neither() -> None:
    failure = APIConnectionError(
        "litellm.APIConnectionError: 'int' is no list\nTraceback (most recent call last):", 500
    )
    assert refused(failure) is None and not is_broken(failure)
    assert summary(failure) == "'int' is no list"
    assert refused(ValueError("x")) is None
