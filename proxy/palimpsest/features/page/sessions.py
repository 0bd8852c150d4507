"""
Sessions of the page's readers: which key or token a browser signed in with, by the value of a cookie.

They are kept in memory, and each request shows its key anew, so that a key that is revoked opens nothing from then on.
Who signed in has to do so again after a restart.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

SESSION_SECONDS = 12 * 3600.0  # a working day
MOST_SESSIONS = 1_000  # the oldest ends before there are more
NAME_BYTES = 32


class Sessions:
    """Keys and tokens by the value of a cookie."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[str, tuple[str, float]] = {}

    def begin(self, secret: str) -> str:
        """The value of the cookie for a new session."""
        while len(self._open) >= MOST_SESSIONS:
            del self._open[next(iter(self._open))]
        name = secrets.token_urlsafe(NAME_BYTES)
        self._open[name] = secret, self._clock() + SESSION_SECONDS
        return name

    def secret(self, name: str) -> str:
        """The key or token of a session; "" where there is none, or it is over."""
        secret, until = self._open.get(name, ("", 0.0))
        if until > self._clock():
            return secret
        self._open.pop(name, None)
        return ""

    def end(self, name: str) -> None:
        """Forget a session."""
        self._open.pop(name, None)
