"""
The files that make the proxy a service of its user: units of systemd, a property list of launchd.

Each has a line with a hash of its other lines, which tells a file that somebody has changed from one as it was written.
"""

from __future__ import annotations

import hashlib
import plistlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from palimpsest.settings.policy import ListenPolicy

NAME = "palimpsest"
MARK = "written by palimpsest service install; hash of the other lines: "
MARKED = re.compile(rf"^.*{MARK}(?P<hash>[0-9a-f]{{16}}).*\n", re.MULTILINE)
HASH_CHARS = 16  # tells a changed file; nobody forges one

RETRY_SECONDS = 5  # between attempts to start: a configuration that is mended is tried soon, and the log stays short
STOP_SECONDS = 30  # listen.shutdown_seconds by default, with time to write what was heard last
BACKLOG = 2048  # as many connections may wait as the proxy itself lets wait

SERVICE = """\
[Unit]
Description=Palimpsest, a proxy that gives LLM applications memory
Requires={name}.socket
After={name}.socket
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
# Settings and keys, a variable a line.
EnvironmentFile=-%E/palimpsest/environment
Restart=on-failure
RestartSec={retry}
KillMode=mixed
TimeoutStopSec={stop}
UMask=0077

[Install]
WantedBy=default.target
"""

SOCKET = """\
[Unit]
Description=The port of Palimpsest

[Socket]
ListenStream={address}
Backlog={backlog}

[Install]
WantedBy=sockets.target
"""


def units(command: Sequence[str], listen: ListenPolicy, folder: Path) -> dict[Path, str]:
    """Systemd's units: the socket stays open while the service starts, restarts or fails, and requests wait there."""
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    host = "127.0.0.1" if host == "localhost" else host
    line = " ".join(map(quoted, command))
    service = SERVICE.format(name=NAME, command=line, retry=RETRY_SECONDS, stop=STOP_SECONDS)
    socket = SOCKET.format(address=f"{host}:{listen.port}", backlog=BACKLOG)
    return {folder / f"{NAME}.socket": _with_mark(socket), folder / f"{NAME}.service": _with_mark(service)}


def agent(command: Sequence[str], home: Path) -> dict[Path, str]:
    """Launchd's property list: the proxy starts with the session, and again whenever it ends."""
    log = str(home / "Library" / "Logs" / f"{NAME}.log")
    properties = {
        "Label": NAME,
        "ProgramArguments": list(command),
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": RETRY_SECONDS,
        "ExitTimeOut": STOP_SECONDS,
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    text = plistlib.dumps(properties, sort_keys=False).decode()
    first, rest = text.split("\n", 1)
    return {home / "Library" / "LaunchAgents" / f"{NAME}.plist": f"{first}\n<!-- {MARK}{_hash(text)} -->\n{rest}"}


def quoted(word: str) -> str:
    """One word of a command in a unit; systemd expands $ and % elsewhere."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$").replace("%", "%%")
    return f'"{escaped}"' if not re.fullmatch(r"[\w@+=:,./-]+", word) else word


def is_as_written(text: str) -> bool:
    """Whether a file's text is one that was written here, and nobody has changed."""
    match = MARKED.search(text)
    return match is not None and match["hash"] == _hash(MARKED.sub("", text, count=1))


def changed(files: Mapping[Path, str]) -> list[Path]:
    """Those files that are there and are not as they were written."""
    return [file for file in files if file.exists() and not is_as_written(file.read_text(encoding="utf-8"))]


def _with_mark(text: str) -> str:
    return f"# {MARK}{_hash(text)}\n{text}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]
