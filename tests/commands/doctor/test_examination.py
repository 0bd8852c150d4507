"""`palimpsest doctor` says how everything stands, and its exit status whether the proxy can work."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Proxy, free_port

pytestmark = pytest.mark.slow


def doctor(tmp_path: Path, *flags: str, **variables: str) -> tuple[int, dict[str, Json]]:
    own = ["--data", str(tmp_path / "data"), "--port", str(free_port())]
    done = palimpsest("doctor", "--json", *own, *flags, env=variables)
    assert done.stderr == ""
    return done.returncode, {one["check"]: one for one in orjson.loads(done.stdout)["checks"]}


def test_a_new_machine_is_fine_and_nothing_is_made(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    status, found = doctor(tmp_path, "--upstream", upstream.url, OPENAI_API_KEY="sk-secret")
    assert status == 0
    everything = (
        "settings,data folder,free space,secret,store,model,tokenizers,port,admin token,page,Claude Code,base "
        "URLs,"
        "upstream default,clock"
    )
    assert list(found) == everything.split(",")
    assert "sk-secret" not in str(found)
    assert not (tmp_path / "data").exists()


def test_a_failure_is_the_exit_status(tmp_path: Path) -> None:
    status, found = doctor(tmp_path, "--upstream", f"http://127.0.0.1:{free_port()}")
    assert (status, found["upstream default"]["state"]) == (1, "failed")


def test_a_proxy_that_was_given_its_upstream_at_the_start_is_the_one_that_is_examined(
    own_proxy: Proxy, tmp_path: Path
) -> None:
    with own_proxy:
        _, found = doctor(tmp_path, "--port", str(own_proxy.port), "--data", str(own_proxy.data))
    assert found["port"]["state"] != "failed" and "the proxy is running" in found["port"]["found"]
    assert own_proxy.upstream_url in found["upstream default"]["found"]


def test_every_wrong_setting_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("memory: {deadline_ms: 0}\nlisten: {port: x}")
    done = palimpsest("doctor", "--config", str(tmp_path / "mine.yaml"))
    assert done.returncode == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines if line[0] == "failed"] == [["failed", "settings"]] * 2
    assert "memory.deadline_ms:" in done.stdout and "listen.port:" in done.stdout
