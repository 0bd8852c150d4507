"""A message that a client sends again has the fingerprint it had, whatever clients change on the way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import orjson
import pytest
from palimpsest.domain import Fingerprint
from palimpsest.wire.fingerprint import OPENING_CHARS, fingerprint_of, normalise
from palimpsest.wire.message import read_message

from tests.growing import exponent, repeated, seconds

KEY = b"k" * 32
FRESH = count()
BLOCK = '<palimpsest-memory kind="recall">\nQuotes.\nuser: note\n</palimpsest-memory>'
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a", "line": 1}'}}


def of(raw: dict[str, Any], key: bytes = KEY) -> Fingerprint:
    return fingerprint_of(read_message(raw), key)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def calling(arguments: str, **fields: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call | fields]}


@pytest.mark.parametrize(
    ("sent", "again"),
    [
        (user("a  b\n\tc "), user("a b c")),
        (user("a"), user([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}])),
        (user("a"), user(BLOCK + "\n\na")),
        (user("it is 10:30 now"), user("it is 11:45:09 now")),
        (user("at 2026-01-02T10:30:05.123Z"), user("at 2026-01-02T11:31:06Z")),
        (user("done 9:05 pm."), user("done 10:15 AM.")),
        ({"role": "developer", "content": "a"}, {"role": "system", "content": "a"}),
        (calling('{"path": "a", "line": 1}'), calling('{"line":1,"path":"a"}', id="c2")),
        (calling(""), calling("{}")),
        (calling("not  json"), calling("not json")),
        (
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
            {"role": "tool", "tool_call_id": "c2", "content": "text"},
        ),
        (
            {"role": "tool", "content": f"{'line ' * 20}\n\n<note>\nlist\n</note>\n\n<note>\ndate\n</note>\n"},
            {"role": "tool", "content": "line " * 20},
        ),
    ],
)
def test_what_clients_change_does_not_count(sent: dict[str, Any], again: dict[str, Any]) -> None:
    assert of(sent) == of(again)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("a"), {"role": "assistant", "content": "a"}),
        ({"role": "tool", "content": "ok\n\n<p>\n1\n</p>"}, {"role": "tool", "content": "ok\n\n<p>\n2\n</p>"}),
        (user(f"{'line ' * 20}\n\n<note>1</note>"), user("line " * 20)),
        (user("a"), user("b")),
        (user("a b"), user("ab")),
        (user("see a.py:12:30"), user("see a.py:12:31")),
        (calling('{"a": 1}'), calling('{"a": 2}')),
        (calling("{}"), {"role": "assistant", "content": "read({})"}),
        (
            user([{"type": "image_url", "image_url": {"url": "https://x/a"}}]),
            user([{"type": "image_url", "image_url": {"url": "https://x/b"}}]),
        ),
    ],
)
def test_what_the_message_says_counts(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert of(one).full != of(other).full


def test_the_opening_covers_the_first_characters_only() -> None:
    start = "x" * OPENING_CHARS
    assert of(user(start + "a")).opening == of(user(start + "b")).opening
    assert of(user("a" + start)).opening != of(user("b" + start)).opening
    assert of(user("a")).opening != of({"role": "tool", "content": "a"}).opening


def test_the_opening_of_a_text_with_calls_is_its_text() -> None:
    with_text = calling("{}") | {"content": "I will read"}
    assert of(with_text).opening == of({"role": "assistant", "content": "I will read"}).opening
    assert of(with_text).full != of({"role": "assistant", "content": "I will read"}).full


def test_the_opening_of_a_message_that_only_calls_covers_the_calls() -> None:
    assert of(calling('{"a": 1}')).opening != of(calling('{"a": 2}')).opening
    image = [{"type": "image_url", "image_url": {"url": "https://x/a"}}]
    assert of(user(image)).opening == of(user("")).opening


def test_hashes_are_keyed_and_fit_a_signed_integer() -> None:
    assert of(user("a")) != of(user("a"), key=b"other")
    for number in range(200):
        print_ = of(user(str(number)))
        assert 0 <= print_.full < 2**63 and 0 <= print_.opening < 2**63


def test_a_text_cannot_pretend_to_be_a_call() -> None:
    assert "\n" not in normalise(read_message(user("a\nb"))).partition("\n")[2]


def test_arguments_that_no_json_writer_takes_are_squeezed() -> None:
    deep = "[" * 500 + "]" * 500
    orjson.loads(deep)
    assert of(calling(deep)) == of(calling(f" {deep} "))


LONG = "x" * 100
REMINDERS = repeated("\n\n<a>y</a>", before=LONG)


@pytest.mark.parametrize(
    "text_of",
    [
        REMINDERS,
        repeated("</a> ", before=LONG),
        repeated("</a>\n\n<a>", before=LONG),
        repeated(" ", before=f"{LONG}\n\n<a>", behind="</a>"),
        repeated("1:00", before=LONG),
        repeated("1:00:00.1", before=LONG),
    ],
    ids=["reminders", "ends of tags", "tags", "spaces", "clocks", "parts of seconds"],
)
def test_the_time_grows_as_the_text_does(text_of: Callable[[int], str]) -> None:
    def work(text: str) -> Fingerprint:
        return of({"role": "tool", "content": text + str(next(FRESH))})  # else it would be remembered

    assert exponent(work, lambda size: text_of(size), 10_000, 100_000) < 1.5


def test_reminders_of_any_number_are_left_out() -> None:
    many = REMINDERS(11 * 2000 + len(LONG))
    assert of({"role": "tool", "content": many}) == of({"role": "tool", "content": LONG})


@pytest.mark.parametrize("role", ["user", "tool"])
def test_a_large_message_that_comes_again_is_not_read_again(role: str) -> None:
    text = "some words at 10:35 <a>or</a> so,  " * 30_000
    first = seconds(lambda text: of({"role": role, "content": text}), text, repeats=1)
    again = seconds(lambda text: of({"role": role, "content": text}), text)
    assert again < first / 3


def test_large_messages_that_differ_anywhere_have_other_fingerprints() -> None:
    text = "words " * 2000
    call = {"id": "c", "function": {"name": "f", "arguments": text}}
    messages = [
        user(text),
        user(text + "x"),
        {"role": "assistant", "content": text},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "assistant", "content": text, "tool_calls": [call, call]},
    ]
    assert len({of(message).full for message in messages}) == len(messages)


def test_a_long_text_has_the_fingerprint_of_its_squeezed_form() -> None:
    text = "a line of words at 10:30  \n" * 10_000
    assert of(user(text)) == of(user(" ".join(text.split()))) == of(user(text.replace("10:30", "11:45")))
