"""
Sessions of the page's readers, as the value of a cookie: until when it is good, and for which key or token.

Nothing is kept of it here, so that any process with the same secret reads it. A keyed hash binds it to the key or the
token: one that is changed or revoked opens nothing from then on.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from hmac import compare_digest

from palimpsest.core.caller.proxy_keys import digest_of
from palimpsest.edge.access import Access, Caller

SESSION_SECONDS = 12 * 3600  # a working day
VERSION = 1
TAG_BYTES = 32  # of a hash that nobody guesses
KEY_BYTES = 64  # the most that the hash takes
_FIELDS = struct.Struct("!BI")  # version, good until as Unix seconds
_PURPOSE = b"page session"


class Sessions:
    """Cookies that let their holders in."""

    def __init__(self, secret: bytes, access: Access, clock: Callable[[], float]) -> None:
        """
        Args:
            secret: of the installation.
        """
        self._key = secret[:KEY_BYTES]
        self._access = access
        self._clock = clock

    def begin(self, secret: str) -> str:
        """The value of a cookie for whoever shows this key or token; "" where it opens nothing here."""
        wanted = digest_of(secret.encode())
        if not any(compare_digest(wanted, digest) for digest, _ in self._access.holders()):
            return ""
        fields = _FIELDS.pack(VERSION, int(self._clock()) + SESSION_SECONDS)
        return urlsafe_b64encode(fields + self._tag(fields, wanted)).decode().rstrip("=")

    def caller(self, cookie: str) -> Caller | None:
        """Whom a cookie lets in; None: nobody, or it is out of date."""
        try:
            sealed = urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
        except ValueError:
            return None
        fields, tag = sealed[: _FIELDS.size], sealed[_FIELDS.size :]
        if len(fields) < _FIELDS.size:
            return None
        version, until = _FIELDS.unpack(fields)
        if version != VERSION or until <= self._clock():
            return None
        holders = self._access.holders()
        return next((who for digest, who in holders if compare_digest(tag, self._tag(fields, digest))), None)

    def _tag(self, fields: bytes, digest: bytes) -> bytes:
        return hashlib.blake2b(fields + digest, key=self._key, person=_PURPOSE, digest_size=TAG_BYTES).digest()
