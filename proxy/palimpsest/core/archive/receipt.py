"""
The receipt of an erasure: what was asked for, what went, whether the disk was clean, what it does not cover; signed.

It holds no word of what was erased. The signature is an HMAC-SHA256 under a key made of the installation's secret, over
the receipt without it as JSON with sorted keys and no white space.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import orjson

from palimpsest.domain import Json

BACKUPS = "backups and snapshots of the data folder: they hold it until"
ON_SERVER = (
    "the files of the database server, which cannot be searched from here: rows that are gone stay in its tables until "
    "a vacuum, in its write-ahead log until that is used again, and on its standbys"
)
SERVER_BACKUPS = "backups of the database server: they hold it until"
NOT_COVERED = (
    "the provider: it has seen every request, and keeps them by its own rules",
    "the client's own history: it may send it again, which is recognised and not kept",
    "text sent again after the erasure, also by a model to which the client showed it",
    "messages that hold it among other words, such as summaries that a client makes of the conversation later",
    "memory of processes, until they use it again",
)
SIGNATURE = "signature"


def not_covered(backups_until: str = "", is_on_server: bool = False) -> list[str]:
    """
    What an erasure does not reach, in words.

    Args:
        backups_until: the day after which no backup holds it any more; "": nobody has said how long they are kept.
        is_on_server: a database server has the rows.
    """
    until = backups_until or "they are deleted"
    server = (ON_SERVER, f"{SERVER_BACKUPS} {until}") if is_on_server else ()
    return [*server, f"{BACKUPS} {until}", *NOT_COVERED]


def is_done(receipt: Json) -> bool:
    """Whether the check found nothing left of it, or had nothing to search."""
    check = receipt["check"]
    return bool(check["clean"] or not check["searched"])


def signed(receipt: Mapping[str, Any], secret: bytes) -> Json:
    """The receipt with its signature."""
    return {**receipt, SIGNATURE: f"hmac-sha256:{_signature(receipt, secret)}"}


def is_genuine(receipt: Mapping[str, Any], secret: bytes) -> bool:
    """Whether this installation signed exactly this."""
    body = {name: value for name, value in receipt.items() if name != SIGNATURE}
    given = str(receipt.get(SIGNATURE, ""))
    return hmac.compare_digest(given.encode(), f"hmac-sha256:{_signature(body, secret)}".encode())


def _signature(body: Mapping[str, Any], secret: bytes) -> str:
    key = hashlib.blake2b(secret[:64], digest_size=32, person=b"receipt").digest()
    return hmac.new(key, orjson.dumps(body, option=orjson.OPT_SORT_KEYS), hashlib.sha256).hexdigest()
