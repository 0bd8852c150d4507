"""
The guard between an answer and whoever overhears it: a listener may fail, the answer may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from palimpsest.domain import Ending
from palimpsest.domain.ports import Listener

log = structlog.get_logger()


class GuardedListener:
    """Implements `ports.Listener` by another one, and never raises. One that fails hears nothing more."""

    def __init__(self, listen: Callable[[], Listener]) -> None:
        """
        Args:
            listen: makes the listener.
        """
        self._listener: Listener | None = None
        self._is_deaf = False
        try:
            self._listener = listen()
        except Exception:  # a guard, as are all in here: whatever fails, the bytes go on
            self._failed()

    def feed(self, data: bytes) -> int:
        """How many leading bytes may be forwarded now."""
        if self._listener is not None and not self._is_deaf:
            try:
                return self._listener.feed(data)
            except Exception:
                self._failed()
        return len(data)

    def finish(self, ending: Ending) -> None:
        """Hand over the recorded answer."""
        if self._listener is not None:
            try:
                self._listener.finish(ending)
            except Exception:
                self._failed()
                self._listener = None

    async def committed(self) -> Mapping[str, str | int]:
        """Wait until the recorded answer is committed, as long as the listener does; its fields for the log."""
        if self._listener is not None:
            try:
                return await self._listener.committed()
            except Exception:
                self._failed()
        return {}

    def _failed(self) -> None:
        self._is_deaf = True
        log.exception("memory failed, the answer goes on", where="overhear")
