"""
Proxy keys as rows: a hash of each, and what it opens.

The hash is SHA-256 without a salt and without stretching: a key is 256 random bits, which nobody can search, and its
row must be found by the hash alone. Passwords would need more.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from palimpsest.domain import ProxyKey
from palimpsest.store.engine import Ask, Row, Transaction
from palimpsest.store.operation.changes import KEYS, count

COLUMNS = "id, shown, name, tenant, users, scopes, read_only, created_at, expires_at, revoked_at"


def add(transaction: Transaction, key: ProxyKey, digest: bytes) -> None:
    """Store a new key; every process knows it within a second."""
    names = (orjson.dumps(key.users).decode(), orjson.dumps(key.scopes).decode())
    row = (key.id, key.shown, key.name, key.tenant, *names, key.read_only, key.created_at, key.expires_at, None)
    transaction.write(f"INSERT INTO proxy_key({COLUMNS}, digest) VALUES ({'?, ' * len(row)}?)", [(*row, digest)])
    count(transaction, KEYS)


def revoke(transaction: Transaction, id: str, at: float) -> ProxyKey | None:
    """Revoke a key for good; None: there is no such key."""
    transaction.write("UPDATE proxy_key SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", [(at, id)])
    count(transaction, KEYS)
    found = transaction.read(f"SELECT {COLUMNS} FROM proxy_key WHERE id = ?", (id,))
    return _key(found[0]) if found else None


def list_keys(ask: Ask) -> list[ProxyKey]:
    """All keys, newest first, revoked and expired ones included."""
    return [_key(row) for row in ask(f"SELECT {COLUMNS} FROM proxy_key ORDER BY created_at DESC, id")]


def active(ask: Ask) -> Mapping[bytes, ProxyKey]:
    """The keys that are not revoked, by their hash."""
    rows = ask(f"SELECT digest, {COLUMNS} FROM proxy_key WHERE revoked_at IS NULL")
    return {row[0]: _key(row[1:]) for row in rows}


def _key(row: Row) -> ProxyKey:
    id, shown, name, tenant, users, scopes, read_only, *times = row
    names = (tuple(orjson.loads(users)), tuple(orjson.loads(scopes)))
    return ProxyKey(id, shown, name, tenant, *names, bool(read_only), *times)
