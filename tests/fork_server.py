"""
Processes of `python -m palimpsest` that begin with its modules and its tokens loaded, by forking one that has them.

A start takes five seconds of processor time, its other processes included, and two to three like this. All else is as
if Python had started anew: whatever sets more than our own settings in the environment, or needs another command around
it, is to start so.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parent.parent
LOADED = ("palimpsest.app", "palimpsest.edge.loop", "palimpsest.edge.http")  # what a server imports when it starts
TICK_SECONDS = 0.02  # between two looks whether a process has ended


class ForkServer:
    """The process that is forked, from the outside; starts when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._asking = Lock()

    def start(self, words: Sequence[str], env: Mapping[str, str], log: Path) -> Forked:
        """
        Start `python -m palimpsest`.

        Args:
            words: behind the command.
            log: what it writes to both streams is appended here.
        """
        return Forked(self, self.ask({"words": list(words), "env": dict(env), "log": str(log)}) or 0)

    def ask(self, asked: object) -> int | None:
        """What the process answers."""
        with self._asking:
            if self._process is None:
                command = [sys.executable, str(Path(__file__))]
                self._process = subprocess.Popen(
                    command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            assert self._process.stdin
            assert self._process.stdout
            self._process.stdin.write(f"{json.dumps(asked)}\n")
            self._process.stdin.flush()
            answer: int | None = json.loads(self._process.stdout.readline())
            return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


class Forked:
    """A process that was forked; asked as a `subprocess.Popen` is."""

    def __init__(self, fork_server: ForkServer, pid: int) -> None:
        self._fork_server = fork_server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._fork_server.ask(self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Its exit status; `TimeoutError` after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} has not ended")
            time.sleep(TICK_SECONDS)
        return status

    def send_signal(self, sign: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sign)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def main() -> None:
    """Answer a process to be started by its number, and a number by its exit status; null while it runs."""
    for name in LOADED:
        importlib.import_module(name)
    importlib.import_module("palimpsest.memory.tokens.counter").warm()
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            ended, status = os.waitpid(asked, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        elif not (answer := os.fork()):
            _become(asked["env"], Path(asked["log"]))
            sys.argv[1:] = asked["words"]
            runpy.run_module("palimpsest", run_name="__main__", alter_sys=True)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def _become(env: Mapping[str, str], log: Path) -> None:
    """Take the environment and the streams of a new process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    nothing, written = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for source, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(written)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of whoever runs the tests, which end it otherwise
    main()
