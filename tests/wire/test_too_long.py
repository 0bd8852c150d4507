"""Refusals for a prompt's length are known in every provider's words, and no other error is taken for one."""

from __future__ import annotations

import pytest
from palimpsest.domain import TooLong
from palimpsest.wire.too_long import too_long, too_long_event

from tests.refusals import PROVIDERS


@pytest.mark.parametrize("provider", PROVIDERS)
def test_refusal_is_known_in_the_words_of_every_provider(provider: str) -> None:
    words = PROVIDERS[provider]
    told = too_long(words.status, words.said(2345, 2048))
    assert told is not None
    assert told.window_tokens == (2048 if words.names_window else None)
    assert told.prompt_tokens in (2345, None)
    assert words.source


@pytest.mark.parametrize(
    ("text", "window", "prompt"),
    [
        ("This model's maximum context length is 131,072 tokens. However, you requested", 131_072, None),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812),
        ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 9.", 272_000, None),
        ("Input tokens exceed the configured limit of 272000. Your messages resulted in 315,199.", 272_000, 315_199),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length or "
            "`max_tokens` and try again",
            200_000,
            190_000,
        ),
        ("request (9999 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 9999),
        ("The decoder prompt (length 9999) is longer than the maximum model length of 4096.", 4096, 9999),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 8748 tokens (3144 in the "
            "messages, 5604 in the completion).",
            8192,
            3144,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 8838 tokens (3144 in the "
            "messages, 90 in the functions, and 5604 in the completion).",
            8192,
            3234,
        ),
        (
            "This endpoint's maximum context length is 200000 tokens. However, you requested about 230000 tokens "
            "(60000 of text input, 106000 of tool input, 64000 in the output).",
            200_000,
            166_000,
        ),
        (
            "This model's maximum context length is 131072 tokens. However, you requested 102400 output tokens and "
            "your prompt contains at least 28673 input tokens, for a total of at least 131073 tokens.",
            131_072,
            None,
        ),
    ],
)
def test_window_and_prompt_are_read_from_the_words_that_name_them(text: str, window: int, prompt: int | None) -> None:
    assert too_long(400, text.encode()) == TooLong(window, prompt_tokens=prompt)


@pytest.mark.parametrize(
    "text",
    [
        '{"error":{"message":"Invalid value: \'tool\'.","code":"invalid_value"}}',
        '{"error":{"message":"The maximum tokens you requested exceeds the model limit of 2048."}}',
        '{"error":{"message":"max_tokens for `m` must be less than or equal to 8000"}}',
        '{"error":{"message":"Rate limit reached for gpt-4o on requests per min. Limit: 3 / min."}}',
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "",
    ],
)
def test_other_errors_are_not_taken_for_it(text: str) -> None:
    assert too_long(400, text.encode()) is None and too_long(500, text.encode()) is None


def test_status_that_no_provider_uses_for_it_is_not_read() -> None:
    words = PROVIDERS["openai"]
    assert too_long(200, words.said(9, 8)) is None and too_long(401, words.said(9, 8)) is None


def test_body_that_a_web_server_finds_too_large_teaches_no_window() -> None:
    assert too_long(413, b"<html>413 Request Entity Too Large</html>") == TooLong(is_of_model=False)


@pytest.mark.parametrize("size", ["10485760 bytes", "10,485,760 bytes", "30000 characters"])
def test_limit_of_bytes_or_characters_is_no_window(size: str) -> None:
    said = f"Request is too large: its body exceeds the limit of {size}"
    assert too_long(413, said.encode()) == TooLong(is_of_model=False)
    assert too_long(400, f"prompt is too long: 9999 tokens > 4096 maximum; limit of {size}".encode()) == TooLong(
        4096, prompt_tokens=9999
    )


def test_error_inside_a_stream_is_known_and_an_answer_that_quotes_one_is_not() -> None:
    failed = b'{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"x"}}}'
    assert too_long_event(failed) == TooLong()
    assert too_long_event(PROVIDERS["openai"].said(2345, 2048)) == TooLong(2048, prompt_tokens=2345)
    assert too_long_event(b'{"choices":[{"delta":{"content":"context_length_exceeded"}}]}') is None
    assert too_long_event(b"not JSON: context_length_exceeded") is None
