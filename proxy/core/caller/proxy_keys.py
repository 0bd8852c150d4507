"""
Proxy keys: which one a caller presents, and what it opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest

from proxy.core.caller.credentials import presented, secret_in
from proxy.domain import RawHeaders
from proxy.settings.policy import KeyPolicy


class ProxyKeys:
    """The keys of one running proxy. Empty: whoever can reach it may use it."""

    def __init__(self, keys: Mapping[str, KeyPolicy]) -> None:
        """
        Args:
            keys: what each key opens, by the key itself.
        """
        self._keys = [(key.encode(), policy) for key, policy in keys.items()]

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, headers: RawHeaders) -> KeyPolicy | None:
        """What the caller's key opens, in whichever credential header it stands; None: no key of ours."""
        return next((key for secret in presented(headers) if (key := self._find(secret))), None)

    def opens(self, credential: bytes) -> KeyPolicy | None:
        """What one header value opens, with or without `Bearer`."""
        return self._find(secret_in(credential))

    def _find(self, shown: bytes) -> KeyPolicy | None:
        """Every key is compared, so that time tells nothing."""
        found = None
        for key, policy in self._keys:
            if compare_digest(key, shown):
                found = policy
        return found
