"""
Processes of `python -m palimpsest` that begin with what it imports, compiles and loads, by forking one that has it.

A server starts with five seconds of processor time, its other processes included, and with one to two like this; any
other command with one and a half, and with a thirtieth. All else is as if Python had started anew: whatever sets more
than our own settings and what they name in the environment, or needs another command around it, is to start so.

The processes that a server or `wrap` starts are forked, too: its `sys.executable` is a program that asks for them and
stands in their place (`tests.helper_process`): it passes signals on and ends when they end, and they do when it is
killed. Only a server whose processes are suspended, or looked for below each other, is to start anew, and a `wrap` that
is killed.
"""

from __future__ import annotations

import ast
import atexit
import gc
import importlib
import json
import multiprocessing
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import F_DUPFD_CLOEXEC, F_SETFL, F_SETOWN, LOCK_EX, fcntl, flock
from pathlib import Path
from typing import Any
from uuid import uuid4

import palimpsest

ROOT = Path(__file__).parent.parent
NOT_LOADED = ("palimpsest.__main__", "palimpsest.evaluation")  # what runs when it is imported, and benchmarks
HELPERS = ("palimpsest.memory.recording.archive_worker", "palimpsest.memory.embedding.embedding_worker")
PROGRAM = Path(__file__).with_name("helper_process.py")
WORKER = "from multiprocessing.spawn import spawn_main; "  # how the program of a worker begins
EXECUTABLE = f"""#!/bin/sh
case "$1 $2 $3" in
{"|".join(f'"-P -m {name}"' for name in HELPERS)}) shift 2 ;;
"-m palimpsest "*) shift ;;
"-c {WORKER}"*) ;;
*) exec {sys.executable} "$@" ;;
esac
exec {sys.executable} -IS {PROGRAM} ADDRESS "$@"
"""
PYTHON, ASKED = "python", "asked"  # in the folder of a process: that program, and where it is asked
METRICS_FOLDER_ENV = "PROMETHEUS_MULTIPROC_DIR"  # of a worker
WRAPPED_BY_ENV = "PALIMPSEST_WRAPPED_BY"  # of what `wrap` starts: the number of that process
ADDRESSEE_ENV = "LISTEN_PID"  # of a socket that is handed over: the number of the process that is given it
TICK_SECONDS = 0.02  # between two looks whether a process has ended
STREAMS = (0, 1, 2)
DESCRIPTORS = 16  # at most of one process: its streams, and some of a worker
TO_NUMBER = -1  # in place of a descriptor's number: whoever stands in for the process reads its number there
HIGH = 100  # descriptors from here on are none that a process is to find
QUESTION_BYTES = 1 << 20  # taken at a time; an environment has some thousands
F_SETSIG = 10  # of Linux: the signal that says that something has become of a descriptor


class ForkServer:
    """The process that is forked, from the outside: one of a run, which starts when a worker first asks."""

    def __init__(self) -> None:
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid4().hex
        self._folder = Path(tempfile.gettempdir(), f"palimpsest-forks-{run}")
        self._ours: socket.socket | None = None
        self._asking = threading.Lock()

    def start(
        self, words: Sequence[str], env: Mapping[str, str], streams: Sequence[int], folder: Path = ROOT
    ) -> Forked:
        """
        Start `python -m palimpsest`.

        Args:
            words: behind the command.
            streams: descriptors of its standard input, output and error, which stay the caller's; and of a socket, if
                one is handed over as systemd does it.
            folder: that it runs in.
        """
        targets = tuple(range(len(streams)))
        handed_over = {ADDRESSEE_ENV: "", "LISTEN_FDS": "1"} if len(streams) > len(STREAMS) else {}
        asked = {
            "words": ["palimpsest", *words],
            "env": {**env, **handed_over},
            "folder": str(folder),
            "descriptors": targets,
        }
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

    def python(self) -> Path:
        """A Python for programs that run `python -m palimpsest`, which starts that as `start` does."""
        self.run(("version",), os.environ)  # so that it has begun
        return self._folder / PYTHON

    def ask(self, asked: object, descriptors: Sequence[int] = ()) -> int | None:
        """What the process answers."""
        with self._asking:
            if self._ours is None:
                self._ours = self._connected()
                self._answers = self._ours.makefile()
            question = f"{asked!a}\n".encode()
            sent = socket.send_fds(self._ours, [question], descriptors)
            self._ours.sendall(question[sent:])
            answer: int | None = json.loads(self._answers.readline())
            return answer

    def _connected(self) -> socket.socket:
        ours, place = socket.socket(socket.AF_UNIX), str(self._folder / ASKED)
        with _alone(self._folder):
            try:
                ours.connect(place)
            except OSError:
                with socket.socket(socket.AF_UNIX) as listening:
                    listening.bind(place)
                    listening.listen()
                    listening.set_inheritable(True)
                    command = [sys.executable, __file__, str(listening.fileno()), str(self._folder)]
                    os.spawnv(os.P_NOWAIT, sys.executable, command)  # ends behind the last that asks, not the first
                ours.connect(place)
        return ours

    def close(self) -> None:
        if self._ours is not None:
            self._answers.close()
            self._ours.close()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let nobody else begin to ask, or stop to answer."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with Path(folder, "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield


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


