"""What a request takes from what the provider keeps is found wherever it stands, and nothing else is taken for it."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.domain.errors import WireError
from palimpsest.wire.kept import ProviderReferences, is_stateless, provider_references

FILE = {"type": "input_file", "file_id": "file-1"}
SCHEMA = {
    "type": "object",
    "properties": {"file_id": {"type": "string"}, "container": {"type": "string"}, "id": {"type": "string"}},
    "required": ["file_id", "container"],
}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "open", "input": {"file_id": "x", "id": "y"}}


@pytest.mark.parametrize(
    ("body", "answers"),
    [
        ({"previous_response_id": "resp_1"}, ("resp_1",)),
        ({"input": [{"type": "item_reference", "id": "msg_1"}, {"id": "msg_2"}]}, ("msg_1", "msg_2")),
        (
            {"input": [{"type": "image_generation_call", "id": "ig_1"}, {"type": None, "id": "msg_1"}]},
            ("ig_1", "msg_1"),
        ),
        ({"previous_response_id": "resp_1", "input": [{"type": "item_reference", "id": "resp_1"}]}, ("resp_1",)),
    ],
)
def test_answers_are_named(body: Json, answers: tuple[str, ...]) -> None:
    assert provider_references(orjson.dumps(body)) == ProviderReferences(answers, ())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"conversation": "conv_1"}, "conversation"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"container": "container_1"}, "container"),
        ({"container": {"id": "container_1", "skills": []}}, "container"),
        ({"input": [{"role": "user", "content": [FILE]}]}, "file_id"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "file_id"),
        ({"messages": [{"content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}]}, "file_id"),
        ({"prompt": {"id": "pmpt_1", "variables": {"x": FILE}}}, "file_id"),
        ({"images": [{"file_id": "file-1"}]}, "file_id"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "vector_store_ids"),
        ({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}, "container"),
        ({"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}}]}, "file_ids"),
    ],
)
def test_everything_else_is_named_by_its_field(body: Json, field: str) -> None:
    assert provider_references(orjson.dumps(body)) == ProviderReferences((), (field,))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"previous_response_id": None, "conversation": None, "container": None, "input": "file_id"},
        {"input": [{"type": "message", "id": "msg_1", "role": "assistant", "content": []}]},
        {"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}]},
        {
            "input": [
                {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": '{"file_id": "x"}'}
            ]
        },
        {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA}, {"name": "g", "input_schema": SCHEMA}]},
        {"messages": [{"role": "assistant", "content": [CALL]}]},
        {"metadata": {"id": "1", "file_id": "2", "conversation": "3"}, "tools": [{"type": "code_interpreter"}]},
    ],
)
def test_what_only_looks_like_it_is_not_named(body: Json) -> None:
    assert provider_references(orjson.dumps(body)) == ProviderReferences((), ())


def test_a_key_that_stands_twice_counts_twice() -> None:
    twice = (
        b'{"previous_response_id": "resp_1", "conversation": "c", "previous_response_id": null, "conversation": null}'
    )
    assert provider_references(twice) == ProviderReferences(("resp_1",), ("conversation",))


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'{"a":', b"[" * 100_000])
def test_what_cannot_be_read_is_said(body: bytes) -> None:
    with pytest.raises(WireError):
        provider_references(body)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"])
def test_what_leaves_nothing_behind_is_stateless(path: str) -> None:
    assert is_stateless("POST", path) and is_stateless("GET", "/v1/models/openai/gpt-4o") and is_stateless("HEAD", "/")
    assert not is_stateless("GET", path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", f"/v1/{kind}") for kind in ("files", "responses/resp_1", "responses/resp_1/input_items", "batches")),
        *(("GET", f"/v1/{kind}") for kind in ("conversations/conv_1/items", "chat/completions", "vector_stores", "x")),
        *(("POST", f"/v1/{kind}") for kind in ("files", "conversations", "responses/input_tokens", "messages/batches")),
        *(
            ("DELETE", "/v1/models/ft:mine"),
            ("POST", "/x/v1/responses"),
            ("POST", "/v1/%66iles"),
            ("GET", "/v1/modelsx"),
        ),
    ],
)
def test_whatever_is_not_listed_may_keep_something(method: str, path: str) -> None:
    assert not is_stateless(method, path)
