"""How far memory may go for one request."""

from __future__ import annotations

import pytest
from palimpsest.core.caller.admission import is_excluded, mode_of
from palimpsest.domain import Chat, Mode, Speaker
from palimpsest.settings.policy import MemoryPolicy


@pytest.mark.parametrize(
    ("allowed", "header", "mode"),
    [
        ("on", "", Mode.ON),
        ("on", "off", Mode.OFF),
        ("on", " Read-Only ", Mode.READ_ONLY),
        ("on", "offf", Mode.OFF),
        ("on", "readonly", Mode.OFF),
        ("read-only", "on, off", Mode.OFF),
        ("on", " ", Mode.ON),
        ("read-only", "on", Mode.READ_ONLY),
        ("read-only", "off", Mode.OFF),
        ("off", "on", Mode.OFF),
    ],
)
def test_header_restricts_what_the_policy_allows_and_never_widens_it(allowed: str, header: str, mode: Mode) -> None:
    policy = MemoryPolicy.model_validate({"mode": allowed})
    assert mode_of({"x-palimpsest-memory": header}, policy) is mode


def test_clients_models_and_tenants_are_left_out_by_pattern() -> None:
    policy = MemoryPolicy(off_for_clients=("curl/*",), off_for_models=("tts-*",), off_for_tenants=("key:guest*",))
    assert mode_of({"user-agent": "curl/8.5"}, policy) is Mode.OFF
    assert mode_of({"user-agent": "libcurl"}, policy) is mode_of({}, policy) is Mode.ON
    chats = {model: Chat((), model, b"", {}) for model in ("tts-1", "gpt-4o")}
    assert is_excluded(chats["tts-1"], Speaker("key:acme"), policy)
    assert is_excluded(chats["gpt-4o"], Speaker("key:guest-7"), policy)
    assert not is_excluded(chats["gpt-4o"], Speaker("key:acme"), policy)
