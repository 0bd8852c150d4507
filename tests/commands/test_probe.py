"""Who listens at an address is told apart, so that no client is sent to the wrong one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from palimpsest.commands.own_address import try_listening
from palimpsest.commands.probe import Occupant, base_url_of_client, look, why_not_alive
from palimpsest.domain import Json
from palimpsest.edge.self_description import self_description
from palimpsest.settings.load import WRAPPED_BY_ENV
from palimpsest.settings.policy import ListenPolicy, Policy

from tests.running import PATIENCE_SECONDS


def policy_at(port: int, data: Path = Path("here"), upstream: str = "http://a") -> Policy:
    return Policy.model_validate({"data": data, "listen": {"port": port}, "upstreams": [{"url": upstream}]})


@contextmanager
def answering(said: bytes) -> Iterator[int]:
    """A program that says this to the first who connects, and hangs up; its port."""

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(PATIENCE_SECONDS)
            connection.recv(4096)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def http(body: Json) -> bytes:
    text = orjson.dumps(body)
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)


def test_nobody_is_there() -> None:
    assert look(policy_at(try_listening(ListenPolicy(port=0)))) is Occupant.NOBODY


@pytest.mark.parametrize("said", [b"", b"220 mail ready\r\n", http({"alive": True}), b"HTTP/1.1 200 OK\r\n\r\n[1]"])
def test_another_program_is_no_proxy(said: bytes) -> None:
    with answering(said) as port:
        assert look(policy_at(port)) is Occupant.FOREIGN


@pytest.mark.parametrize(
    ("running", "found"),
    [
        ({}, Occupant.OURS),
        ({"data": Path("there")}, Occupant.ANOTHER),
        ({"upstream": "http://b"}, Occupant.ANOTHER),
    ],
)
def test_a_proxy_is_ours_where_data_and_upstreams_are(running: Json, found: Occupant) -> None:
    with answering(http({"alive": True, **self_description(policy_at(0, **running), {})})) as port:
        assert look(policy_at(port)) is found


def test_the_proxy_of_a_wrapped_command_is_told_apart() -> None:
    with answering(http(self_description(policy_at(0), {WRAPPED_BY_ENV: "1"}))) as port:
        assert look(policy_at(port)) is Occupant.WRAPPED


def test_a_proxy_says_nothing_of_what_it_holds() -> None:
    said = str(self_description(policy_at(0, Path("/srv/acme"), "https://provider.example"), {}))
    assert "acme" not in said and "provider" not in said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (http({"alive": True}), ""),
        (http({"ready": True}), ""),
        (http({"ready": False, "reasons": ["stopping", "no disk"]}), "stopping; no disk"),
        (http({"status": "up"}), "no palimpsest answers there"),
        (b"220 mail ready\r\n", "220 mail ready"),
    ],
)
def test_what_does_not_say_yes_is_a_refusal_with_its_reasons(said: bytes, why: str) -> None:
    with answering(said) as port:
        refused = why_not_alive(ListenPolicy(port=port), "/readyz")
    assert (refused == "") == (why == "") and refused.rstrip().endswith(why)


def test_nobody_there_is_a_refusal_that_names_the_address() -> None:
    listen = ListenPolicy(host="0.0.0.0", port=try_listening(ListenPolicy(port=0)))
    assert why_not_alive(listen, "/livez").startswith(f"http://127.0.0.1:{listen.port}/livez: ")


@pytest.mark.parametrize(
    ("wire", "environment", "found"),
    [
        ("openai", {}, ("", "")),
        ("openai", {"OPENAI_BASE_URL": ""}, ("", "")),
        ("openai", {"OPENAI_BASE_URL": "http://one/v1/"}, ("OPENAI_BASE_URL", "http://one/v1")),
        ("openai", {"OPENAI_API_BASE": "http://two/v1"}, ("OPENAI_API_BASE", "http://two/v1")),
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:8484/v1"}, ("", "")),
        ("openai", {"OPENAI_BASE_URL": "http://localhost:8484/v1"}, ("", "")),
        ("openai", {"OPENAI_BASE_URL": "http://[::1]:8484/v1"}, ("", "")),
        ("openai", {"OPENAI_BASE_URL": "http://localhost:8485/v1"}, ("OPENAI_BASE_URL", "http://localhost:8485/v1")),
        ("anthropic", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8484"}, ("", "")),
        ("anthropic", {"OPENAI_BASE_URL": "http://one/v1"}, ("", "")),
        ("any", {"OPENAI_BASE_URL": "http://one/v1"}, ("", "")),
    ],
)
def test_an_address_is_the_users_unless_it_is_the_proxys(
    wire: str, environment: dict[str, str], found: tuple[str, str]
) -> None:
    assert base_url_of_client(wire, Policy(), environment) == found
