"""Memory acts on the paths of the wires that it reads, and on no other."""

import pytest
from palimpsest.wire import chat, compaction, messages, responses
from palimpsest.wire.registry import wire_of


@pytest.mark.parametrize(
    ("path", "wire"),
    [
        ("/v1/chat/completions", chat),
        ("/team/v1/chat/completions", chat),
        ("/v1/messages", messages),
        ("/v1/responses", responses),
        ("/v1/responses/compact", compaction),
    ],
)
def test_a_wire_is_known_by_its_path(path: str, wire: object) -> None:
    assert wire_of("POST", path) is wire


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/x"),
        ("POST", "/v1/messages/count_tokens"),
        ("GET", "/v1/responses"),
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/responses/resp_1/input_items"),
        ("HEAD", "/"),
    ],
)
def test_other_requests_pass(method: str, path: str) -> None:
    assert wire_of(method, path) is None
