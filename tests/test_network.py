"""The proxy speaks with its upstreams and with nobody else, and leaves nothing in anybody else's folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.memory.embedding.model import locate
from palimpsest.settings.policy import ModelPolicy

from tests.running import ROOT, Conversation, Proxy, memory_in

pytestmark = pytest.mark.slow

# What an application may say to the network with, and the addresses in what strace writes of it. A name that is looked
# up shows as a message to port 53, whoever looks it up, and whether or not anybody answers.
SENDING = "trace=connect,sendto,sendmsg,sendmmsg"
ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?"([0-9a-f.:]+)"')

FOREIGN = (".cache/Microsoft", ".config", ".cache/huggingface")

FIRST_REPORT_SECONDS = 11.0  # ONNX Runtime looks for whom to report to 9 s after it was imported


@pytest.fixture
def strace() -> list[str]:
    """The command that traces another one and what it starts, beside it: signals are still the other one's."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace; on Debian or Ubuntu: sudo apt install strace")
    if subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to trace processes (ptrace), which this machine or container withholds")
    return ["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-e", SENDING]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def traces(file: Path) -> set[tuple[str, int]]:
    """Every address and port that was spoken to."""
    return {(address, int(port)) for port, address in ADDRESS.findall(file.read_text(errors="replace"))}


def test_nobody_is_spoken_to_but_the_upstream(
    strace: list[str], home: Path, tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    model = locate(ModelPolicy()) or pytest.skip("needs the embedding model: run palimpsest model install")
    plain: Json = {"name": "plain", "models": ["gpt-*"], "url": upstream.url}
    bridged: Json = {"name": "bridged", "litellm": "openai/*", "url": upstream.url, "key_env": "PROVIDER_KEY"}
    settings = {"upstreams": [plain, bridged], "model": {"folder": str(model)}}
    upstream.script = lambda body: f"I read all {len(body['messages'])} messages, and keep the archive's rooms in mind."
    trace = tmp_path / "trace"
    proxy = Proxy(tmp_path / "data", "", settings, HOME=str(home), HF_HUB_OFFLINE="", PROVIDER_KEY="sk-x")
    proxy.under = [*strace, "-o", str(trace)]
    with proxy:
        talk = Conversation(proxy, "sk-one")
        assert talk.say("The archive room is number 3172, and its door opens to the left.").status == 200
        for shelf in range(3):
            talk.say(f"Then we went through shelf {shelf} and wrote down every single title on it.")
        proxy.settle()
        talk.keep_last(2)
        talk.ask("What is the number of the archive room?")
        assert "3172" in memory_in(upstream.received[-1].json)
        assert proxy.chat(talk.body() | {"model": "other"}).status == 200
        time.sleep(FIRST_REPORT_SECONDS)
        assert proxy.stop() == 0
    assert traces(trace) == {("127.0.0.1", upstream.port)}
    assert [name for name in FOREIGN if (home / name).exists()] == []


def test_no_process_of_ours_names_this_machine(home: Path) -> None:
    """ONNX Runtime would give it a lasting id, in whatever process imports it."""
    program = "import palimpsest.memory.embedding.onnx_graph"
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT / "proxy"), "ORT_DISABLE_TELEMETRY": ""}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)
    assert [*home.iterdir()] == []
