"""What several of those that a request passes need to know of it is read once."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.received import ReceivedRequest
from palimpsest.domain.errors import WireError

NONE = [b"", b"{", b"[]", None]


def request_of(body: bytes | None) -> ReceivedRequest:
    return ReceivedRequest([(b"User-Agent", b"caf\xe9")], body, None)


def test_a_body_is_read_once() -> None:
    request = request_of(b'{"model": "gpt-4o", "user": "ada"}')
    assert request.model == "gpt-4o"
    assert request.json_object is request.json_object is request.fields


def test_headers_are_named_in_lower_case() -> None:
    assert request_of(None).named == {"user-agent": "café"}


def test_a_header_is_read_as_utf_8_and_several_of_one_name_are_one_list() -> None:
    sent = [
        (b"X-Palimpsest-User", "Zoë 🦊".encode()),
        (b"x-palimpsest-memory", b"off"),
        (b"X-Palimpsest-Memory", b"on"),
    ]
    named = ReceivedRequest(sent, None, None).named
    assert named == {"x-palimpsest-user": "Zoë 🦊", "x-palimpsest-memory": "off, on"}


@pytest.mark.parametrize("body", NONE)
def test_what_cannot_be_read_names_nothing(body: bytes | None) -> None:
    assert (request_of(body).fields, request_of(body).model) == ({}, "")
    with pytest.raises(WireError):
        _ = request_of(body).json_object


@pytest.mark.parametrize("body", [b'{"model": 7}', b'{"input": "x"}'])
def test_a_model_is_named_by_a_text_or_not_at_all(body: bytes) -> None:
    assert request_of(body).model == ""


def test_another_body_of_the_same_caller_is_read_anew() -> None:
    first = request_of(b'{"model": "a"}')
    assert (first.model, first.with_body(b'{"model": "b"}').model) == ("a", "b")