def main(asked: socket.socket, folder: Path) -> None:
    """
    Answer a process to be started by its number, and a number by its exit status; null while it runs.

    Args:
        asked: where those who ask connect.
        folder: for the program by which servers start processes, and its socket.
    """
    os.chdir(ROOT)
    _load()
    executable, helpers = folder / PYTHON, socket.socket(socket.AF_UNIX)
    executable.write_text(EXECUTABLE.replace("ADDRESS", str(folder / "socket")))
    executable.chmod(0o700)
    helpers.bind(str(folder / "socket"))
    helpers.listen()
    asking = [asked.accept()[0]]
    started: list[int] = []  # by servers
    while True:
        ours = (asked, helpers, *asking)
        readable, _, _ = select.select(ours, (), ())
        if helpers in readable:
            started = [number for number in started if not os.waitpid(number, os.WNOHANG)[0]]
            with helpers.accept()[0] as owner:
                question, descriptors = _received(owner)
                if question:  # it was not killed before
                    started.append(_forked(question, descriptors, ours, executable, owner))
            continue
        if asked in readable:
            asking.append(asked.accept()[0])
            continue
        question, descriptors = _received(readable[0])
        if question is None:
            asking.remove(readable[0])
            readable[0].close()
            if not asking and _has_ended(asked, folder):
                return
            continue
        if isinstance(question, int):
            ended, status = os.waitpid(question, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        else:
            answer = _forked(question, descriptors, ours, executable)
        readable[0].sendall(f"{json.dumps(answer)}\n".encode())


def _has_ended(asked: socket.socket, folder: Path) -> bool:
    """Whether nobody asks any more; whoever does from now on starts another process."""
    with _alone(folder):
        if select.select((asked,), (), (), 0)[0]:
            return False
        shutil.rmtree(folder)
        return True


def _received(connection: socket.socket) -> tuple[Any, Sequence[int]]:
    """What is asked, and the descriptors with it; None behind the last."""
    question, descriptors, *_ = socket.recv_fds(connection, QUESTION_BYTES, DESCRIPTORS)
    while question and not question.endswith(b"\n"):
        question += connection.recv(QUESTION_BYTES)
    return ast.literal_eval(question.decode()) if question else None, descriptors


def _forked(
    asked: Any,
    descriptors: Sequence[int],
    ours: Sequence[socket.socket],
    executable: Path,
    owner: socket.socket | None = None,
) -> int:
    """Fork a process that runs what is asked, and ends with its owner if it has one: its number."""
    if number := os.fork():
        for descriptor in descriptors:
            os.close(descriptor)
        return number
    for one in ours:
        one.close()
    if owner is not None:
        owner = _ending_with(owner)
    _become(asked["env"], Path(asked["folder"]), descriptors, asked["descriptors"])
    words: list[str] = asked["words"]
    if sys.platform == "linux" and (owner is not None or words[1:2] in (["serve"], ["wrap"])):
        sys.executable = str(executable)
        multiprocessing.set_executable(sys.executable)
    status = _run(words)
    if owner is not None:
        owner.sendall(bytes([status]))
    os._exit(status)


def _run(words: Sequence[str]) -> int:
    """
    Run a module to its end, with what Python does at its own but for taking all apart, which would copy what is shared.

    Args:
        words: the module, or `-c` and a program, and the arguments.

    Returns:
        The exit status.
    """
    module, *sys.argv[1:] = words
    ended: object = 0
    try:
        if module == "-c":
            sys.argv[:] = words[:1] + words[2:]
            exec(words[1], {"__name__": "__main__"})
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as exiting:
        ended = exiting.code
    except BaseException:
        traceback.print_exc()
        ended = 1
    if ended is not None and not isinstance(ended, int):
        sys.stderr.write(f"{ended}\n")
        ended = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as Python does first
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return int(ended or 0)


def _ending_with(owner: socket.socket) -> socket.socket:
    """Be killed when the process at the other end ends; this end, out of the way."""
    moved = socket.socket(fileno=fcntl(owner, F_DUPFD_CLOEXEC, HIGH))
    owner.close()
    fcntl(moved, F_SETOWN, os.getpid())
    fcntl(moved, F_SETSIG, signal.SIGKILL)
    fcntl(moved, F_SETFL, os.O_ASYNC)
    if select.select((moved,), (), (), 0)[0]:  # it ended before we were to be told
        os.kill(os.getpid(), signal.SIGKILL)
    return moved


def _load() -> None:
    """Import what commands and servers import, some of it late, and compile and load what they keep."""
    for module in pkgutil.walk_packages(palimpsest.__path__, f"{palimpsest.__name__}."):
        if not module.name.startswith(NOT_LOADED):
            importlib.import_module(module.name)
    for name in HELPERS:
        del sys.modules[name]  # each is to run as the main module; what it imports stays
    importlib.import_module("palimpsest.memory.tokens.counter").warm()
    importlib.import_module("palimpsest.features.page.application").templates()
    gc.freeze()  # what nobody frees is not written to, and stays shared


def _become(
    env: Mapping[str | bytes, str | bytes], folder: Path, descriptors: Sequence[int], targets: Sequence[int]
) -> None:
    """Take the environment, the folder and the descriptors of a new process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update((os.fsdecode(name), os.fsdecode(value)) for name, value in env.items())
    if WRAPPED_BY_ENV in os.environ:  # it ends when its parent does
        os.environ[WRAPPED_BY_ENV] = str(os.getppid())
    if ADDRESSEE_ENV in os.environ:
        os.environ[ADDRESSEE_ENV] = str(os.getpid())
    if METRICS_FOLDER_ENV in os.environ:  # read when this is imported
        importlib.reload(sys.modules["prometheus_client.values"])
    os.chdir(folder)
    sources = [fcntl(descriptor, F_DUPFD_CLOEXEC, HIGH) for descriptor in descriptors]  # none is overwritten by another
    for descriptor in descriptors:
        os.close(descriptor)
    for source, target in zip(sources, targets, strict=True):
        if target == TO_NUMBER:
            os.write(source, str(os.getpid()).encode())
        else:
            os.dup2(source, target, inheritable=target in STREAMS)
        os.close(source)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr] # so that a test sees what it waits for


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of whoever runs the tests, which end it otherwise
    main(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
