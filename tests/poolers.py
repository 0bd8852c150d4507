"""PgBouncer in front of a test's server: each transaction may run on another of a few connections."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import chown
from tempfile import TemporaryDirectory

import pytest

from tests.clients.cli.program import folder as folder_of_clients
from tests.running import free_port, until
from tests.servers import OWNER, USER, Server

CONNECTIONS = 2  # to each database: fewer than clients, so that they share them
PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user={owner}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
"""


@contextmanager
def running_pooler(server: Server) -> Iterator[int]:
    """The port of a pooler in transaction mode, until the end."""
    if not Path(PROGRAM).exists():
        reason = folder_of_clients() / "no-pgbouncer"
        why = reason.read_text() if reason.exists() else "not installed, see scripts/clients"
        if os.environ.get("PALIMPSEST_CLIENTS") == "required" and not reason.exists():
            pytest.fail(f"pgbouncer: {why}")
        pytest.skip(f"needs the Debian package pgbouncer: {why}")
    with TemporaryDirectory(prefix="palimpsest-pgbouncer-") as name:
        port, file = free_port(), Path(name, "pgbouncer.ini")
        file.write_text(CONFIGURATION.format(server=server.port, owner=OWNER, port=port, connections=CONNECTIONS))
        other = {}
        if os.geteuid() == 0:
            for path in (Path(name), file):
                chown(path, USER)
            other = {"user": USER, "group": "nogroup", "extra_groups": []}
        process = subprocess.Popen([PROGRAM, "-q", str(file)], cwd=name, **other)  # type: ignore[call-overload]
        try:
            until(lambda: _answers(port), "the pooler")
            yield port
        finally:
            process.terminate()
            process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
