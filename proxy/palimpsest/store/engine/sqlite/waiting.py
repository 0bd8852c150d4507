"""
The waiting room on the disk: records in the order in which they came, until somebody has taken them over.

It is a database file of its own, so that whatever the other database does, it can be written; what stands there
survives a kill. Records are enciphered: no credential reaches the disk in the clear. The file is its owner's alone.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b, shake_256
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.domain.errors import MemoryFault

FILE_MODE = 0o600
NONCE_BYTES = 16  # drawn for each record: no two ever share one
BUSY_SECONDS = 2.0  # for another process of the same folder, whose writes take milliseconds

LANE_BYTES = 16  # of the keyed hash by which a lane is known

TABLE = """
CREATE TABLE IF NOT EXISTS waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT, lane BLOB NOT NULL, name TEXT NOT NULL, nonce BLOB NOT NULL,
    sealed BLOB NOT NULL)
"""


class WaitingRoom:
    """
    First in, first out in each lane. Call every method on one thread at a time, and `close` in the end.

    Every method raises `MemoryFault` where the file cannot be read or written.
    """

    def __init__(self, file: Path, secret: bytes, most_bytes: int) -> None:
        self._file = file  # made when it is needed for the first time
        self._key = blake2b(b"waiting", key=secret[:64]).digest()
        self._most_bytes = most_bytes  # of all records that wait
        self._open: sqlite3.Connection | None = None
        self._size_bytes = 0  # of all records, at this version of what others wrote; None: not known
        self._version: int | None = None

    def lane(self, name: str) -> bytes:
        """The lane of this name; it does not tell the name."""
        return blake2b(name.encode(), digest_size=LANE_BYTES, key=self._key).digest() if name else b""

    def put(self, name: str, record: bytes, lane: bytes = b"") -> int:
        """
        Append a record; returns its number, higher than all before. Raises `MemoryFault`: also where there is no room.
        """
        nonce = secrets.token_bytes(NONCE_BYTES)
        with self._connection(f"writing {name} to {self._file}") as connection:
            if self.size_bytes() + len(record) > self._most_bytes:
                raise MemoryFault(f"writing {name} to {self._file}: more than {self._most_bytes} bytes wait already")
            statement = "INSERT INTO waiting (lane, name, nonce, sealed) VALUES (?, ?, ?, ?)"
            number = connection.execute(statement, (lane, name, nonce, self._ciphered(record, nonce))).lastrowid
            assert number is not None
            self._size_bytes += len(record)
            return number

    def lanes(self) -> list[tuple[bytes, int, int]]:
        """The lanes in which records wait: each with the number of its first, and how many they are."""
        return self._rows("SELECT lane, min(number), count(*) FROM waiting GROUP BY lane")

    def first(self, lane: bytes) -> tuple[int, int] | None:
        """The first record of a lane: its number and its size in bytes; None: none waits."""
        of_lane = "SELECT number, length(sealed) FROM waiting WHERE lane = ? ORDER BY number LIMIT 1"
        return next(iter(self._rows(of_lane, lane)), None)

    def read(self, number: int) -> tuple[str, bytes] | None:
        """A record behind its name; None: it is gone."""
        found = self._rows("SELECT name, nonce, sealed FROM waiting WHERE number = ?", number)
        return next(((name, self._ciphered(sealed, nonce)) for name, nonce, sealed in found), None)

    def remove(self, number: int) -> None:
        with self._connection(f"writing {self._file}") as connection:
            gone = connection.execute("DELETE FROM waiting WHERE number = ? RETURNING length(sealed)", (number,))
            self._size_bytes -= sum(size_bytes for (size_bytes,) in gone)

    def count(self) -> int:
        """How many records wait."""
        return sum(count for *_, count in self.lanes())

    def size_bytes(self) -> int:
        """How many bytes they have; raises as `count`."""
        version = next((version for (version,) in self._rows("PRAGMA data_version")), None)
        if version != self._version:  # they are many, and asked for whenever one is added
            found = self._rows("SELECT coalesce(sum(length(sealed)), 0) FROM waiting")
            self._size_bytes, self._version = sum(size_bytes for (size_bytes,) in found), version
        return self._size_bytes

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = self._version = None

    def _rows(self, statement: str, *given: object) -> list[tuple[Any, ...]]:
        """What is read; nothing where nothing was ever put."""
        if self._open is None and not self._file.exists():
            return []
        with self._connection(f"reading {self._file}") as connection:
            return connection.execute(statement, given).fetchall()

    @contextmanager
    def _connection(self, doing: str) -> Iterator[sqlite3.Connection]:
        """The connection, opened when first needed; failures become MemoryFault, which begins with `doing`."""
        try:
            if self._open is None:
                self._open = self._open_file()
            yield self._open
        except (sqlite3.Error, OSError) as cause:
            raise MemoryFault(f"{doing}: {cause}") from cause

    def _open_file(self) -> sqlite3.Connection:
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, FILE_MODE))
        connection = sqlite3.connect(self._file, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for setting in ("auto_vacuum = FULL", "journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(TABLE)
            if "lane" not in [column for _, column, *_ in connection.execute("PRAGMA table_info(waiting)")]:
                connection.execute("ALTER TABLE waiting ADD COLUMN lane BLOB NOT NULL DEFAULT x''")  # of an older build
            connection.execute("CREATE INDEX IF NOT EXISTS waiting_of_lane ON waiting (lane, number)")
            connection.execute("COMMIT")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _ciphered(self, record: bytes, nonce: bytes) -> bytes:
        """
        Encipher, or decipher: a key stream of its own for each record, of the keyed sponge SHAKE-256.

        Bertoni et al., "Duplexing the sponge" (2011): a sponge that begins with a secret key is a stream cipher.
        """
        stream = shake_256(self._key + nonce).digest(len(record))
        return np.bitwise_xor(np.frombuffer(record, np.uint8), np.frombuffer(stream, np.uint8)).tobytes()
