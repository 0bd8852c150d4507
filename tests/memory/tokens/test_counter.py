"""Tokens are counted once, beside one another, and the ratio of an unknown tokenizer is learnt from what was sent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import ceil
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Chat, Fingerprint, Json, Message, ToolCall
from palimpsest.memory.tokens.counter import (
    CACHED_COUNTS,
    LEARNING_RATE,
    MAX_RATIO,
    MAX_RATIOS,
    MEDIA_TOKENS,
    MESSAGE_TOKENS,
    UNKNOWN_TOKENIZER_RATIO,
    TokenCounter,
    encoder,
    warm,
)

from tests.running import ROOT

TEXT = "The gate code of the harbour warehouse is on the last page."
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def chat(*messages: Message, model: str = "gpt-4o", raw: Json | None = None) -> Chat:
    return Chat(messages, model, b"", raw or {})


def said(text: str, *calls: ToolCall, media: Sequence[str] = ()) -> Message:
    return Message("user", text, {}, calls=calls, media=tuple(media))


def prints(*numbers: int) -> list[Fingerprint]:
    return [Fingerprint(number, number) for number in numbers]


def tokens(text: str, encoding: str = "o200k_base") -> int:
    return len(encoder(encoding).encode_ordinary(text))


def prompt(counter: TokenCounter, asked: Chat, numbered: Sequence[Fingerprint]) -> int:
    """Tokens of a request as the client sent it."""
    return counter.scaled(
        asked.model, sum(counter.messages(asked.model, asked.messages, numbered)) + counter.tools(asked)
    )


@pytest.fixture
def counter() -> TokenCounter:
    warm()
    return TokenCounter()


def test_prompt_is_its_messages_calls_media_and_tools(counter: TokenCounter) -> None:
    call = ToolCall("call-1", "look", '{"where": "here"}')
    asked = chat(said(TEXT, call, media=["sha256:00;9"]), raw={"tools": TOOLS})
    parts = tokens(TEXT) + tokens('look{"where": "here"}') + tokens(orjson.dumps(TOOLS).decode())
    assert prompt(counter, asked, prints(1)) == parts + MESSAGE_TOKENS + MEDIA_TOKENS


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("openai/gpt-4.1-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("azure/GPT-3.5-turbo", "cl100k_base"),
        ("gpt-5.2", "o200k_base"),
        ("openrouter/openai/o3-mini", "o200k_base"),
        ("codex-mini-latest", "o200k_base"),
    ],
)
def test_public_tokenizer_is_used_as_it_is(counter: TokenCounter, model: str, encoding: str) -> None:
    assert counter.text(TEXT, model) == tokens(TEXT, encoding)
    counter.learn(model, 100, 300)
    assert counter.text(TEXT, model) == tokens(TEXT, encoding)


@pytest.mark.parametrize("model", ["gpt-oss-120b", "claude-opus-4-5", "mygpt-4o", "gpt-4o/mine", ""])
def test_a_name_that_only_resembles_a_public_one_has_a_tokenizer_of_its_own(counter: TokenCounter, model: str) -> None:
    before = counter.text(TEXT, model)
    counter.learn(model, 100, 300)
    assert tokens(TEXT) < before < counter.text(TEXT, model)


def test_the_ratio_holds_for_all_of_a_prompt(counter: TokenCounter) -> None:
    asked = chat(said(TEXT, media=["sha256:00;9"]), said(TEXT), raw={"tools": TOOLS})
    public = prompt(counter, asked, prints(1, 2))
    assert prompt(counter, replace(asked, model="mine"), prints(1, 2)) == ceil(public * UNKNOWN_TOKENIZER_RATIO)


def test_a_message_is_counted_by_each_encoding_for_itself(counter: TokenCounter) -> None:
    text = "Zażółć gęślą jaźń, и ещё немного текста"
    for model, encoding in (("gpt-4o", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-4o", "o200k_base")):
        assert prompt(counter, chat(said(text), model=model), prints(1)) == tokens(text, encoding) + MESSAGE_TOKENS
    assert tokens(text, "o200k_base") != tokens(text, "cl100k_base")


def test_control_tokens_that_a_client_writes_are_text(counter: TokenCounter) -> None:
    assert counter.text("<|endoftext|>", "gpt-4o") > 1


def test_unknown_tokenizer_counts_by_a_usual_ratio_until_usage_teaches_better(counter: TokenCounter) -> None:
    long = TEXT * 100
    assert counter.text(long, "mine") == pytest.approx(tokens(long) * UNKNOWN_TOKENIZER_RATIO, abs=1)
    for _ in range(60):
        counter.learn("mine", counter.text(long, "mine"), 2 * tokens(long))
    assert counter.text(long, "mine") == pytest.approx(2 * tokens(long), rel=0.01)
    assert counter.text(long, "other") == pytest.approx(tokens(long) * UNKNOWN_TOKENIZER_RATIO, abs=1)


@pytest.mark.parametrize(("counted", "reported"), [(0, 100), (100, 0), (-1, -1)])
def test_report_about_nothing_teaches_nothing(counter: TokenCounter, counted: int, reported: int) -> None:
    before = counter.text(TEXT, "mine")
    counter.learn("mine", counted, reported)
    assert counter.text(TEXT, "mine") == before


def test_odd_reports_leave_the_ratio_within_bounds(counter: TokenCounter) -> None:
    long = TEXT * 100
    for _ in range(100):
        counter.learn("mine", 1, 10**9)
        counter.learn("other", 10**9, 1)
    assert counter.text(long, "mine") == pytest.approx(tokens(long) * MAX_RATIO, rel=0.01)
    assert counter.text(long, "other") == pytest.approx(tokens(long) / MAX_RATIO, rel=0.01)


def test_one_odd_report_moves_the_ratio_by_a_fifth_of_the_way(counter: TokenCounter) -> None:
    long = TEXT * 100
    counter.learn("mine", 100, 200)
    learnt = UNKNOWN_TOKENIZER_RATIO * (1 + LEARNING_RATE)
    assert counter.text(long, "mine") == pytest.approx(tokens(long) * learnt, abs=1)


def test_refused_prompt_moves_the_ratio_all_of_the_way(counter: TokenCounter) -> None:
    long = TEXT * 100
    counter.learn("mine", counter.text(long, "mine"), 2 * tokens(long), 1.0)
    assert counter.text(long, "mine") == pytest.approx(2 * tokens(long), abs=1)


def test_ratios_are_kept_for_so_many_models_and_those_learnt_longest_ago_go(counter: TokenCounter) -> None:
    usual = counter.text(TEXT * 100, "never-seen")
    counter.learn("kept", 100, 300)
    for number in range(MAX_RATIOS - 1):
        counter.learn(f"m-{number}", 100, 300)
    counter.learn("kept", 100, 300)
    counter.learn("one-more", 100, 300)
    assert f"{MAX_RATIOS} ratios" in repr(counter)
    assert counter.text(TEXT * 100, "m-0") == usual < min(counter.text(TEXT * 100, m) for m in ("kept", "m-1"))


def test_counts_are_kept_for_so_many_messages_and_the_first_of_them_go(counter: TokenCounter) -> None:
    first, empty = chat(said("a" * 10)), chat(*[said("")] * CACHED_COUNTS)
    prompt(counter, first, prints(0))
    prompt(counter, empty, prints(*range(1, CACHED_COUNTS + 1)))
    assert f"{CACHED_COUNTS} counts" in repr(counter)
    assert counter.uncounted_chars(first, prints(0)) == 10
    assert prompt(counter, first, prints(0)) == tokens("a" * 10) + MESSAGE_TOKENS


def test_tools_that_are_nested_too_deep_to_be_written_count_nothing(counter: TokenCounter) -> None:
    deep = orjson.loads("[" * 1_000 + "]" * 1_000)
    assert counter.tools(chat(said(TEXT), raw={"tools": deep})) == 0
    assert counter.tools(chat(said(TEXT), raw={"tools": TOOLS})) > 0


def test_uncounted_characters_are_those_of_texts_arguments_and_tools_that_no_count_is_known_of(
    counter: TokenCounter,
) -> None:
    call = ToolCall("call-1", "look", "x" * 1000)
    asked = chat(said("a" * 10), said("", call), raw={"tools": TOOLS})
    assert counter.uncounted_chars(asked, prints(1, 2)) == 10 + 4 + 1000 + len(orjson.dumps(TOOLS))
    prompt(counter, chat(asked.messages[0]), prints(1))
    assert counter.uncounted_chars(asked, prints(1, 2)) == 4 + 1000 + len(orjson.dumps(TOOLS))
    prompt(counter, asked, prints(1, 2))
    assert counter.uncounted_chars(asked, prints(1, 2)) == 0


def test_threads_may_share_a_counter(counter: TokenCounter) -> None:
    def count(start: int) -> list[int]:
        return [prompt(counter, chat(said(f"{TEXT} {n}"), model="mine"), prints(n)) for n in range(start, start + 200)]

    with ThreadPoolExecutor(4) as threads:
        one, *others = threads.map(count, [0, 0, 0, 0])
        for _ in range(200):
            counter.learn("unlike", 10, 20)
    assert all(other == one for other in others)


def test_missing_file_of_an_encoding_is_a_fault_that_says_what_to_do_and_downloads_nothing(tmp_path: Path) -> None:
    program = (
        "from palimpsest.domain.errors import MemoryFault\nfrom palimpsest.memory.tokens.counter import warm\n"
        "try: warm()\nexcept MemoryFault as fault: print(fault)\n"
    )
    env = os.environ | {"TIKTOKEN_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "proxy")}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    assert "o200k_base" in run.stdout and str(tmp_path) in run.stdout and "install litellm" in run.stdout
    assert "is missing" in run.stdout and list(tmp_path.iterdir()) == []


COUNTED_IN_A_FRESH_PROCESS = """
from palimpsest.memory.tokens import counter
from palimpsest.memory.tokens.counter import TokenCounter
from palimpsest.wire import chat

def asked(model):
    body = b'{"model":"%s","messages":[{"role":"user","content":"hello, world"}]}' % model.encode()
    return chat.parse(body)

counter.warm()
counter = TokenCounter()
for model in ("gpt-4o", "gpt-4", "gpt-4"):
    request = asked(model)
    prints = [type("Print", (), {"full": 1})()]
    waits = counter.uncounted_chars(request, prints) > 64 * 1024
    tokens = counter.scaled(model, sum(counter.messages(model, request.messages, prints)) + counter.tools(request))
    print(model, waits, tokens, counter.text("a b", model))
"""


def test_an_encoding_that_is_not_loaded_is_loaded_off_the_event_loop_and_counts() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COUNTED_IN_A_FRESH_PROCESS], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == ["gpt-4o False 7 2", "gpt-4 True 7 2", "gpt-4 False 7 2"]
