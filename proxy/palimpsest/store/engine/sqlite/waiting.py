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

import numpy as np

from palimpsest.domain.errors import MemoryFault

FILE_MODE = 0o600
NONCE_BYTES = 16  # drawn for each record: no two ever share one
BUSY_SECONDS = 2.0  # for another process of the same folder, whose writes take milliseconds

TABLE = """
CREATE TABLE IF NOT EXISTS waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, nonce BLOB NOT NULL, sealed BLOB NOT NULL)
"""


class WaitingRoom:
    """First in, first out. Call every method on one thread at a time, and `close` in the end."""

    def __init__(self, file: Path, secret: bytes, most_bytes: int) -> None:
        """
        Args:
            file: made when it is needed for the first time.
            secret: of the installation.
            most_bytes: of all records that wait.
        """
        self._file = file
        self._key = blake2b(b"waiting", key=secret[:64]).digest()
        self._most_bytes = most_bytes
        self._open: sqlite3.Connection | None = None
        self._size_bytes = 0  # of all records, at this version of what others wrote; None: not known
        self._version: int | None = None

    def put(self, name: str, record: bytes) -> int:
        """
        Append a record and return its number, which is higher than all before.

        Raises:
            MemoryFault: it cannot be written, or there is no room.
        """
        nonce = secrets.token_bytes(NONCE_BYTES)
        with self._connection(f"writing {name} to {self._file}") as connection:
            if self.size_bytes() + len(record) > self._most_bytes:
                raise MemoryFault(f"writing {name} to {self._file}: more than {self._most_bytes} bytes wait already")
            statement = "INSERT INTO waiting (name, nonce, sealed) VALUES (?, ?, ?)"
            number = connection.execute(statement, (name, nonce, self._ciphered(record, nonce))).lastrowid
            assert number is not None
            self._size_bytes += len(record)
            return number

    def first(self, most: int, most_bytes: int) -> list[tuple[int, str, bytes]]:
        """
        The first records, each behind its number and its name: at most so many, and none after so many bytes.

        Raises:
            MemoryFault: the file cannot be read.
        """
        records: list[tuple[int, str, bytes]] = []
        if self._open is None and not self._file.exists():
            return records
        with self._connection(f"reading {self._file}") as connection:
            statement = "SELECT number, name, nonce, sealed FROM waiting ORDER BY number LIMIT ?"
            for number, name, nonce, sealed in connection.execute(statement, (most,)):
                records.append((number, name, self._ciphered(sealed, nonce)))
                most_bytes -= len(sealed)
                if most_bytes <= 0:
                    break
        return records

    def remove(self, number: int) -> None:
        """
        Remove a record, and its bytes.

        Raises:
            MemoryFault: the file cannot be written.
        """
        with self._connection(f"writing {self._file}") as connection:
            gone = connection.execute("DELETE FROM waiting WHERE number = ? RETURNING length(sealed)", (number,))
            self._size_bytes -= sum(size_bytes for (size_bytes,) in gone)

    def count(self) -> int:
        """
        How many records wait.

        Raises:
            MemoryFault: the file cannot be read.
        """
        return self._query_number("count(*)")

    def size_bytes(self) -> int:
        """How many bytes they have; raises as `count`."""
        version = self._query_number("data_version", "pragma_data_version")
        if version != self._version:  # they are many, and asked for whenever one is added
            self._size_bytes, self._version = self._query_number("coalesce(sum(length(sealed)), 0)"), version
        return self._size_bytes

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = self._version = None

    def _query_number(self, what: str, table: str = "waiting") -> int:
        if self._open is None and not self._file.exists():
            return 0
        with self._connection(f"reading {self._file}") as connection:
            figure: int = connection.execute(f"SELECT {what} FROM {table}").fetchone()[0]
            return figure

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
        for setting in ("auto_vacuum = FULL", "journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute(TABLE)
        return connection

    def _ciphered(self, record: bytes, nonce: bytes) -> bytes:
        """
        Encipher, or decipher: a key stream of its own for each record, of the keyed sponge SHAKE-256.

        Bertoni et al., "Duplexing the sponge" (2011): a sponge that begins with a secret key is a stream cipher.
        """
        stream = shake_256(self._key + nonce).digest(len(record))
        return np.bitwise_xor(np.frombuffer(record, np.uint8), np.frombuffer(stream, np.uint8)).tobytes()
