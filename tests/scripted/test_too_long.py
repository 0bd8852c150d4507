"""A scripted provider refuses beyond its window, in the words that it was given."""

from __future__ import annotations

import orjson

from proxy.scripted.reply import Reply
from proxy.scripted.too_long import PROVIDERS, prompt_tokens, within


def test_prompt_within_the_window_is_answered_and_a_longer_one_refused() -> None:
    words = PROVIDERS["vllm"]
    script = within(100, words, lambda _: "Hello.")
    short, long = {"messages": ["x"]}, {"messages": ["x" * 1000]}
    assert script(short) == Reply("Hello.", prompt_tokens=prompt_tokens(short))
    refused = script(long)
    assert isinstance(refused, Reply) and refused.status == 400
    assert refused.body == words.said(prompt_tokens(long), 100)
    assert b"maximum context length is 100 tokens" in orjson.dumps(orjson.loads(refused.body or b""))


def test_every_providers_words_have_a_source() -> None:
    assert all(words.source for words in PROVIDERS.values())
