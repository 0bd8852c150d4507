"""The proxy's own address, as clients reach it."""

from __future__ import annotations

import socket

import pytest
from palimpsest.commands.own_address import address, try_listening
from palimpsest.settings.policy import ListenPolicy


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9"),
        ("0.0.0.0", "http://127.0.0.1:9"),
        ("::", "http://[::1]:9"),
        ("box.local", "http://box.local:9"),
    ],
)
def test_an_address_is_one_that_a_client_can_connect_to(host: str, url: str) -> None:
    assert address(ListenPolicy(host=host, port=9)) == url


def test_an_address_can_be_claimed_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError, match="in use"):
        try_listening(ListenPolicy(port=other.getsockname()[1]))
    assert try_listening(ListenPolicy(port=0)) > 0
