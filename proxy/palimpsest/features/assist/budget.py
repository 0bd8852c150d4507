"""
The budget of a role: its daily caps of tokens and money, counted in the database, so that all processes share them.

What a call may use at most is booked before it, and what it did not use is taken off afterwards. So several calls at
once cannot exceed a cap, and what a killed process had asked for stays counted.
"""

from __future__ import annotations

from functools import partial

from palimpsest.domain import AssistRole, frozen
from palimpsest.domain.days import day_of
from palimpsest.domain.errors import AssistFault, MemoryFault
from palimpsest.domain.ports import Clock
from palimpsest.settings.policy import AssistantPolicy
from palimpsest.settings.prices import Price
from palimpsest.store.engine import Engine, Transaction, nobody
from palimpsest.store.operation.assist_usage import AssistUsage, add, usage_of_day

FREE = Price(0.0, 0.0)


@frozen
class Booking:
    """The amount booked for a call, and the day."""

    day: str
    tenant: str
    usage: AssistUsage


class Budget:
    """The budget of one role."""

    def __init__(
        self, role: AssistRole, policy: AssistantPolicy, price: Price | None, database: Engine, clock: Clock
    ) -> None:
        self._role: AssistRole = role
        self._policy = policy
        self._price = price or FREE
        self._database = database
        self._clock = clock
        self._spent = ("", "")  # a day, and which cap was reached on it

    @property
    def trouble(self) -> str:
        """The cap that is reached today, and what follows, in words; "": none."""
        day, cap = self._spent
        if day != day_of(self._clock()):
            return ""
        return (
            f"models.{self._role}: {cap} is reached, so memory works without the model until midnight UTC; raise "
            "it, or leave it so"
        )

    async def reserve(self, tenant: str, prompt_tokens: int, completion_tokens: int) -> Booking:
        """
        Book a call before it is made: tokens as estimated and at most. Raises `AssistFault`: a cap does not allow it.
        """
        day = day_of(self._clock())
        usage = AssistUsage(1, 0, prompt_tokens, completion_tokens, self._price.of(prompt_tokens, completion_tokens))

        def work(transaction: Transaction) -> str:
            """Add the usage unless a cap is reached; the cap that is, or ""."""
            transaction.keep_order("assist_usage")  # two bookings do not both take what is left
            cap = self._reached(usage_of_day(transaction.read, day, self._role), usage)
            if not cap:
                add(transaction, day, self._role, tenant, usage)
            return cap

        try:
            cap = await self._database.transact(work, nobody)
        except MemoryFault as fault:
            raise AssistFault(
                f"asking the model of {self._role}: its use cannot be counted: {fault}", "failed"
            ) from fault
        if cap:
            self._spent = (day, cap)
            raise AssistFault(self.trouble, "capped")
        return Booking(day, tenant, usage)

    async def settle(self, booking: Booking, prompt_tokens: int, completion_tokens: int, *, failed: bool) -> float:
        """Replace the booking of a call by what it used; returns US dollars."""
        dollars = self._price.of(prompt_tokens, completion_tokens)
        booked = booking.usage
        difference = AssistUsage(
            *(0, int(failed), prompt_tokens - booked.prompt_tokens, completion_tokens - booked.completion_tokens),
            dollars - booked.dollars,
        )
        work = partial(add, day=booking.day, role=self._role, tenant=booking.tenant, usage=difference)
        await self._database.transact(work, nobody)
        return dollars

    def _reached(self, before: AssistUsage, more: AssistUsage) -> str:
        """The cap that a call would exceed; "": none."""
        policy = self._policy
        if policy.tokens_a_day is not None and before.tokens + more.tokens > policy.tokens_a_day:
            return f"tokens_a_day ({policy.tokens_a_day:,})"
        if policy.dollars_a_day is not None and before.dollars + more.dollars > policy.dollars_a_day:
            return f"dollars_a_day ({policy.dollars_a_day:g})"
        return ""
