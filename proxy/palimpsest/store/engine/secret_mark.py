"""
The mark of a secret in a database: which one keyed what is stored there, without telling it.

Names and fingerprints are hashes under the secret of an installation. A process that has another one would find nothing
of what is stored, and say so of nothing; so it is refused when it opens the database.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from palimpsest.domain.errors import MemoryFault
from palimpsest.store.engine import Ask, Transaction

MARK_BYTES = 16
PURPOSE = b"the mark of the secret"  # no name nor message is hashed in this form


class SecretMark:
    """The mark that a process expects."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret  # read when a database is opened

    @property
    def digest(self) -> bytes:
        key = blake2b(self._secret()).digest()  # a key has at most 64 bytes
        return blake2b(PURPOSE, key=key, digest_size=MARK_BYTES).digest()

    def is_set(self, ask: Ask, doing: str) -> bool:
        """
        Whether it is the database's; False: that has none yet.

        Raises `MemoryFault`: the database has another one, or not all of its rows; it begins with `doing`.
        """
        if ask("SELECT 1 WHERE has_table('migration')"):
            raise MemoryFault(
                f"{doing}: a migration into it has not come to its end: repeat `palimpsest migrate` first"
            )
        found = ask("SELECT digest FROM secret_mark")
        if found and bytes(found[0][0]) != self.digest:
            raise MemoryFault(
                f"{doing}: it was written with another secret, with this one nothing in it is found: put the file "
                "`secret` of the data folder that it was written from into this one, or set PALIMPSEST_SECRET to the "
                "same value for all that use it; stop other proxies on this folder that are older than its file "
                "`secret`; where the secret is lost, `palimpsest export` still reads the database"
            )
        return bool(found)

    def put(self, transaction: Transaction) -> None:
        """Set it, unless another process was first."""
        transaction.write("INSERT INTO secret_mark(one, digest) VALUES (1, ?) ON CONFLICT DO NOTHING", [(self.digest,)])
