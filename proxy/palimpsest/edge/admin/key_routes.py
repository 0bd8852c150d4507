"""Proxy keys over HTTP, for the operator: make, list and revoke them. Every worker knows it within a second."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, JsonValue

from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, Refused, Routes, operation
from palimpsest.memory.operation.key_service import NAME, NAME_CHARS, KeyService, key_json

UNKNOWN = "there is no such key"


def _line(empty: str = "") -> dict[str, JsonValue]:
    """What the document says of a name; `KeyService` checks it, and says what is wrong in words."""
    return {"pattern": f"^({NAME}){empty}$", "maxLength": NAME_CHARS}


Name = Annotated[str, Field(json_schema_extra=_line())]


@dataclass(frozen=True, kw_only=True)
class NewKey:
    """A key to be created."""

    name: Annotated[str, Field(description="What it is for, in words.", json_schema_extra=_line())]
    tenant: Annotated[
        str,
        Field(
            description="Tenant whose memory it opens; empty: the tenant of its name.",
            json_schema_extra=_line(empty="?"),
        ),
    ] = ""
    users: Annotated[list[Name], Field(description="Users that its requests may name; empty: any.")] = field(
        default_factory=list
    )
    scopes: Annotated[list[Name], Field(description="Projects that they may name; empty: any.")] = field(
        default_factory=list
    )
    expires: Annotated[
        str,
        Field(
            description="Period of validity: 90d, 12h, 4w; empty: unlimited.",
            json_schema_extra={"pattern": "^([0-9]{1,6}[mhdw])?$"},
        ),
    ] = ""
    read_only: Annotated[bool, Field(description="Whether its requests recall, and archive nothing.")] = False


@dataclass(frozen=True, kw_only=True)
class KeyId:
    id: Annotated[str, Field(description="Id of the key.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyShown:
    """A key without its secret."""

    id: Annotated[str, Field(description="Id with which it is revoked.")]
    shown: Annotated[str, Field(description="First characters of the key.")]
    name: Annotated[str, Field(description="What it is for, in words.")]
    tenant: Annotated[str, Field(description="Tenant whose memory it opens, as stored.")]
    users: Annotated[list[str], Field(description="Users that its requests may name; empty: any.")]
    scopes: Annotated[list[str], Field(description="Projects that they may name; empty: any.")]
    read_only: Annotated[bool, Field(description="Whether its requests recall, and archive nothing.")]
    created_at: Annotated[float, Field(description="Unix seconds (as all times here).")]
    expires_at: Annotated[float | None, Field(description="End of validity; null: unlimited.")]
    revoked_at: Annotated[float | None, Field(description="When it was revoked; null: it was not.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMade(KeyShown):
    """A new key."""

    key: Annotated[str, Field(description="The key itself. It is shown only once, and not stored.")]


@frozen
class Keys:
    """All keys, the newest first."""

    keys: Annotated[list[KeyShown], Field(description="All keys, including expired and revoked ones.")]


class KeyRoutes(Routes):
    @property
    def _keys(self) -> KeyService:
        return KeyService(self._database, self._clock)

    @operation("GET /keys", "List all keys", for_operator=True)
    async def list(self, _call: Call[Nothing]) -> Keys:
        return Keys([KeyShown(**key_json(key)) for key in await self._keys.list_keys()])

    @operation("POST /keys", "Create a key", status=201, for_operator=True)
    async def create(self, call: Call[NewKey]) -> KeyMade:
        asked = call.asked
        secret, key = await self._keys.create(
            asked.name, asked.tenant, asked.users, asked.scopes, asked.expires, asked.read_only
        )
        return KeyMade(key=secret, **key_json(key))

    @operation("DELETE /keys/{id}", "Revoke a key", missing=UNKNOWN, for_operator=True)
    async def revoke(self, call: Call[KeyId]) -> KeyShown:
        key = await self._keys.revoke(call.asked.id)
        if key is None:
            raise Refused(404, UNKNOWN)
        return KeyShown(**key_json(key))
