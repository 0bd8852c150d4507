"""What somebody wants erased or retired: how it is read, and what of the database it means."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

from palimpsest.core.archive.retention import age_seconds
from palimpsest.core.archive.tombstones import scope_print
from palimpsest.core.redaction import redaction
from palimpsest.domain import HeadFlag, Json, frozen
from palimpsest.domain.days import time_of
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.store.engine import Engine
from palimpsest.store.erasure.selection import Plan, Target, counts, is_stored_name, last_occurrence, plans, resent

LONGEST_NUMBER_DIGITS = 15  # fits into an integer of the database
EARLIEST = 1.0  # Unix seconds: nothing was said before; 0 sets no bound
TENANTS_NAMED = 10  # in a message; there may be thousands
MESSAGES_AT_A_TIME = 500  # some 50 ms of the writer: requests are journalled in between
SETTLE_SECONDS = 0.5  # a request that had read before is on its way by then, or gave memory up (250 ms)
MAX_ROUNDS = 10  # of half a second: what a proxy had taken before is written by then, unless its store hardly works

Step = Callable[[Plan, float], Awaitable[None]]
"""Does its part for one tenant; what came later than the time, in Unix seconds, is not meant."""


@frozen
class Preview:
    """What an erasure would take: rows by store, summed over tenants."""

    tenants: int
    counts: dict[str, int]


@frozen
class Selected:
    """What a target means, for `run_in_rounds`: its rows by tenant, and everything that says what came later."""

    target: Target  # as its names are stored; with the tenant, where only one is meant
    asked: Json  # `asked_for`
    plans: Sequence[Plan]
    newest: int  # the newest message of all, before the plans were made
    at: float  # when they were made, Unix seconds


def target_of(given: Mapping[str, Any], now: float) -> Target:
    """
    Read what somebody wants forgotten.

    Args:
        given: texts by name: `tenant`, `conversation`, `turn` (what `x-palimpsest-turn` said, or CONVERSATION/N),
            `user`, `scope`, `older_than` (90d, 12h, 4w), `matching`; and `credentials`, whether these are meant.

    Raises:
        PolicyError: it cannot be read, or nothing is named.
    """
    names = ("tenant", "conversation", "turn", "user", "scope", "older_than", "matching")
    allowed = ", ".join((*names, "credentials"))
    if strange := set(given) - {*names, "credentials"}:
        raise PolicyError(f"{', '.join(sorted(strange))}: not known; allowed: {allowed}")
    credentials = given.get("credentials", False)
    if not isinstance(credentials, bool):
        raise PolicyError("credentials: must be true or false")
    texts = {name: given.get(name) for name in names}
    for name, value in texts.items():
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise PolicyError(f"{name}: must be text, not empty")
    if not any(texts.values()) and not credentials:
        raise PolicyError(f"nothing is selected; allowed: {allowed}")
    conversation, turn, number = texts["conversation"] or "", texts["turn"] or "", 0
    if "/" in turn:
        named, _, last = turn.rpartition("/")
        if not (last.isdecimal() and len(last) <= LONGEST_NUMBER_DIGITS and int(last)) or conversation:
            raise PolicyError("turn: must be the value of x-palimpsest-turn, or CONVERSATION/N, from 1")
        conversation, turn, number = named, "", int(last)
    return Target(
        tenant=texts["tenant"] or "",
        conversation=conversation,
        turn=turn,
        number=number,
        user=texts["user"] or "",
        scope=texts["scope"] or "",
        before=max(now - age_seconds(texts["older_than"]), EARLIEST) if texts["older_than"] else 0.0,
        matching=texts["matching"] or "",
        credentials=credentials,
    )


class Selection:
    """
    Resolves targets to rows of one database.

    Args:
        without: flags; messages that have one are not meant.
        settle_seconds: before the next look at what came meanwhile.
    """

    def __init__(
        self, database: Engine, secret: bytes, without: int = HeadFlag.ERASED, settle_seconds: float = SETTLE_SECONDS
    ) -> None:
        self._database = database
        self._secret = secret
        self._without = without
        self._settle_seconds = settle_seconds

    async def preview(self, target: Target, now: float) -> Preview | None:
        """What would be erased; None: nothing stored matches."""
        await self._database.open()
        found = await self.plans(await self.as_stored(target), now)
        return Preview(len(found), await self.count_rows(found)) if found else None

    async def count_rows(self, found: Sequence[Plan]) -> dict[str, int]:
        """Rows by store, summed over tenants."""
        summed: Counter[str] = Counter()
        for plan in found:
            summed.update(await self._database.ask(partial(counts, plan=plan)))
            summed.update({f"credentials: {kind}": number for kind, number in plan.credentials.items()})
        return dict(summed)

    async def as_stored(self, target: Target) -> Target:
        """The target with user and project as they are stored: without credentials, unless redaction was off."""

        async def stored(column: Literal["user_id", "scope"], name: str) -> str:
            if not name or await self._database.ask(lambda ask: is_stored_name(ask, column, name)):
                return name
            return redaction.redacted_name(name, self._secret)

        return replace(target, user=await stored("user_id", target.user), scope=await stored("scope", target.scope))

    async def plans(self, target: Target, until: float) -> list[Plan]:
        """The matching rows, tenant by tenant; nothing later than `until`."""
        read = partial(plans, target=target, until=until, without=self._without)
        found = await self._database.ask(read)
        if self._without & HeadFlag.RETIRED:  # conversations as such are only erased
            found = [plan for plan in found if plan.messages or plan.facts]
        named = target.conversation or target.user or target.scope
        if len(found) > 1 and named and not target.tenant:
            names = ", ".join(plan.name for plan in found[:TENANTS_NAMED])
            raise PolicyError(f"tenant: required, because {len(found)} tenants match: {names}")
        return found

    async def select(self, target: Target, clock: Callable[[], float]) -> Selected | None:
        """Find what the target means, in all rows (`PolicyError`: of several tenants); None: nothing that is stored."""
        await self._database.open()
        target = await self.as_stored(target)
        asked = asked_for(target)
        newest, at = await self._database.ask(last_occurrence), clock()
        found = await self.plans(target, at)
        if not found:
            return None
        if len(found) == 1:  # a tenant who comes meanwhile, with a user of the same name, is not meant
            target = replace(target, tenant=found[0].name)
        return Selected(target, asked, found, newest, at)

    async def run_in_rounds(self, selected: Selected, clock: Callable[[], float], *steps: Step) -> None:
        """Run the steps (tombstones, then removals) on the matching rows until none arrive; else `MemoryFault`."""
        found, names = selected.plans, {plan.name for plan in selected.plans}
        since, until = selected.at, 0.0
        for _ in range(MAX_ROUNDS):
            for step in steps:
                for plan in found:
                    await step(plan, since)
                # what came before the tombstones, and was not there to be planned for, is dealt with in the next round
                until = until or clock()
            await asyncio.sleep(self._settle_seconds)
            again = partial(
                resent, names=names, after=selected.newest, at=selected.at, until=until, without=self._without
            )
            found, since = [*await self.plans(selected.target, until), *await self._database.ask(again)], until
            if not found:
                return
        raise MemoryFault(
            "requests from before are still being written; what was found of them is dealt with: ask once more"
        )


def scope_prints_of(target: Target, plan: Plan, key: bytes) -> list[int]:
    """What requests that are on their way may belong to. Where single messages are meant, none."""
    if not target.is_whole:
        return []
    prints = [scope_print(key, "conversation", public) for _, public in plan.conversations]
    if target.conversation:
        return prints
    if target.user and target.scope:
        return [*prints, scope_print(key, "user+scope", target.user, target.scope)]
    if target.user or target.scope:
        kind = "user" if target.user else "scope"
        return [*prints, scope_print(key, kind, target.user or target.scope)]
    return [*prints, scope_print(key, "tenant", "")]


def asked_for(target: Target) -> Json:
    """The target as JSON, without the words that are to go."""
    given = {name: value for name, value in asdict(target).items() if value}
    if "matching" in given:
        given["matching"] = "words that are not repeated here"
    if "before" in given:
        given["before"] = time_of(target.before)
    return given


def in_parts(occurrences: Sequence[int]) -> Iterator[Sequence[int]]:
    """Messages in batches."""
    return (occurrences[at : at + MESSAGES_AT_A_TIME] for at in range(0, len(occurrences), MESSAGES_AT_A_TIME))
