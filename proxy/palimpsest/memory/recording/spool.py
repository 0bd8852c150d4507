"""
The spool: turns that find no room in the archive's queue, in a file until there is room again.

The file has no name and is its owner's alone, and what it holds is enciphered with a key that only this process knows:
no credential reaches the disk in the clear, and whatever is left there afterwards cannot be read. What is forgotten
meanwhile is forgotten when it is taken out: the tombstones are there before it is written.
"""

from __future__ import annotations

import secrets
import struct
import tempfile
from hashlib import shake_256
from pathlib import Path
from typing import IO

import numpy as np
import structlog

from palimpsest.memory.recording.archive_frames import pack, unpack
from palimpsest.memory.recording.write_batch import Item, RequestItem

MOST_BYTES = 4 << 30  # of the file: hours of turns at a hundred a second
KEY_BYTES = 32
RECORD = struct.Struct("!QI")  # number of a record, and bytes that follow

log = structlog.get_logger()


class Spool:
    """First in, first out. Call every method on one thread, and `close` in the end."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._key = secrets.token_bytes(KEY_BYTES)
        self._file: IO[bytes] | None = None
        self._next = 0  # number of the next record: none is used twice with one key
        self._read_at = self._write_at = 0
        self._items = 0
        self.turns = 0  # of which are requests

    def __len__(self) -> int:
        return self._items

    def put(self, item: Item) -> bool:
        """Append an item. False: it could not be written, and the log says why."""
        try:
            packed = pack(item)
            if self._write_at + len(packed) > self._most_bytes:
                raise OSError(f"more than {self._most_bytes} bytes wait already")
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - open for as long as we are
            header = RECORD.pack(self._next, len(packed))
            self._file.seek(self._write_at)
            self._file.write(header + self._ciphered(packed, self._next))
            self._file.flush()
        except (OSError, RecursionError, MemoryError) as failure:
            log.error("a turn that has to wait cannot be written to the spool", reason=str(failure))
            return False
        self._next += 1
        self._write_at += len(header) + len(packed)
        self._items += 1
        self.turns += isinstance(item, RequestItem)
        return True

    def take(self) -> Item | None:
        """
        Remove and return the first item, or None.

        Raises `OSError`: the file cannot be read, and its items are given up.
        """
        if not self._items:
            return None
        assert self._file is not None
        try:
            self._file.seek(self._read_at)
            header = self._file.read(RECORD.size)
            number, size = RECORD.unpack(header)
            item: Item = unpack(self._ciphered(self._file.read(size), number))
        except (OSError, struct.error):
            self.clear()
            raise
        self._read_at += RECORD.size + size
        self._items -= 1
        self.turns -= isinstance(item, RequestItem)
        if not self._items:
            self.clear()
        return item

    def clear(self) -> None:
        """Free the disk space, dropping whatever is still there."""
        self._items = self.turns = self._read_at = self._write_at = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    close = clear

    def _ciphered(self, data: bytes, number: int) -> bytes:
        """
        Encipher or decipher a record with its own key stream of the keyed sponge SHAKE-256.

        Bertoni et al., "Duplexing the sponge" (2011): a sponge that begins with a secret key is a stream cipher.
        """
        stream = shake_256(self._key + number.to_bytes(8, "big")).digest(len(data))
        return np.bitwise_xor(np.frombuffer(data, np.uint8), np.frombuffer(stream, np.uint8)).tobytes()
