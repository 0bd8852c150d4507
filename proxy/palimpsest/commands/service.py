"""
`palimpsest service`: the proxy as a service of its user, by systemd on Linux and by launchd on macOS.

Nothing is written but by `install`, which shows each file; `uninstall` removes those files and no other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from palimpsest.commands import service_files
from palimpsest.commands.own_address import address, try_listening
from palimpsest.commands.probe import Occupant, look, why_not_alive
from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, listen_flags, policy_flags, policy_of
from palimpsest.domain.errors import MemoryFault, PolicyError, faults
from palimpsest.settings import load
from palimpsest.settings.policy import ListenPolicy, Policy

FILE_MODE = 0o600  # of what is written: an address of a provider may stand in it
INSTEAD = (
    "start it by other means (docs/unavailable.md): palimpsest wrap needs none, palimpsest serve runs in a terminal"
)


class Manager(Protocol):
    """The program that starts services of a user."""

    def files(self, command: Sequence[str], listen: ListenPolicy) -> dict[Path, str]:
        """The files of a service, with their texts."""

    def demand_running(self) -> None:
        """Raise MemoryFault where the manager does not run for this user."""

    def start(self) -> None:
        """Load the files that are there, and start their service now and with each session."""

    def stop(self) -> None:
        """Stop the service, and do not start it with sessions any more."""

    def state(self) -> str:
        """The state of the service in a word or two."""


@dataclass(frozen=True, slots=True)
class Systemd:
    """The user's systemd. It holds the port."""

    environment: Mapping[str, str]

    def files(self, command: Sequence[str], listen: ListenPolicy) -> dict[Path, str]:
        start = self.environment.get("XDG_CONFIG_HOME") or Path(self.environment.get("HOME", ""), ".config")
        return service_files.units(command, listen, Path(start, "systemd", "user"))

    def demand_running(self) -> None:
        try:
            self._call("show-environment")
        except MemoryFault as cause:
            raise MemoryFault(f"no systemd runs for this user ({cause}); {INSTEAD}") from cause

    def start(self) -> None:
        self._call("daemon-reload")
        self._call("enable", "--now", f"{service_files.NAME}.socket")
        self._call("enable", "--now", f"{service_files.NAME}.service")

    def stop(self) -> None:
        self._call("disable", "--now", f"{service_files.NAME}.socket", f"{service_files.NAME}.service")

    def state(self) -> str:
        """The states of socket and service in words."""
        units = [f"{service_files.NAME}.{kind}" for kind in ("socket", "service")]
        done = _run("systemctl", "--user", "is-active", *units, environment=self.environment)
        states = done.stdout.split()
        return f"socket {states[0]}, service {states[1]}" if len(states) == len(units) else done.stderr.strip()

    def _call(self, *words: str) -> None:
        _raise_if_failed(_run("systemctl", "--user", *words, environment=self.environment))


@dataclass(frozen=True, slots=True)
class Launchd:
    """The user's launchd."""

    environment: Mapping[str, str]

    def files(self, command: Sequence[str], listen: ListenPolicy) -> dict[Path, str]:
        return service_files.agent(command, Path(self.environment.get("HOME", "")))

    def demand_running(self) -> None:
        try:
            _raise_if_failed(_run("launchctl", "print", self._domain(), environment=self.environment))
        except MemoryFault as cause:
            raise MemoryFault(f"no launchd runs for this user's session ({cause}); {INSTEAD}") from cause

    def start(self) -> None:
        (file,) = self.files((), ListenPolicy())
        _raise_if_failed(_run("launchctl", "bootstrap", self._domain(), str(file), environment=self.environment))

    def stop(self) -> None:
        _raise_if_failed(
            _run("launchctl", "bootout", f"{self._domain()}/{service_files.NAME}", environment=self.environment)
        )

    def state(self) -> str:
        done = _run("launchctl", "print", f"{self._domain()}/{service_files.NAME}", environment=self.environment)
        lines = [line.strip() for line in done.stdout.splitlines()]
        return next((line for line in lines if line.startswith("state = ")), done.stderr.strip())

    def _domain(self) -> str:
        return f"gui/{os.getuid()}"


def add_commands(command: Command) -> None:
    parser = command(
        "service", _service, "Run the proxy as a service of this user: systemd on Linux, launchd on macOS."
    )
    parser.add_argument(
        "action",
        choices=["install", "status", "uninstall"],
        help="install: write its files and start it; status: show its state; uninstall: stop it and remove the files",
    )
    policy_flags(parser)
    listen_flags(parser)


def _service(given: argparse.Namespace) -> int:
    manager = manager_of(sys.platform, os.environ)
    if given.action == "uninstall":
        return uninstall(manager)
    policy = policy_of(given)
    if given.action == "status":
        return status(manager, policy)
    install(manager, policy, command_of(given), os.environ)
    return DONE


