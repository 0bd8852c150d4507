"""What operators do beside a running proxy, again and again; half of it is killed at a random moment."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from itertools import cycle
from pathlib import Path

from tests.ledger import damage
from tests.running import ROOT, Proxy

PAUSE_SECONDS = 10.0  # between two of them: each takes a processor for a second or two
LATEST_KILL_SECONDS = 3.0  # behind its start, of which the first second is Python's
NICENESS = 5


class Chores(threading.Thread):
    """Backups, restored elsewhere and looked through; erasures of cancelled questions; checks. Until `over`."""

    def __init__(self, proxy: Proxy, folder: Path) -> None:
        """
        Args:
            folder: for backups.
        """
        super().__init__(name="chores", daemon=True)
        self.over = threading.Event()
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self._proxy, self._folder = proxy, folder

    def run(self) -> None:
        for number, chore in enumerate(cycle((self._back_up, self._erase, self._check))):
            if self.over.wait(PAUSE_SECONDS):
                return
            chore(number)

    def _back_up(self, number: int) -> None:
        file, place = self._folder / f"{number}.backup", self._folder / f"restored-{number}"
        if not self._runs("backup", str(file), "--data", str(self._proxy.data)):
            file.unlink(missing_ok=True)
            return
        if self._runs("restore", str(file), "--data", str(place), may_be_killed=False) and damage(place):
            self.failures.append("a backup is damaged")
        file.unlink()

    def _erase(self, _: int) -> None:
        """Of what clients asked and left before it was answered: the ledger does not hold that."""
        self._runs("forget", "--matching", "Never mind number", "--yes", "--data", str(self._proxy.data))

    def _check(self, _: int) -> None:
        self._runs("check", "--data", str(self._proxy.data))

    def _runs(self, *words: str, may_be_killed: bool = True) -> bool:
        """Run a command of the proxy; whether it succeeded. One that fails without having been killed is a failure."""
        command = [sys.executable, "-m", "palimpsest", *words]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | self._proxy.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.nice(NICENESS),
        ) as process:
            is_killed = may_be_killed and random.random() < 0.5
            try:
                _, said = process.communicate(timeout=random.uniform(0, LATEST_KILL_SECONDS) if is_killed else None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                self.done[f"{words[0]} killed"] += 1
                return False
        self.done[words[0]] += process.returncode == 0
        if process.returncode:
            self.failures.append(f"{' '.join(words[:1])}: status {process.returncode}: {said.strip()[-300:]}")
        return process.returncode == 0
