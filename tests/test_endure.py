"""A short run of each endurance script."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.running import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "arguments",
    [
        ["kill", "--kills", "3", "--round", "3", "--clients", "4", "--words-only"],
        ["kill", "--archive", "--kills", "3", "--round", "3", "--workers", "1", "--words-only"],
        ["kill", "--kills", "3", "--last-byte", "--workers", "1", "--words-only"],
        ["migrate", "--kills", "10"],
        ["soak", "--minutes", "0.1", "--clients", "6", "--think", "0.3"],
        ["reload", "--reloads", "6", "--clients", "4"],
        ["forget", "--times", "1", "--clients", "3"],
        ["rolling", "--restarts", "1", "--between", "0.5", "--clients", "4"],
    ],
    ids=lambda arguments: "-".join(word.strip("-") for word in arguments[:4]),
)
def test_nothing_is_lost_and_nothing_fails(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "scripts.endure", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
