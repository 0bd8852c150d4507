"""The making and revoking of proxy keys, for the command line and the admin API alike."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from functools import partial

from palimpsest.core.caller.proxy_keys import PREFIX, digest_of
from palimpsest.domain import Json, ProxyKey
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Clock
from palimpsest.store.engine import Engine
from palimpsest.store.operation import proxy_keys

KEY_BYTES = 32  # random: nobody can search them
ID_BYTES = 4
SHOWN_CHARS = len(PREFIX) + 6  # 36 bits of 256: enough to tell keys apart
NAME_CHARS = 200
NAME = r"[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*"  # a line that says something
STORED_TENANT = re.compile(r"(key|static|hmac):.")  # as the archive has it


class KeyService:
    """The keys of one database."""

    def __init__(self, database: Engine, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create(
        self,
        name: str,
        tenant: str = "",
        users: Sequence[str] = (),
        scopes: Sequence[str] = (),
        expires: str = "",
        read_only: bool = False,
    ) -> tuple[str, ProxyKey]:
        """
        Make a key. It is returned once, and kept nowhere.

        Args:
            tenant: whose memory it opens, as `tenants.keys` names it or as it is stored (key:acme); "": of its name.
            users: whom its requests may name; none: anybody.
            scopes: the same of projects.
            expires: how long it is good: 90d, 12h, 4w; "": for good.

        Raises:
            PolicyError: one of these cannot be used.
            MemoryFault: it could not be stored.
        """
        for named, value in (("name", name), ("tenant", tenant or name), *(("users", u) for u in users)):
            _demand_name(named, value)
        for scope in scopes:
            _demand_name("scopes", scope)
        now = self._clock()
        secret = PREFIX + secrets.token_urlsafe(KEY_BYTES)
        key = ProxyKey(
            id=f"k-{secrets.token_hex(ID_BYTES)}",
            shown=secret[:SHOWN_CHARS],
            name=name,
            tenant=stored_tenant(tenant or name),
            users=tuple(dict.fromkeys(users)),
            scopes=tuple(dict.fromkeys(scopes)),
            read_only=read_only,
            created_at=now,
            expires_at=now + _seconds_of(expires) if expires else None,
        )
        await self._database.transact(partial(proxy_keys.add, key=key, digest=digest_of(secret.encode())))
        return secret, key

    async def list_keys(self) -> list[ProxyKey]:
        """All keys, the newest first."""
        return await self._database.ask(proxy_keys.list_keys)

    async def revoke(self, id: str) -> ProxyKey | None:
        """Revoke a key; it takes effect within a second. None: there is no such key."""
        return await self._database.transact(partial(proxy_keys.revoke, id=id, at=self._clock()))


def key_json(key: ProxyKey) -> Json:
    """A key as JSON for the command line and the admin API, without its secret."""
    names = ("id", "shown", "name", "tenant", "read_only", "created_at", "expires_at", "revoked_at")
    return {name: getattr(key, name) for name in names} | {"users": list(key.users), "scopes": list(key.scopes)}


def stored_tenant(name: str) -> str:
    """The tenant of a name that an operator gave, as it is stored, or as `tenants.keys` has it."""
    return name if STORED_TENANT.match(name) else f"key:{name}"


def _demand_name(what: str, value: str) -> None:
    if len(value) > NAME_CHARS or re.fullmatch(NAME, value) is None:
        raise PolicyError(f"{what}: must be one line of text, of 1 to {NAME_CHARS} characters")


def _seconds_of(period: str) -> float:
    """The seconds of a period such as 90d; raises PolicyError for any other text."""
    from palimpsest.core.archive.retention import age_seconds  # a server that makes no key needs none of it

    try:
        return age_seconds(period)
    except PolicyError as wrong:
        text = f"expires: {period!r} is not allowed; allowed: a number followed by m, h, d or w, such as 90d"
        raise PolicyError(text) from wrong
