"""A short run of each endurance script."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.endure.__main__ import main as endure
from scripts.endure.server import Relay
from tests.running import ROOT

pytestmark = pytest.mark.slow


def test_no_strange_request_is_changed_by_more_than_a_block(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.fuzz", "--bodies", "900", "--routes", "0.3", "--sockets", "0.1"]
    done = subprocess.run([*command, "--keep", tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"through", "wires", "routes", "sockets"}


@pytest.mark.parametrize(
    "words",
    [
        "kill --kills 3 --last-byte --workers 1 --words-only",
        "server --faults 4 --round 4 --clients 4",
        "forget --times 1 --clients 3 --texts 20",
    ],
)
def test_nothing_is_lost_and_nothing_fails(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert endure(words.split()) == 0, capfd.readouterr()


@pytest.mark.usefixtures("words_only")
@pytest.mark.parametrize("words", ["reload --reloads 6 --clients 4", "rolling --restarts 1 --between 0.5 --clients 4"])
def test_nothing_is_lost_and_nothing_fails_without_the_embedding_model(
    words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert endure(words.split()) == 0, capfd.readouterr()


@pytest.mark.usefixtures("unforked")
@pytest.mark.parametrize(
    "words",
    [
        "kill --kills 3 --round 3 --clients 4 --words-only",
        "kill --archive --kills 3 --round 3 --workers 1 --words-only",
        "soak --minutes 0.1 --clients 6 --think 0.3",
    ],
)
def test_nothing_is_lost_whichever_process_is_killed(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert endure(words.split()) == 0, capfd.readouterr()


def test_the_network_before_the_server_closes_what_still_goes_through_it_when_it_ends() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        Relay(door.getsockname()[1]).running() as network,
        socket.create_connection(("127.0.0.1", network.port)) as client,
    ):
        accepted, _ = door.accept()
        client.sendall(b"x")
        assert accepted.recv(1) == b"x"
    accepted.close()
    gc.collect()  # a socket that it left open is an error here
