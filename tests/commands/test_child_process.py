"""A command is run as if nobody stood in between."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal
from palimpsest.commands.child_process import Child

signal.signal(signal.SIGHUP, signal.{ignored})
child = Child()
with child.signalled():
    print(child.run(["sh", "-c", "kill -HUP $$; exit 7"], os.environ))
"""


def status(ignored: str) -> str:
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(ignored=ignored)], capture_output=True, text=True)
    return ran.stdout.strip()


def test_a_hangup_that_the_caller_ignores_is_ignored_by_the_command_too() -> None:
    assert status("SIG_IGN") == "7"
    assert status("SIG_DFL") == "129"
