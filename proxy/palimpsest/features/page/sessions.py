"""
Sessions of the page's readers, as the value of a cookie: until when it is good, for which key or token, and a name.

Any process with the same secret reads it. A keyed hash binds it to the key or the token: one that is changed or revoked
opens nothing from then on. Only what was ended before its time is stored (`store/operation/ended_sessions.py`).
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import partial
from hmac import compare_digest

from palimpsest.core.caller.proxy_keys import digest_of
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Clock
from palimpsest.edge.access import Access, Caller
from palimpsest.store.engine import Engine
from palimpsest.store.operation import ended_sessions

SESSION_SECONDS = 12 * 3600  # a working day
VERSION = 2
TAG_BYTES = 32  # of a hash that nobody guesses
KEY_BYTES = 64  # the most that the hash takes
_FIELDS = struct.Struct("!BQ16s")  # version, good until as Unix milliseconds, name made by chance
_PURPOSE = b"page session"


@frozen
class _Session:
    """A session that is not out of date: its own name, that of its token or key, until when, and whom it lets in."""

    name: str
    holder: str
    until: float
    caller: Caller


class Sessions:
    """Cookies that let their holders in, until they are ended."""

    def __init__(self, secret: bytes, access: Access, database: Engine, clock: Clock) -> None:
        self._key = secret[:KEY_BYTES]  # of the installation
        self._access = access
        self._database = database
        self._clock = clock

    def begin(self, secret: str) -> str:
        """The value of a cookie for whoever shows this key or token; "" where it opens nothing here."""
        wanted = digest_of(secret.encode())
        if not any(compare_digest(wanted, digest) for digest, _ in self._access.holders()):
            return ""
        until = self._clock() + SESSION_SECONDS
        fields = _FIELDS.pack(VERSION, int(until * 1000), secrets.token_bytes(16))
        return urlsafe_b64encode(fields + self._tag(fields, wanted)).decode().rstrip("=")

    async def caller(self, cookie: str) -> Caller | None:
        """Whom a cookie lets in; None: nobody, it is out of date, or was ended. Raises MemoryFault."""
        if (session := self._session(cookie)) is None:
            return None
        names = (session.name, session.holder)
        if await self._database.ask(partial(ended_sessions.has_ended, names=names, until=session.until)):
            return None
        return session.caller

    async def end(self, cookie: str, *, everywhere: bool) -> None:
        """End the session of a cookie, or all that were begun with its token or key until now. Raises MemoryFault."""
        if (session := self._session(cookie)) is None:
            return
        now = self._clock()
        name, until = (session.holder, now + SESSION_SECONDS) if everywhere else (session.name, session.until)
        await self._database.transact(partial(ended_sessions.end, name=name, until=until, now=now))

    def _session(self, cookie: str) -> _Session | None:
        try:
            sealed = urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
        except ValueError:
            return None
        fields, tag = sealed[: _FIELDS.size], sealed[_FIELDS.size :]
        if len(fields) < _FIELDS.size:
            return None
        version, milliseconds, name = _FIELDS.unpack(fields)
        until = milliseconds / 1000
        if version != VERSION or until <= self._clock():
            return None
        for digest, who in self._access.holders():
            if compare_digest(tag, self._tag(fields, digest)):
                return _Session(name.hex(), self._tag(b"", digest).hex(), until, who)
        return None

    def _tag(self, fields: bytes, digest: bytes) -> bytes:
        return hashlib.blake2b(fields + digest, key=self._key, person=_PURPOSE, digest_size=TAG_BYTES).digest()
