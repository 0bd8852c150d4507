"""
Reminders over HTTP: passages that come back in the next request of their conversation because somebody wants them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field

from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.memory_routes import UNKNOWN_MEMORY, OneMemory
from palimpsest.edge.admin.operation import Call, OfTenant, Routes, found, operation
from palimpsest.store.turns import reminders
from palimpsest.store.turns.listings import memory

WAIT_SECONDS = 24 * 3600.0  # who goes on after a night still wants it; who comes back later is at something else


@dataclass(frozen=True, kw_only=True)
class WaitingReminders(OfTenant):
    conversation: Annotated[str, Field(description="Only those of this conversation.")] = ""


@frozen
class Reminder:
    """A passage that waits for the next request of its conversation."""

    memory: Annotated[int, Field(description="Number of the memory.")]
    tenant: Annotated[str, Field(description="Its tenant.")]
    conversation: Annotated[str, Field(description="Id of the conversation in which it was said, and will be again.")]
    role: Annotated[str, Field(description="Who said it.")]
    text: Annotated[str, Field(description="Text of the passage.")]
    until: Annotated[float, Field(description="When it waits no longer, Unix seconds.")]


@frozen
class ReminderList:
    """The reminders that wait."""

    reminders: list[Reminder]


@frozen
class Withdrawn:
    """A passage that does not wait."""

    memory: Annotated[int, Field(description="Number of the memory.")]


class ReminderRoutes(Routes):
    @operation("GET /reminders", "List memories that wait for the next request of their conversation")
    async def list_reminders(self, call: Call[WaitingReminders]) -> ReminderList:
        return ReminderList(await self._waiting_reminders(call.asked.tenant, call.asked.conversation))

    @operation("POST /reminders", "Bring a memory back in the next request of its conversation", missing=UNKNOWN_MEMORY)
    async def remind(self, call: Call[OneMemory]) -> Reminder:
        await self._check(call)
        until = self._clock() + WAIT_SECONDS
        await self._database.transact(partial(reminders.remind, memory=call.asked.memory, until=until))
        waiting = await self._waiting_reminders(call.asked.tenant)
        return found(next((one for one in waiting if one.memory == call.asked.memory), None), UNKNOWN_MEMORY)

    @operation("DELETE /reminders/{memory}", "Withdraw a waiting memory", missing=UNKNOWN_MEMORY)
    async def withdraw(self, call: Call[OneMemory]) -> Withdrawn:
        await self._check(call)
        await self._database.transact(partial(reminders.withdraw, memory=call.asked.memory))
        return Withdrawn(call.asked.memory)

    async def _waiting_reminders(self, tenant: str, conversation: str = "") -> list[Reminder]:
        """The waiting reminders of a tenant and a conversation; "" means all."""
        waiting = await self._database.ask(lambda ask: reminders.waiting_reminders(ask, self._clock()))
        return [
            Reminder(**one)
            for one in waiting
            if tenant in ("", one["tenant"]) and conversation in ("", one["conversation"])
        ]

    async def _check(self, call: Call[OneMemory]) -> None:
        """The passage is there, and the caller's."""
        look = partial(memory, tenant=call.asked.tenant, id=call.asked.memory)
        found(await self._database.ask(look, call.asked.tenant), UNKNOWN_MEMORY)
