"""
Retiring on request: what is retired stays stored, but is not recalled, found or repeated, until that is undone.

It can be taken back for 30 days by the id of its receipt. After that retention erases it
(`memory/erasure/retention.py`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import structlog

from palimpsest.core.archive.receipt import signed
from palimpsest.core.archive.tombstones import scope_print
from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain import HeadFlag, Json
from palimpsest.domain.days import time_of
from palimpsest.domain.ports import Clock
from palimpsest.memory.erasure.targets import SETTLE_SECONDS, Preview, Selection, in_parts, scope_prints_of
from palimpsest.store.engine import Engine, Transaction
from palimpsest.store.erasure import retirement as store
from palimpsest.store.erasure.erasure import mark_messages
from palimpsest.store.erasure.selection import Plan, Target
from palimpsest.store.knowledge.added_facts import retire_added, retire_blocks_with, unretire_added

DAYS = 30  # in which it can be undone: a month, as bins of mail and files have it
DAY_SECONDS = 86_400
TAKEN_BACK = 100  # messages at a time: their passages are cut and written in some 50 ms
COUNTED = ("conversations", "turns", "messages", "passages", "blocks", "facts")  # of a preview

log = structlog.get_logger()


class Retiring:
    """Retires from one database; any number of processes may do so beside others that write."""

    def __init__(self, database: Engine, secret: bytes, clock: Clock, settle_seconds: float = SETTLE_SECONDS) -> None:
        self._database = database
        self._secret = secret
        self._clock = clock
        in_use = HeadFlag.ERASED | HeadFlag.RETIRED
        self._selection = Selection(database, secret, in_use, settle_seconds)
        self._busy = asyncio.Lock()

    async def preview(self, target: Target) -> Preview | None:
        """What would be retired; None: nothing in use matches."""
        found = await self._selection.preview(target, self._clock())
        return found and replace(found, counts=_counted_kinds(found.counts))

    async def retire(self, target: Target) -> Json | None:
        """Take out of use, and return the signed receipt, whose `id` takes it back; None: nothing in use is meant."""
        async with self._busy:
            selected = await self._selection.select(target, self._clock)
            if selected is None:
                return None
            found, at = selected.plans, selected.at
            counted = await self._selection.count_rows(found)
            key, until = f"r-{secrets.token_hex(8)}", at + DAYS * DAY_SECONDS
            tenant = found[0].tenant if len(found) == 1 else 0
            row = await self._database.transact(partial(store.begin, key=key, tenant=tenant, at=at, until=until))
            mark, retire = partial(self._mark, selected.target, row), partial(self._retire, row)
            await self._selection.run_in_rounds(selected, self._clock, mark, retire)
        body = {
            "id": key,
            "what": "retirement",
            "at": time_of(at),
            "until": time_of(until),
            "asked": selected.asked,
            "tenants": len(found),
            "retired": _counted_kinds(counted),
            "stays": "everything, and it is not recalled, found or repeated; after `until` it is erased",
        }
        log.info("retired on request", messages=counted["messages"])
        return signed(body, self._secret)

    async def undo(self, key: str, tenant: str = "") -> Json | None:
        """Undo a retirement by the `id` of its receipt, of a tenant or anybody's (""); None: no such can be undone."""
        async with self._busy:
            await self._database.open()
            found = await self._database.ask(partial(store.retirement_named, key=key))
            if found is None or (tenant and found[1] != tenant) or found[2] <= self._clock():
                return None
            row, messages = found[0], 0
            await self._database.transact(partial(store.forget_stones, retirement=row))
            while rows := await self._database.ask(partial(store.next_retired, retirement=row, limit=TAKEN_BACK)):
                cuts = await asyncio.to_thread(store.retired_passages, rows)
                messages += await self._database.transact(partial(store.take_back, retirement=row, cuts=cuts))
            await self._database.transact(partial(unretire_added, retirement=row))
            await self._database.transact(partial(store.end, retirement=row))
        log.info("a retirement was undone", messages=messages)
        return {"id": key, "what": "undone retirement", "at": time_of(self._clock()), "messages": messages}

    async def list_retirements(self, tenant: str = "") -> list[Json]:
        """Retirements that can still be undone, newest first. `tenant` "": of all."""
        await self._database.open()
        found = await self._database.ask(partial(store.retirements, tenant=tenant, now=self._clock()))
        return [
            {
                "id": one.key,
                "tenant": one.tenant,
                "messages": one.messages,
                "at": time_of(one.at),
                "until": time_of(one.until),
            }
            for one in found
        ]

    async def _mark(self, target: Target, retirement: int, plan: Plan, at: float) -> None:
        """Write tombstones and retire what quotes these messages, so that blocks no longer repeat them."""
        key = tenant_key(self._secret, plan.name)
        whole = dict(plan.conversations)

        def mark(transaction: Transaction) -> None:
            store.retire_scopes(transaction, scope_prints_of(target, plan, key), at, retirement)
            for conversation, messages in plan.messages.items():
                fingerprint = scope_print(key, "conversation", plan.publics[conversation])
                chosen = None if conversation in whole else messages
                mark_messages(transaction, conversation, fingerprint, at, chosen, retirement)
            store.retire_quotes(transaction, plan.tenant, plan.occurrences, retirement)
            retire_blocks_with(transaction, plan.tenant, plan.facts, retirement)
            retire_added(transaction, plan.facts, retirement)

        await self._database.transact(mark)

    async def _retire(self, retirement: int, plan: Plan, at: float) -> None:
        """Retire the messages of a plan and the blocks that quote them, in short transactions."""
        for some in in_parts(plan.occurrences):
            step = partial(store.retire_messages, tenant=plan.tenant, occurrences=some, retirement=retirement)
            await self._database.transact(step)
        # blocks that were made of these messages since the first look
        quotes = partial(store.retire_quotes, tenant=plan.tenant, occurrences=plan.occurrences, retirement=retirement)
        await self._database.transact(quotes)


def _counted_kinds(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in COUNTED if name in counts}
