"""A PostgreSQL server of a test's own: Debian's version 15, in a folder that goes with it, on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from shutil import chown
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from palimpsest.store.engine.postgres.database import Database

from tests.clients.cli.program import folder as folder_of_clients

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
USER = "nobody"  # PostgreSQL does not serve root
OWNER = "palimpsest"  # may create databases, and nothing else: row-level security holds for it
ADMIN = "postgres"


@dataclass
class Server:
    """A server that runs. Its user `palimpsest` needs no password."""

    folder: Path
    port: int
    connections: int = 200
    numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{OWNER}@127.0.0.1:{self.port}/{database}"

    def new_database(self, template: str = "template0") -> str:
        """The URL of a new database."""
        name = f"test_{next(self.numbers)}"
        # by its files, not through the log: half the work for hundreds of small ones
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected to it: also the server itself, to vacuum it."""
        self._execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)", ADMIN)

    def _execute(self, sql: str, user: str = OWNER) -> None:
        """By a connection: to start psql takes as long as to make a database."""
        with closing(psycopg.connect(self.url(), user=user, autocommit=True)) as connection:
            connection.execute(sql.encode())

    def rows(self, url: str, sql: str) -> list[tuple[Any, ...]]:
        """What a statement finds, whosever the rows are."""
        with closing(psycopg.connect(url, user=ADMIN)) as connection:
            return connection.execute(sql.encode()).fetchall()

    def psql(self, script: str, database: str = "postgres", user: str = OWNER) -> str:
        """What a script tells on standard error."""
        command = [PROGRAMS / "psql", "-XqAt", "-U", user, "-h", "127.0.0.1", "-p", str(self.port), database]
        return subprocess.run(command, input=script, capture_output=True, text=True, check=True).stderr

    def control(self, *arguments: str) -> None:
        """Run pg_ctl."""
        _run(self.folder, "pg_ctl", "-w", "-l", str(self.folder / "log"), *arguments)

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories={self.folder}"
        options += f" -c fsync=off -c full_page_writes=off -c max_connections={self.connections}"
        self.control("-o", options, "start")

    def stop(self) -> None:
        """As by a crash."""
        self.control("-m", "immediate", "stop")

    def processes(self) -> list[int]:
        """Of this server, the one that starts the others first."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]

    @contextmanager
    def standby(self) -> Iterator[Server]:
        """A server that has all that this one acknowledges, until the end; it takes writes once it is promoted."""
        with _folder() as folder:
            source = ["-h", "127.0.0.1", "-p", str(self.port), "-U", ADMIN]
            _run(folder, "pg_basebackup", *source, "-R", "-c", "fast", "--no-sync")
            with _serving(folder, self.connections) as other:
                self.psql("ALTER SYSTEM SET synchronous_standby_names = '*'", user=ADMIN)
                self.psql("SELECT pg_reload_conf()", user=ADMIN)
                yield other


@contextmanager
def running_server(connections: int = 200) -> Iterator[Server]:
    """A new server that takes so many connections, until the end."""
    if not (PROGRAMS / "initdb").exists():
        reason = folder_of_clients() / "no-postgresql-15"
        why = reason.read_text() if reason.exists() else "not installed, see scripts/clients"
        if os.environ.get("PALIMPSEST_CLIENTS") == "required" and not reason.exists():
            pytest.fail(f"postgresql-15: {why}")
        pytest.skip(f"needs the Debian package postgresql-15: {why}")
    with _folder() as folder:
        _run(folder, "initdb", "-U", ADMIN, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        with _serving(folder, connections) as server:
            server.psql(f"CREATE ROLE {OWNER} LOGIN CREATEDB", user=ADMIN)
            yield server


def made(url: str) -> str:
    """The same URL, once its database has its tables."""

    async def make() -> None:
        database = Database(url)
        await database.open()
        await database.close()

    with ThreadPoolExecutor(1) as beside:  # the loops of the tests are no concern of this one
        beside.submit(asyncio.run, make()).result()
    return url


@contextmanager
def _folder() -> Iterator[Path]:
    # each database is eight megabytes, and a disk takes longer to forget hundreds than they took to be made
    with TemporaryDirectory(prefix="palimpsest-postgres-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as name:
        if os.geteuid() == 0:
            chown(name, USER)
        yield Path(name)


@contextmanager
def _serving(folder: Path, connections: int) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = Server(folder, free.getsockname()[1], connections)
    server.start()
    try:
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()


def _run(folder: Path, program: str, *arguments: str) -> None:
    other = {"user": USER, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    command = [PROGRAMS / program, "-D", folder / "data", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **other)
