"""A client that is a program of its own, run with a home of its own and no network but loopback."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import pytest
from palimpsest.domain import ToolCall

from tests.running import ROOT

RUN_SECONDS = 120  # one turn takes one to five; a client that hangs must not hold up the tests
NOBODY = "http://127.0.0.1:9"  # whoever asks for anything that is not on loopback is refused at once


@lru_cache
def folder() -> Path:
    """Where `scripts/clients` installs."""
    script = ROOT / "scripts" / "clients"
    return Path(subprocess.run([script, "where"], capture_output=True, text=True, check=True).stdout)


def installed(executable: str) -> Path:
    """A program of that folder; without it the test is skipped, or fails where the programs must be there."""
    path = folder() / executable
    if (folder() / "installed").exists():
        return path
    reason = folder() / "why-not"
    why = reason.read_text() if reason.exists() else "not installed, see scripts/clients"
    if os.environ.get("PALIMPSEST_CLIENTS") == "required" and not reason.exists():
        pytest.fail(f"{path.name}: {why}")
    pytest.skip(f"needs {path.name}: {why}")


class Program(ABC):
    """One user's client. It keeps its conversation in its home, as it does for people."""

    executable: ClassVar[str]  # inside `folder()`
    continues: ClassVar[bool] = True  # an earlier conversation, without a terminal
    full_tokens: ClassVar[int]  # reported usage after which it takes its window for full

    def __init__(self, home: Path, url: str, key: str) -> None:
        """
        Args:
            home: an empty folder; `home/work` is where the client works.
            url: the base URL of the provider, with /v1.
        """
        self.home, self.url, self.key, self.turns = home, url, key, 0
        self.through: Sequence[str] = ()  # a command that runs another one, as `palimpsest wrap --` does
        self.network: Mapping[str, str] = {}  # variables about the way to the provider
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.path = installed(self.executable)
        self.prepare()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} [{self.turns} turns] {self.home}>"

    @abstractmethod
    def prepare(self) -> None:
        """Write its configuration."""

    @abstractmethod
    def env(self) -> Mapping[str, str]:
        """What it is told by the environment."""

    @abstractmethod
    def ask(self, text: str) -> str:
        """Say something in the conversation; what the program prints."""

    @abstractmethod
    def reading(self, name: str) -> ToolCall | None:
        """A call of one of the client's own tools that shows a file of its folder; None where it has no tools."""

    def say(self, text: str) -> str:
        """`ask`, counted."""
        said = self.ask(text)
        self.turns += 1
        return said

    def say_all(self, talk: Sequence[str]) -> str:
        """Say several things, one after the other, in one run where the program has a prompt; all that it prints."""
        return "\n".join(map(self.say, talk))

    @property
    def environment(self) -> dict[str, str]:
        """All of its environment."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HTTP_PROXY": NOBODY,
            "HTTPS_PROXY": NOBODY,
            "NO_PROXY": "127.0.0.1,localhost",
            **self.env(),
            **self.network,
        }

    def run(self, *arguments: str, said: str = "") -> str:
        """Run it to its end; fails with what it printed unless it ends well."""
        ended = subprocess.run(
            [*self.through, self.path, *arguments],
            env=self.environment,
            cwd=self.work,
            input=said,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        assert ended.returncode == 0, f"{self} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout
