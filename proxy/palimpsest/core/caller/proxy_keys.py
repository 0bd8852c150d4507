"""
Proxy keys: which one a caller presents, and what it gives access to.

A key is found by its hash, so that how long a look-up takes tells nothing about keys that nearly match.
"""

from __future__ import annotations

import hashlib
from collections.abc import ItemsView, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from palimpsest.core.caller.credentials import secret_in, secrets_of
from palimpsest.domain import ProxyKey, RawHeaders

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import KeyPolicy

PREFIX = "plm_"  # of keys that were made while the proxy ran; they are known for ours even when they open nothing
_PREFIX = PREFIX.encode()

Key: TypeAlias = "KeyPolicy | ProxyKey"
"""What opens the proxy: a key of the policy, or one that was made while it ran."""


def digest_of(secret: bytes) -> bytes:
    """The hash by which a key is found."""
    return hashlib.sha256(secret).digest()


class ProxyKeys:
    """The keys of one running proxy, as they are at one moment."""

    def __init__(
        self,
        # those of the policy, by the key itself. Where there is one, every caller needs a key
        keys: Mapping[str, KeyPolicy],
        made: Mapping[bytes, ProxyKey] = MappingProxyType({}),  # those that were made while it ran, by their hash
        *,
        is_required: bool = False,  # every caller needs a key anyway
        is_complete: bool = True,  # False: those that were made could not be read yet
    ) -> None:
        self._keys: dict[bytes, Key] = {digest_of(key.encode()): opens for key, opens in keys.items()}
        self._keys |= made
        self.is_required = is_required or bool(keys)
        self.is_complete = is_complete
        self.tenants = frozenset(key.tenant for key in self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, headers: RawHeaders) -> Key | None:
        """The caller's valid key, from any credential header; None: there is none."""
        if not self._keys:
            return None
        return next((key for secret in secrets_of(headers) if (key := self._keys.get(digest_of(secret)))), None)

    def opens(self, credential: bytes) -> Key | None:
        """The valid key in one header value, with or without `Bearer`."""
        return self._keys.get(digest_of(secret_in(credential))) if self._keys else None

    def digest_in(self, headers: RawHeaders) -> bytes:
        """The hash of the caller's valid key; empty: there is none."""
        digests = (digest_of(secret) for secret in secrets_of(headers))
        return next((digest for digest in digests if digest in self._keys), b"")

    def of_digest(self, digest: bytes) -> Key | None:
        """The valid key with this hash."""
        return self._keys.get(digest)

    def by_digest(self) -> ItemsView[bytes, Key]:
        """All valid keys by their hash."""
        return self._keys.items()

    def is_ours(self, credential: bytes) -> bool:
        """Whether a header value is a proxy key, even a revoked or expired one; such keys are never forwarded."""
        return secret_in(credential).startswith(_PREFIX) or self.opens(credential) is not None

    def refuses(self, headers: RawHeaders, key: Key | None) -> bool:
        """Whether to refuse a caller: a required key is missing, or the one that these headers show is not valid."""
        if key is not None:
            return False
        return self.is_required or any(secret.startswith(_PREFIX) for secret in secrets_of(headers))
