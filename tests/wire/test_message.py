"""What a message says is read alike, whichever wire wrote its parts."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import Any

import pytest
from palimpsest.domain import ToolCall
from palimpsest.wire.message import inline_reference, is_aside, read_message, without_memory_blocks

BLOCK = '<palimpsest-memory kind="recall">\nQuotes.\n[2026-03-05]\nuser: a fact\n</palimpsest-memory>'


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_text_parts_are_joined_by_newlines() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]
    message = read_message(user([*parts, {"type": "text", "text": "two"}]))
    assert message.text == "one\ntwo"
    assert message.media == ("https://x/y.png",)


def test_null_content_is_empty_text() -> None:
    assert read_message({"role": "assistant", "content": None}).text == ""
    assert read_message({"role": "assistant"}).text == ""


def test_unknown_roles_are_kept() -> None:
    assert read_message({"role": "oracle", "content": "x"}).role == "oracle"


def test_calls_are_read_in_every_form() -> None:
    message = read_message(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}},
                {"id": "c2", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
                {"id": "c3", "type": "function", "function": {"name": "obj", "arguments": {"a": 1}}},
                {"id": "c4"},
            ],
            "function_call": {"name": "old", "arguments": "{}"},
        }
    )
    assert message.calls == (
        ToolCall("c1", "read", '{"a": 1}'),
        ToolCall("c2", "shell", "ls"),
        ToolCall("c3", "obj", '{"a":1}'),
        ToolCall("c4", "", ""),
        ToolCall("", "old", "{}"),
    )


def test_a_tool_message_says_which_call_it_answers() -> None:
    message = read_message({"role": "tool", "tool_call_id": "c1", "name": "read", "content": "text"})
    assert (message.answers_call, message.name) == ("c1", "read")


@pytest.mark.parametrize(
    ("data", "content"),
    [
        ("data:image/png;base64," + b64encode(b"pixels").decode(), b"pixels"),
        ("data:text/plain,a%20b,c", b"a b,c"),
        (b64encode(b"sound").decode(), b"sound"),
        ("data:image/png;base64,a", b"a"),
        ("schön", "schön".encode()),
    ],
)
def test_inlined_data_is_named_by_its_hash_and_size(data: str, content: bytes) -> None:
    assert inline_reference(data) == f"sha256:{hashlib.sha256(content).hexdigest()};{len(content)}"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "image_url", "image_url": "https://x"}, ("https://x",)),
        ({"type": "image_url", "image_url": {"url": "data:,ab"}}, (inline_reference("data:,ab"),)),
        ({"type": "input_audio", "input_audio": {"data": "YWI=", "format": "wav"}}, (inline_reference("YWI="),)),
        ({"type": "file", "file": {"file_data": "data:,ab"}}, (inline_reference("data:,ab"),)),
        ({"type": "file", "file": {"file_id": "file-1"}}, ("file-1",)),
        ({"type": "image", "source": {"type": "base64", "data": "YWI="}}, (inline_reference("YWI="),)),
        ({"type": "image_url", "image_url": 7}, ()),
        ({"type": "image_url", "image_url": {"detail": "low"}}, ()),
        ({"type": 7}, ()),
        ({"type": "text", "text": 7}, ()),
    ],
)
def test_media_are_read_by_reference(part: Any, expected: tuple[str, ...]) -> None:
    assert read_message(user([part])).media == expected


def test_a_refusal_is_what_the_assistant_said() -> None:
    assert read_message({"role": "assistant", "content": None, "refusal": "I will not"}).text == "I will not"
    parts = [{"type": "refusal", "refusal": "no"}]
    assert read_message({"role": "assistant", "content": parts}).text == "no"


def test_a_tool_result_says_what_came_out_and_which_call_it_answers() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    content = [{"type": "text", "text": "one"}, image]
    message = read_message(user([{"type": "tool_result", "tool_use_id": "t1", "content": content}]))
    assert (message.text, message.answers_call, message.media) == ("one", "t1", ("https://x/y.png",))


@pytest.mark.parametrize("content", [None, 7, True])
def test_a_tool_result_without_content_says_nothing_and_answers_its_call(content: Any) -> None:
    message = read_message(user([{"type": "tool_result", "tool_use_id": "t1", "content": content}]))
    assert (message.text, message.answers_call, message.media) == ("", "t1", ())


def test_a_single_part_is_a_tool_result_as_a_list_of_one_is() -> None:
    part = {"type": "text", "text": "8080 is free"}
    one, listed = (
        read_message(user([{"type": "tool_result", "tool_use_id": "t1", "content": content}]))
        for content in (part, [part])
    )
    assert one.text == listed.text == "8080 is free"


def test_tools_that_the_provider_runs_itself_are_no_calls_of_the_clients() -> None:
    used = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "ports"}}
    found = {"type": "mcp_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "8080 is free"}]}
    message = read_message({"role": "assistant", "content": [used, found, {"type": "text", "text": "Take it."}]})
    assert (message.text, message.calls, message.answers_call) == ("8080 is free\nTake it.", (), "")


def test_what_a_provider_made_of_a_history_is_said_and_known_again() -> None:
    message = read_message({"role": "assistant", "content": [{"type": "compaction", "content": "They spoke."}]})
    assert (message.text, message.opaque) == ("They spoke.", (inline_reference("They spoke."),))


def test_thoughts_are_not_said() -> None:
    thoughts = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}]
    message = read_message({"role": "assistant", "content": [*thoughts, {"type": "text", "text": "yes"}]})
    assert (message.text, message.media) == ("yes", ())


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a page"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a page"}]}},
        {"type": "document", "source": {"type": "content", "content": "a page"}, "title": "t"},
        {"type": "search_result", "source": "https://x", "title": "t", "content": [{"type": "text", "text": "a page"}]},
        {"type": "compaction", "content": "a page"},
    ],
)
def test_what_is_handed_over_as_text_is_said(part: Any) -> None:
    message = read_message(user([part, {"type": "text", "text": "what is it?"}]))
    assert (message.text, message.media) == ("a page\nwhat is it?", ())


@pytest.mark.parametrize(
    ("source", "medium"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "YWI="}, inline_reference("YWI=")),
        ({"type": "url", "url": "https://x/y.pdf"}, "https://x/y.pdf"),
        ({"type": "file", "file_id": "file_1"}, "file_1"),
    ],
)
def test_a_document_that_holds_no_text_is_a_medium(source: Any, medium: str) -> None:
    message = read_message(user([{"type": "document", "source": source}]))
    assert (message.text, message.media) == ("", (medium,))


# --- own blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["user", "system"])
def test_a_block_in_front_of_what_somebody_says_is_none_of_his_words(role: str) -> None:
    raw = {"role": role, "content": f"{BLOCK}\n\nhello"}
    assert read_message(raw).text == "hello" and without_memory_blocks(raw) == {"role": role, "content": "hello"}


@pytest.mark.parametrize("role", ["tool", "assistant", "function"])
def test_what_reads_like_a_block_in_results_and_answers_is_what_they_say(role: str) -> None:
    raw = {"role": role, "content": f"{BLOCK}\n\nhello"}
    assert read_message(raw).text == f"{BLOCK}\n\nhello" and without_memory_blocks(raw) is raw


def test_a_result_among_the_parts_of_a_user_keeps_what_reads_like_a_block() -> None:
    parts = [{"type": "tool_result", "tool_use_id": "1", "content": BLOCK}, {"type": "text", "text": BLOCK}]
    assert read_message(user(parts)).text == BLOCK


def test_a_part_that_is_a_block_leaves_no_trace() -> None:
    said = [{"type": "text", "text": BLOCK}, {"type": "text", "text": "hi"}, {"type": "text", "text": f"{BLOCK}\n\nyo"}]
    assert read_message(user(said)).text == "hi\nyo"
    assert without_memory_blocks(user(said))["content"] == [{"type": "text", "text": text} for text in ("hi", "yo")]


def test_an_item_inside_a_message_is_read_by_its_own_role() -> None:
    items = [{"type": "message", "role": role, "content": f"{BLOCK}\n\nhi"} for role in ("user", "tool")]
    assert [item["content"] for item in without_memory_blocks(user(items))["content"]] == ["hi", f"{BLOCK}\n\nhi"]


@pytest.mark.parametrize("text", ["<" + "a" * 1_000_000, f"<{'a' * 1_000_000}>b", "<a>" + "</a" * 300_000])
def test_a_tag_without_end_is_searched_once(text: str) -> None:
    assert not is_aside(text)


@pytest.mark.parametrize(
    ("text", "aside"),
    [("<note>\nread <b>this</b>\n</note>\n", True), ("<a-b c='1'>x</a-b>", True), ("<a>x</a> and more", False)],
)
def test_an_aside_stands_between_tags_as_a_whole(text: str, aside: bool) -> None:
    assert is_aside(text) is aside
