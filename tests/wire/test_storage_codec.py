"""What was said is read back as it was said."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.archive.chunking import split_into_passages
from palimpsest.domain import BLOCK_CLOSE, BLOCK_OPEN, Json
from palimpsest.wire.message import OWN_PREFIX, read_message
from palimpsest.wire.storage_codec import from_stored, to_stored


def keep(text: str) -> str:
    return text


def hide(text: str) -> str:
    return text.replace("hunter2", "[hidden]")


def there_and_back(raw: Json) -> Json:
    return from_stored(*to_stored(read_message(raw), keep))


CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
MESSAGES: dict[str, Json] = {
    "text": {"role": "user", "content": "hello"},
    "empty text": {"role": "user", "content": ""},
    "null": {"role": "assistant", "content": None, "tool_calls": [CALL]},
    "no content": {"role": "assistant", "tool_calls": [CALL]},
    "text and call": {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    "tool result": {"role": "tool", "tool_call_id": "call_1", "content": "print(1)"},
    "parts": {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    "image by URL": {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.y/z.png"}}]},
    "refusal": {"role": "assistant", "content": "No.", "refusal": "I will not."},
    "unknown fields": {"role": "user", "content": "x", "name": "ann", "cache_control": {"type": "ephemeral"}, "n": 1.5},
    "nul": {"role": "user", "content": "a\0b"},
    "half a surrogate pair": {"role": "user", "content": "half \ud83d of a smile"},
    "part of unknown type": {"role": "user", "content": [{"type": ["odd"], "x": None}]},
}


@pytest.mark.parametrize("raw", MESSAGES.values(), ids=MESSAGES)
def test_a_message_is_read_back_equal(raw: Json) -> None:
    assert there_and_back(raw) == raw


@given(st.text(st.characters(codec=None) | st.sampled_from("\0\ud83d\ude00")))
def test_any_text_is_read_back_and_stands_in_the_database_character_for_character(said: str) -> None:
    raw = {"role": "user", "content": said}
    text, rest = to_stored(read_message(raw), keep)
    assert from_stored(text, rest) == raw
    assert len(text) == len(said) and "\0" not in text
    assert text.encode().decode() == text and rest.encode().decode() == rest and "\0" not in rest


def test_a_text_is_written_once() -> None:
    assert to_stored(read_message({"role": "user", "content": "hello"}), keep) == ("hello", '{"role":"user"}')


def test_offsets_of_passages_count_in_the_stored_text() -> None:
    message = read_message(MESSAGES["text and call"])
    text, _ = to_stored(message, keep)
    (passage,) = split_into_passages(text, message.role)
    assert text[passage.start : passage.stop] == 'I look.\nread({"path": "a.py"})'


def test_inlined_media_become_reference_and_hash() -> None:
    data = b"not really an image"
    inlined = base64.b64encode(data).decode()
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{inlined}", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": inlined, "format": "wav"}},
        {"type": "text", "text": "data:text;base64,not media"},
    ]
    reference = f"sha256:{hashlib.sha256(data).hexdigest()};{len(data)}"
    assert there_and_back({"role": "user", "content": parts})["content"] == [
        {"type": "image_url", "image_url": {"url": reference, "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": reference, "format": "wav"}},
        {"type": "text", "text": "data:text;base64,not media"},
    ]


def test_what_a_provider_compacted_becomes_a_hash_and_our_own_reference_stays() -> None:
    held = OWN_PREFIX + "AWgnUABoRfUAc2VjcmV0LW51bWJlcg"
    items = [{"type": "compaction", "encrypted_content": text} for text in (held, "c2VjcmV0")]
    ours, theirs = there_and_back({"role": "assistant", "content": items})["content"]
    assert ours["encrypted_content"] == held
    assert theirs["encrypted_content"].startswith("sha256:")


def test_credentials_are_cleaned_wherever_they_stand() -> None:
    raw = {
        "role": "assistant",
        "content": "it is hunter2",
        "tool_calls": [{"id": "c", "function": {"name": "login", "arguments": '{"password": "hunter2"}'}}],
        "extra": [{"deep": "hunter2"}],
    }
    text, rest = to_stored(read_message(raw), hide)
    assert "hunter2" not in text + rest
    assert "[hidden]" in text
    assert from_stored(text, rest)["tool_calls"][0]["function"]["arguments"] == '{"password": "[hidden]"}'


@pytest.mark.parametrize("form", ["text", "parts"])
def test_blocks_of_ours_are_not_stored(form: str) -> None:
    said = f'{BLOCK_OPEN} kind="recall">\nQuotes.\nuser: old news\n{BLOCK_CLOSE}\n\nhello'
    content = said if form == "text" else [{"type": "text", "text": said}]
    text, rest = to_stored(read_message({"role": "user", "content": content}), keep)
    assert text == "hello"
    assert "old news" not in rest
    assert from_stored(text, rest)["content"] in ("hello", [{"type": "text", "text": "hello"}])


def nested(depth: int) -> Any:
    deep: Any = "bottom hunter2"
    for level in range(depth):
        deep = [deep] if level % 2 else {"a": deep}
    return deep


@pytest.mark.parametrize("depth", [300, 490])
def test_a_message_deeper_than_the_writer_goes_is_stored(depth: int) -> None:
    raw = {"role": "user", "content": "x", "deep": nested(depth)}
    assert there_and_back(raw) == raw


@pytest.mark.parametrize("depth", [600, 1000, 1020])
@pytest.mark.parametrize("field", ["deep", "content"])
def test_what_is_nested_deeper_still_is_stored_as_text(depth: int, field: str) -> None:
    said = {"content": [{"type": "odd", "x": nested(depth)}]} if field == "content" else {"deep": nested(depth)}
    text, rest = to_stored(read_message({"role": "user", "content": "x", **said}), hide)
    back = from_stored(text, rest)
    assert "bottom [hidden]" in rest and "hunter2" not in rest
    assert back["role"] == "user"


def test_a_credential_is_cleaned_where_only_the_name_of_its_field_tells() -> None:
    def named(text: str) -> str:
        return re.sub(r'(?<="password": ")[^"]+', "[hidden]", text)

    part = {"type": "tool_use", "id": "c", "name": "login", "input": {"password": "swordfish", "user": "ann"}}
    _, rest = to_stored(read_message({"role": "assistant", "content": [part]}), named)
    assert orjson.loads(rest)["content"][0]["input"] == {"password": "[hidden]", "user": "ann"}


def test_names_of_fields_are_cleaned() -> None:
    _, rest = to_stored(read_message({"role": "user", "content": "x", "by key": {"hunter2": 1, "a hunter2": 2}}), hide)
    assert "hunter2" not in rest
    assert orjson.loads(rest)["by key"] == {"[hidden]": 1, "a [hidden]": 2}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), lambda inner: st.lists(inner, max_size=3)
)
PARTS = st.fixed_dictionaries({"type": st.just("text"), "text": st.text()})


@given(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"])},
        optional={"content": st.none() | st.text() | st.lists(PARTS, max_size=3), "x": VALUES, "refusal": st.text()},
    )
)
def test_any_message_is_read_back_equal(raw: Json) -> None:
    assert there_and_back(raw) == raw
