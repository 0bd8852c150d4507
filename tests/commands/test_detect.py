"""An address in the user's variables names a provider, unless it names the proxy."""

from __future__ import annotations

import pytest
from palimpsest.commands.detect import own_base
from palimpsest.settings.policy import Policy


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
    assert own_base(wire, Policy(), environment) == found
