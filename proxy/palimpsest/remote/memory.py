"""
Memory on another machine: what it is asked while a request waits, and how it is.

Every turn is on this machine's disk before the end of its answer is handed out, and stays there until the other machine
has it on its own. While that one is away, nothing is asked; turns are brought when it is back, in their order. Until
the last of them is there, it cannot know what a request goes on from, and is still not asked.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from palimpsest.domain.ports import Counts
from palimpsest.memory.service import MemoryState
from palimpsest.remote.courier import Away, Courier, Denied, Unacceptable
from palimpsest.remote.link import Link
from palimpsest.settings.load import server_key
from palimpsest.settings.policy import Policy

AWAY_SECONDS = 5.0  # between looks whether it is back: no request waits for it meanwhile
DENIED_SECONDS = 30.0  # a key is not made so fast
SETTLE_SECONDS = 0.5  # that a request waits for turns that are on their way: bringing one takes a tenth on a slow line

log = structlog.get_logger()


class RemoteMemory:
    """One per process; an async context around the link is opened and closed with it."""

    def __init__(self, policy: Policy, secret: bytes, environment: Mapping[str, str], counts: Counts) -> None:
        """
        Raises:
            PolicyError: the file with the key cannot be read.
        """
        self.url = policy.server.url
        self._link = Link(policy.server, server_key(policy, environment), environment)
        waits = (AWAY_SECONDS, DENIED_SECONDS)
        self.courier = Courier(policy.data, secret, self._link.bring, self._link.look, counts, *waits)

    async def open(self) -> None:
        await self._link.__aenter__()
        await self.courier.open()

    async def close(self) -> None:
        await self.courier.close()
        await self._link.__aexit__(None, None, None)

    @property
    def state(self) -> MemoryState:
        waiting, trouble = self.courier.waiting, self.courier.trouble
        if trouble is not None:
            where = "refuses" if isinstance(trouble, Denied) else "is away"
            text = f"the machine that keeps the memory {where}: {trouble}"
        elif self.courier.is_behind:
            text = f"{self.url} is back, and is brought what it missed"
        else:
            return MemoryState("ready", "off", waiting)
        waits = f"; {waiting} turns wait here for it" if waiting else ""
        return MemoryState("failed", "off", waiting, (text + waits,))

    async def prepare(self, turn: str, envelope: bytes) -> bytes | None:
        """What is to be added to a request; None: nobody can tell now."""
        if not await self.courier.settled(SETTLE_SECONDS):
            return None
        try:
            return await self._link.prepare(turn, envelope)
        except (Away, Denied) as trouble:
            self.courier.fail(trouble)
        except Unacceptable as refused:
            log.warning("memory was not asked about a request", reason=str(refused))
        return None
