"""
The identity of a caller: tenant, user, project, and the conversation ids that the client itself sends.

Everything is scoped by the tenant; unresolved means no memory, never shared memory (design: promise 7).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from palimpsest.core.caller.client_table import Headers, Signals, first, first_named
from palimpsest.core.caller.credentials import LOCAL
from palimpsest.core.caller.proxy_keys import Key
from palimpsest.domain import Json, Reach, Speaker

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import TenantPolicy

_ROTATING = re.compile(
    r"eyJ[\w-]+\.[\w-]+\.[\w-]+"  # header and payload of a JSON web token start with {
    r"|sk-ant-oat\d+-.+"  # what a Claude subscription is used with, another one every few hours
)


def identify(tenant: str, headers: Headers, body: Json, signals: Signals, key: Key | None) -> Speaker:
    """
    Read from one request who sent it.

    Args:
        tenant: as `tenant_of` says.
        headers: lower-case names to values.
        body: the parsed request.
        key: the proxy key that the caller presented, where the proxy holds the credentials.
    """
    user, scope = whose(headers, body, signals, key)
    may_name_conversation = key is None or key.may_name_conversation
    parents = first_named(signals.parent_ids, headers, body) if may_name_conversation else ()
    conversations = first_named(signals.conversation_ids, headers, body) if may_name_conversation else ()
    return Speaker(
        tenant=tenant,
        user=user,
        scope=scope,
        client_ids=_ids_of_key(conversations, key, user, scope),
        parent_ids=_ids_of_key(parents, key, user, scope),
        subagent_hint=bool(parents),
        retry_hint=first(signals.retries, headers, body) not in ("", "0"),
        farthest=_farthest_reach(key, scope),
        is_read_only=key is not None and key.read_only,
        is_of_users=key is not None and bool(key.users),
        is_of_scopes=key is not None and bool(key.scopes),
    )


def whose(headers: Headers, body: Json, signals: Signals, key: Key | None) -> tuple[str, str]:
    """The user and the project that a request belongs to, each "" where it belongs to none."""
    user, scope = user_and_project(headers, body, signals, key)
    return (user, scope) if key is None else (user or _only_one(key.users), scope or _only_one(key.scopes))


def user_and_project(headers: Headers, body: Json, signals: Signals, key: Key | None) -> tuple[str, str]:
    """The user and the project that a request names, each "" where it names none or may not name one."""
    if key is not None and not key.may_name_user:
        return "", ""
    return first(signals.user_ids, headers, body), first(signals.scope_ids, headers, body)


def _ids_of_key(ids: Sequence[str], key: Key | None, user: str, scope: str) -> tuple[str, ...]:
    """Conversation ids, extended by the users and projects of the key: they never mean a conversation of others."""
    if key is None or not (key.users or key.scopes):
        return tuple(ids)
    users = (user,) if user else tuple(sorted(key.users))
    scopes = (scope,) if scope else tuple(sorted(key.scopes))
    whose = (users if key.users else (), scopes if key.scopes else ())
    return tuple(f"{id}\0{whose}" for id in ids)


def _farthest_reach(key: Key | None, scope: str) -> Reach:
    """The farthest reach that a key allows: of users, their own; of projects, none where the request names none."""
    if key is None or not (key.users or key.scopes):
        return Reach.TENANT
    if key.scopes and not scope:
        return Reach.CONVERSATION
    return Reach.USER if key.users else Reach.TENANT


def allows(key: Key, user: str, scope: str) -> bool:
    """Whether a key is for the user and the project that a request names; "": it names none."""
    return (not (user and key.users) or user in key.users) and (not (scope and key.scopes) or scope in key.scopes)


def _only_one(names: Sequence[str]) -> str:
    """The only name of a list, "" where it has none or several: whom a request that names nobody belongs to."""
    return names[0] if len(names) == 1 else ""


def is_rotating(credential: bytes) -> bool:
    """Whether a credential is of a kind that changes within hours: a tenant named after it would lose its owner."""
    return _ROTATING.fullmatch(credential.decode("latin-1")) is not None


@lru_cache(maxsize=1024)
def tenant_key(secret: bytes, tenant: str) -> bytes:
    """The key that the fingerprints of one tenant are hashed with, so that they mean nothing in another."""
    return hashlib.blake2b(tenant.encode(), key=secret[:64], digest_size=32).digest()


def tenant_of(
    credentials: Sequence[bytes], policy: TenantPolicy, secret: bytes, key: Key | None, *, is_nameless: bool = False
) -> str:
    """
    The tenant of a request, by its key, the policy or its credentials.

    Args:
        credentials: those that are forwarded (`core.caller.credentials`).
        secret: shared by all workers; keys the tenant's name, so that no credential can be guessed from the store.
        key: as of `identify`.
        is_nameless: it comes from a program that is trusted for being on this machine, and shows no credential.

    Returns:
        "" when no credential tells callers apart, or the credential changes by itself.
    """
    if key is not None:
        return key.tenant
    if policy.static:
        return f"static:{policy.static}"
    if not credentials:
        return LOCAL if is_nameless else ""
    if any(map(is_rotating, credentials)):
        return ""
    # Of several, only the provider knows which it goes by: who shows all of them is somebody else than who shows one,
    # or a key that is no longer good would open its owner's memory beside one that is.
    shown = b"\0".join(credential.decode("latin-1").encode() for credential in sorted(credentials))
    return "hmac:" + hmac.new(secret, b"tenant\0" + shown, hashlib.sha256).hexdigest()[:32]
