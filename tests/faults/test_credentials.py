"""Credentials in any place of a request reach no file of the store, and the turn is kept all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.wire.values import dumps

from tests.running import Proxy, request

pytestmark = pytest.mark.slow

SECRET = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAbC4f"


def test_a_credential_anywhere_in_a_request_reaches_no_file(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = lambda _: "All right."
    deep: object = {"password": SECRET}
    for _ in range(900):
        deep = [deep]
    message = {"role": "user", "content": f"hello {SECRET}", SECRET: {SECRET: 1}, "deep": deep}
    other = {"role": f"narrator {SECRET}", "content": "once upon a time"}
    tool = {"type": "function", "function": {"name": f"read_{SECRET}", "parameters": {}}}
    body = {"model": f"gpt-4o {SECRET}", "messages": [other, message], "user": f"ann {SECRET}", "tools": [tool]}
    headers = {"authorization": "Bearer k", "user-agent": f"agent {SECRET}", "content-type": "application/json"}
    with Proxy(tmp_path / "data", upstream.url) as proxy:
        for named in ({}, {"x-palimpsest-user": f"u {SECRET}", "x-palimpsest-scope": f"s {SECRET}"}):
            answer = request(proxy.port, "POST", "/v1/chat/completions", dumps(body).encode(), {**headers, **named})
            assert answer.status == 200, answer.body
    held = b"".join(file.read_bytes() for file in (tmp_path / "data").iterdir() if file.is_file())
    assert b"once upon a time" in held and b"[redacted:github-token]" in held
    assert SECRET.encode() not in held
