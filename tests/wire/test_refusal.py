"""A refusal has the shape that the client's SDK reads."""

import orjson
import pytest
from palimpsest.domain import RawHeaders
from palimpsest.wire.refusal import anthropic, openai, refusal_of


@pytest.mark.parametrize(
    ("path", "headers", "shape"),
    [
        ("/v1/chat/completions", (), openai),
        ("/v1/responses", ((b"user-agent", b"x"),), openai),
        ("/v1/messages", (), anthropic),
        ("/team/v1/messages/count_tokens", (), anthropic),
        ("/v1/models", ((b"anthropic-version", b"2023-06-01"),), anthropic),
        ("/api/hello", ((b"anthropic-beta", b"oauth"),), anthropic),
    ],
)
def test_the_shape_follows_from_path_and_version(path: str, headers: RawHeaders, shape: object) -> None:
    assert refusal_of(path, headers) is shape


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (502, "api_error"),
        (504, "timeout_error"),
    ],
)
def test_messages_clients_get_the_type_that_their_status_has(status: int, kind: str) -> None:
    said = orjson.loads(anthropic(status, "a_code", "what to do"))
    assert said == {"type": "error", "error": {"type": kind, "message": "what to do (a_code)"}}


@pytest.mark.parametrize(("status", "kind"), [(404, "invalid_request_error"), (502, "api_error")])
def test_others_get_a_code_and_a_type(status: int, kind: str) -> None:
    said = orjson.loads(openai(status, "a_code", "what to do"))
    assert said == {"error": {"message": "what to do", "type": kind, "param": None, "code": "a_code"}}
