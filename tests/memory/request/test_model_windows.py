"""Windows of models, as upstreams show them."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.domain import Ending, TooLong
from palimpsest.memory.request.model_windows import ModelWindows
from palimpsest.memory.tokens.windows import Windows
from palimpsest.settings.policy import Policy
from palimpsest.wire import chat, messages

UPSTREAMS = [
    {"name": "local", "url": "http://local/v1", "models": ["mine-*"], "wire": "openai"},
    {"name": "claude", "url": "http://claude/v1", "wire": "anthropic"},
]
UNKNOWN = 128_000  # the policy's default


def windows(mode: str = "on", known: Windows | None = None) -> ModelWindows:
    policy = Policy.model_validate({"upstreams": UPSTREAMS, "memory": {"mode": mode}})
    return ModelWindows(policy, known or no_windows())


def no_windows() -> Windows:
    return Windows(Policy().pressure, lambda: 0.0)


def test_upstream_is_chosen_by_model_and_by_the_api_that_the_client_speaks() -> None:
    known = windows()
    assert known.upstream_of("mine-1", chat, ()) == "local"
    assert known.upstream_of("mine-1", messages, ()) == "claude"
    assert known.upstream_of("mine-1", chat, ((b"anthropic-version", b"2023-06-01"),)) == "claude"
    assert known.upstream_of("another", chat, ()) == ""


@pytest.mark.parametrize(
    ("refusal", "learnt"),
    [
        (TooLong(8000), 8000),
        (TooLong(20_000), 20_000),  # by our count this had been enough: then that is wrong
        (TooLong(), 9000),  # only the client's own prompt is known to fit
        (TooLong(10_485_760), 9000),  # far more than was sent and than is known: no window
        (TooLong(8000, is_of_model=False), UNKNOWN),
    ],
)
def test_refusal_shows_a_window(refusal: TooLong, learnt: int) -> None:
    known = no_windows()
    assert windows(known=known).note_refused("local", "mine-1", refusal, own_tokens=9000, sent_tokens=10_000) == learnt
    assert known.of("local", "mine-1") == learnt


@pytest.mark.parametrize(("listed", "learnt"), [(8192, 8192), (32_000, 6000)])
def test_refusal_that_names_no_window_leaves_one_that_was_shown_unless_far_less_was_sent(
    listed: int, learnt: int
) -> None:
    known = no_windows()
    known.note_listed("local", "mine-1", listed)
    assert windows(known=known).note_refused("local", "mine-1", TooLong(), 6000, 6000) == learnt
    assert known.of("local", "mine-1") == learnt


def test_refusal_shows_a_smaller_window_than_the_operator_says_for_what_is_sent_again() -> None:
    known = Windows(Policy.model_validate({"pressure": {"window_tokens": {"*": 9000}}}).pressure, lambda: 0.0)
    shown = windows(known=known)
    assert shown.note_refused("local", "mine-1", TooLong(4000), 9000, 9000) == 4000
    assert shown.note_refused("local", "mine-1", TooLong(20_000), 9000, 9000) == 9000
    assert known.of("local", "mine-1") == 9000


async def test_list_of_models_shows_their_windows() -> None:
    known = no_windows()
    listen = windows(known=known).listener_for("GET", "/v1/models")
    assert listen is not None
    body = orjson.dumps({"data": [{"id": "mine-1", "context_length": 5000}]})
    for ending, tokens in ((Ending.UPSTREAM_BROKE, UNKNOWN), (Ending.COMPLETE, 5000)):
        listener = listen(200, ((b"content-type", b"application/json"),))
        assert listener.feed(body) == len(body)
        listener.finish(ending)
        await listener.committed()
        assert known.of("local", "mine-1") == tokens


@pytest.mark.parametrize(
    ("mode", "method", "path"), [("off", "GET", "/v1/models"), ("on", "POST", "/v1/models"), ("on", "GET", "/v1/files")]
)
def test_nobody_listens_to_anything_else(mode: str, method: str, path: str) -> None:
    assert windows(mode).listener_for(method, path) is None