def manager_of(platform: str, environment: Mapping[str, str]) -> Manager:
    """The service manager of this platform; raises `MemoryFault`: none that is known here."""
    if platform == "linux":
        return Systemd(environment)
    if platform == "darwin":
        return Launchd(environment)
    raise MemoryFault(f"palimpsest service knows systemd and launchd, and {platform} has neither; {INSTEAD}")


def command_of(given: argparse.Namespace) -> list[str]:
    """The command that the service runs: `serve` with the same options, from any folder."""
    words = [sys.executable, "-m", "palimpsest", "serve", "--forward-anyway"]
    for file in given.config or ():
        is_preset = load.preset_or_file(file) != file
        words += ["--config", str(file if is_preset else file.absolute())]
    if given.data:
        words += ["--data", str(Path(given.data).expanduser().absolute())]
    for flag in ("host", "port", "upstream"):
        if (value := getattr(given, flag)) is not None:
            words += [f"--{flag}", str(value)]
    return words


def install(manager: Manager, policy: Policy, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """
    Write the files, show them, and start the service. One that was installed before is replaced.

    Raises:
        PolicyError: the port is 0, or a file there is somebody else's.
        MemoryFault: no service can be started here, or it did not start.
    """
    if not policy.listen.port:
        raise PolicyError("listen.port: a service needs a port that clients know: choose another one than 0")
    manager.demand_running()
    files, out = manager.files(command, policy.listen), terminal.console()
    if theirs := service_files.changed(files):
        raise PolicyError(f"{theirs[0]}: was not written by palimpsest service install, or changed since: move it away")
    if any(file.exists() for file in files):
        manager.stop()
    try:
        try_listening(policy.listen)
    except OSError as cause:
        who = look(policy)
        reason = f"taken by {who}" if who is not Occupant.NOBODY else (cause.strerror or str(cause)).lower()
        hint = "stop what is listening there, or choose another --port"
        raise PolicyError(f"listen.port: {address(policy.listen)}: {reason}; {hint}") from cause
    for file, text in files.items():
        with faults(OSError, f"writing {file}"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            file.chmod(FILE_MODE)
        out.print(terminal.safe(f"wrote {file}:"))
        out.print(
            terminal.safe(""), *(terminal.safe(f"    {line}") for line in text.splitlines()), sep="\n", soft_wrap=True
        )
    manager.start()
    left = sorted(name for name in environment if name.startswith(load.PREFIX) and name != "PALIMPSEST_VENV")
    if left:
        out.print(terminal.safe(f"not copied from the environment: {', '.join(left)}; docs/unavailable.md says how"))
    out.print(terminal.safe(f"the proxy answers at {address(policy.listen)}; to undo: palimpsest service uninstall"))


def status(manager: Manager, policy: Policy) -> int:
    """Show the files, what the manager says, and whether the proxy answers; done if it does."""
    out, files = terminal.console(), manager.files((), policy.listen)
    for file in files:
        there = "is not there"
        if file.exists():
            there = "changed since it was written" if service_files.changed({file: ""}) else "as it was written"
        out.print(terminal.safe(f"{file}: {there}"))
    out.print(terminal.safe(manager.state()))
    why = why_not_alive(policy.listen, "/livez")
    out.print(terminal.safe(why or f"the proxy answers at {address(policy.listen)}"))
    if policy.server.url and not why:
        trouble = why_not_alive(policy.listen, "/readyz")
        out.print(terminal.safe(trouble or f"memory is kept at {policy.server.url}, and nothing waits for it here"))
    return FAILED if why else DONE


def uninstall(manager: Manager) -> int:
    """Stop the service and remove its files; those that somebody has changed stay."""
    out, files = terminal.console(), manager.files((), ListenPolicy())
    there = [file for file in files if file.exists()]
    if not there:
        out.print("no service is installed")
        return DONE
    kept = service_files.changed(files)
    try:
        manager.stop()
    except MemoryFault as fault:
        out.print(terminal.safe(f"could not be stopped: {fault}"))
    for file in there:
        if file not in kept:
            with faults(OSError, f"removing {file}"):
                file.unlink()
        out.print(terminal.safe(f"left, because it was changed: {file}" if file in kept else f"removed {file}"))
    return FAILED if kept else DONE


def _run(*words: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command; raises `MemoryFault`: there is no such program."""
    try:
        return subprocess.run(words, env=dict(environment), capture_output=True, text=True, check=False)
    except OSError as cause:
        raise MemoryFault(f"{words[0]}: {(cause.strerror or str(cause)).lower()}") from cause


def _raise_if_failed(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        reason = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise MemoryFault(f"{' '.join(done.args)}: {reason}")
