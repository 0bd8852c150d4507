"""The page of a running proxy: there by default, gone where the policy says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import Proxy, upstream_on_a_thread

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("enabled", "status", "begins"), [(True, 200, b"<!doctype html>"), (False, 404, b'{"error"')])
def test_the_policy_says_whether_there_is_a_page(tmp_path: Path, enabled: bool, status: int, begins: bytes) -> None:
    with (
        upstream_on_a_thread(ScriptedUpstream()) as upstream,
        Proxy(tmp_path / "data", f"{upstream.url}/v1", {"page": {"enabled": enabled}}) as proxy,
    ):
        answered = proxy.get("/memory/")
        assert (answered.status, answered.body.startswith(begins)) == (status, True)
        assert proxy.get("/memory/v1/health").status == 200
