"""
Processes of `python -m palimpsest` that begin with its modules and its tokens loaded, by forking one that has them.

A server starts with five seconds of processor time, its other processes included, and with two to three like this; any
other command with one and a half, and with a tenth. All else is as if Python had started anew: whatever sets more than
our own settings in the environment, or needs another command around it, is to start so.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parent.parent
LOADED = ("palimpsest.app", "palimpsest.edge.loop", "palimpsest.edge.http", "palimpsest.edge.admin.routes")
LOADED_WHOLE = ("palimpsest.commands", "palimpsest.features")  # with all that is in them
TICK_SECONDS = 0.02  # between two looks whether a process has ended
DESCRIPTORS = 3
QUESTION_BYTES = 1 << 20  # taken at a time; an environment has some thousands


class ForkServer:
    """The process that is forked, from the outside; starts when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = Lock()

    def start(
        self, words: Sequence[str], env: Mapping[str, str], streams: tuple[int, int, int], folder: Path = ROOT
    ) -> Forked:
        """
        Start `python -m palimpsest`.

        Args:
            words: behind the command.
            streams: descriptors of its standard input, output and error, which stay the caller's.
            folder: that it runs in.
        """
        asked = {"words": list(words), "env": dict(env), "folder": str(folder)}
        return Forked(self, self.ask(asked, streams) or 0)

    def run(
        self, words: Sequence[str], env: Mapping[str, str], folder: Path = ROOT, stdin: str = "", timeout: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """What a command that ends by itself says; `TimeoutError` after `timeout` seconds."""
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            forked = self.start(words, env, (given.fileno(), out.fileno(), err.fileno()), folder)
            try:
                status = forked.wait(timeout)
            except TimeoutError:
                forked.kill()
                raise
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(words), status, out.read().decode(), err.read().decode())

    def ask(self, asked: object, descriptors: Sequence[int] = ()) -> int | None:
        """What the process answers."""
        with self._asking:
            if self._process is None:
                self._ours, theirs = socket.socketpair()
                with theirs:
                    command = [sys.executable, str(Path(__file__)), str(theirs.fileno())]
                    self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
                self._answers = self._ours.makefile()
            question = f"{json.dumps(asked)}\n".encode()
            sent = socket.send_fds(self._ours, [question], descriptors)
            self._ours.sendall(question[sent:])
            answer: int | None = json.loads(self._answers.readline())
            return answer

    def close(self) -> None:
        if self._process is not None:
            self._answers.close()
            self._ours.close()
            self._process.wait()


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

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def main(asking: socket.socket) -> None:
    """Answer a process to be started by its number, and a number by its exit status; null while it runs."""
    _load()
    while True:
        question, streams, *_ = socket.recv_fds(asking, QUESTION_BYTES, DESCRIPTORS)
        while question and not question.endswith(b"\n"):
            question += asking.recv(QUESTION_BYTES)
        if not question:
            return
        asked = json.loads(question)
        if isinstance(asked, int):
            ended, status = os.waitpid(asked, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        elif not (answer := os.fork()):
            asking.close()
            _become(asked["env"], Path(asked["folder"]), streams)
            sys.argv[1:] = asked["words"]
            runpy.run_module("palimpsest", run_name="__main__", alter_sys=True)
        for descriptor in streams:
            os.close(descriptor)
        asking.sendall(f"{json.dumps(answer)}\n".encode())


def _load() -> None:
    """Import what commands and servers import, some of it late, and load the tokens."""
    for name in LOADED:
        importlib.import_module(name)
    for name in LOADED_WHOLE:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)
    importlib.import_module("palimpsest.memory.tokens.counter").warm()
    gc.freeze()  # what nobody frees is not written to, and stays shared


def _become(env: Mapping[str, str], folder: Path, streams: Sequence[int]) -> None:
    """Take the environment, the folder and the streams of a new process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    for source, target in zip(streams, range(DESCRIPTORS), strict=True):
        os.dup2(source, target)
        os.close(source)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr] # so that a test sees what it waits for


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of whoever runs the tests, which end it otherwise
    main(socket.socket(fileno=int(sys.argv[1])))
