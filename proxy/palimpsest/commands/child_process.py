"""Running a command as a child process, with its own terminal, signals and exit status."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)  # which sends them to the command as well

KILLED = 128  # plus the number of the signal: the status that shells give


class Child:
    """The child process, and the signals that are passed on to it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def signalled(self) -> Iterator[None]:
        """Pass signals on to the command; one that comes before it runs raises `SystemExit`."""
        heard = {*PASSED_ON, *FROM_THE_TERMINAL}
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup
            heard.discard(signal.SIGHUP)
        before = {number: signal.signal(number, self._pass_on) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def run(self, words: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the command and return its exit status, as a shell would."""
        self._process = subprocess.Popen(words, env=environment)
        status = self._process.wait()
        return status if status >= 0 else KILLED - status

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        """Send a signal on to the child; signals of the terminal reach it without us."""
        if self._process is None:
            raise SystemExit(KILLED + number)
        if number not in FROM_THE_TERMINAL or not _is_in_foreground():
            self._process.send_signal(number)


def _is_in_foreground() -> bool:
    """Whether the terminal sends its signals to this process, and therefore to the command as well."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)
