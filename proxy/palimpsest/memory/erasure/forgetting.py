"""
Forgetting on request: preview, erase, prove.

Erasing is done in steps, so that requests are written in between: tombstones first, from which on nothing of it comes
back; then the texts and all that was derived; then the full-text index is merged and the log emptied, because deleted
words stand in both; and in the end the files are searched. Other processes see the erasure in the database itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import structlog

from palimpsest.core.archive.receipt import not_covered, signed
from palimpsest.core.archive.retention import age_seconds
from palimpsest.core.archive.tombstones import scope_print
from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain import Json
from palimpsest.domain.days import day_of, time_of
from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Clock
from palimpsest.memory.erasure.targets import SETTLE_SECONDS, Preview, Selection, in_parts, scope_prints_of
from palimpsest.settings.policy import FOREVER
from palimpsest.store.engine import TRUNCATE_ATTEMPTS, Engine, Files, Transaction
from palimpsest.store.engine.full_text import merge_some, optimise
from palimpsest.store.engine.sqlite.remains import Remains, known_words, samples, search, unexplained
from palimpsest.store.erasure import erasure
from palimpsest.store.erasure.holdings import WORDS
from palimpsest.store.erasure.selection import Plan, Target
from palimpsest.store.families.blocks import erase_quotes
from palimpsest.store.families.family import Erased
from palimpsest.store.knowledge.added_facts import erase_added, erase_blocks_with

MERGE_PAGES = 200  # of the full-text index at a time, 800 KB: some 20 ms
MERGED = 2  # changed rows: see `merge_some`
MAX_MERGES = 100_000  # of an index of 80 GB
LOOKS_AGAIN = 2  # at what is left: that a row of others comes and goes during each is not to be expected
LATEST = 253_402_300_799.0  # Unix seconds of the last day that a calendar here has
VACUUM_BYTES = 256 << 20  # the whole file is written anew, and others wait: seconds

log = structlog.get_logger()


class Forgetting:
    """Erases from one database; any number of processes may do so beside others that write."""

    def __init__(
        self,
        database: Engine,
        secret: bytes,
        clock: Clock,
        # a file that is no larger is written anew where all else leaves something behind
        vacuum_bytes: float = VACUUM_BYTES,
        backups: Callable[[], str] = lambda: "",  # how long backups are kept, as in `retention.backups`
        settle_seconds: float = SETTLE_SECONDS,  # for what is on its way to arrive, before it is looked for once more
    ) -> None:
        self._backups = backups
        self._vacuum_bytes = vacuum_bytes
        self._database = database
        self._secret = secret
        self._clock = clock
        self._selection = Selection(database, secret, settle_seconds=settle_seconds)
        self._busy = asyncio.Lock()

    async def preview(self, target: Target) -> Preview | None:
        """What would be erased; None: nothing stored matches."""
        return await self._selection.preview(target, self._clock())

    async def erase(self, target: Target) -> Json | None:
        """
        Erase, verify on the disk, and return the signed receipt; None: nothing matches. Repeat it after a failure.
        """
        async with self._busy:
            selected = await self._selection.select(target, self._clock)
            if selected is None:
                await self._finish()
                return None
            planned = await self._selection.count_rows(selected.plans)
            erased = Erased()
            mark = partial(self._mark, selected.target, erased)
            erase = partial(self._erase, erased)
            await self._selection.run_in_rounds(selected, self._clock, mark, erase)
            left, is_emptied = await self._prove(erased)
            is_clean = left is not None and left.is_clean and is_emptied
            if is_clean or left is None:
                await self._database.transact(erasure.mark_finished)
        body = {
            "id": secrets.token_hex(8),
            "what": "erasure",
            "at": time_of(selected.at),
            "asked": selected.asked,
            "tenants": len(selected.plans),
            "erased": dict(sorted(erased.counts.items())),
            "stays": {
                "texts_that_stand_elsewhere": planned["texts_that_stand_elsewhere"],
                "tombstones": "keyed fingerprints of what was erased, so that a resend is not kept again",
            },
            "check": {
                **asdict(left or Remains(0, 0, 0, 0, 0, ())),
                **{"log_emptied": is_emptied, "clean": is_clean, "searched": left is not None},
            },
            "not_covered": not_covered(self._backups_until(selected.at), is_on_server=left is None),
        }
        log.info("erased on request", messages=erased.counts["messages"], left=left and left.left)
        return signed(body, self._secret)

    async def erase_again(self, plans: Sequence[Plan]) -> Mapping[str, int]:
        """Erase what tombstones that are already there cover; rows by store."""
        erased = Erased()
        async with self._busy:
            for plan in plans:
                await self._erase(erased, plan, self._clock())
            left, is_emptied = await self._prove(erased)
        if left is not None and not (left.is_clean and is_emptied):
            rest = f"some of it is still in {', '.join(left.where)}" if left.where else "the log cannot be emptied"
            raise MemoryFault(f"erasing from {self._database.place}: {rest}")
        return dict(erased.counts)

    def _backups_until(self, at: float) -> str:
        """The day until which backups may hold what was erased; "" where the policy keeps none, or for ever."""
        period = self._backups()
        if not period or period == FOREVER:
            return ""
        return day_of(min(at + age_seconds(period), LATEST))

    async def finish(self) -> None:
        """
        Finish an erasure that was cut off, here or elsewhere, when its rows were gone already.

        Where that cannot be done now, it is logged; the next start, or the next erasure, tries again.
        """
        try:
            async with self._busy:
                await self._database.open()
                await self._finish()
        except MemoryFault as fault:
            log.warning("an interrupted erasure could not be finished", reason=str(fault))

    async def _finish(self) -> None:
        """Finish an erasure that was interrupted: merge the index, and truncate the log."""
        if not await self._database.ask(erasure.is_unfinished):
            return
        await self._merge()
        if self._database.files is None or await self._database.files.truncate_log():
            await self._database.transact(erasure.mark_finished)
            log.info("an interrupted erasure is finished")

    async def _mark(self, target: Target, erased: Erased, plan: Plan, at: float) -> None:
        """Write tombstones and erase what quotes these messages, so that nothing of it is said from now on."""
        key = tenant_key(self._secret, plan.name)
        whole = dict(plan.conversations)

        def mark(transaction: Transaction) -> None:
            erasure.mark_scopes(transaction, scope_prints_of(target, plan, key), at)
            for conversation in {**whole, **plan.messages}:
                public = plan.publics[conversation]
                chosen = None if conversation in whole else plan.messages[conversation]
                erasure.mark_messages(transaction, conversation, scope_print(key, "conversation", public), at, chosen)
            erase_quotes(transaction, plan.tenant, plan.occurrences, erased)
            erase_blocks_with(transaction, plan.tenant, plan.facts, erased)

        await self._database.transact(mark)

    async def _erase(self, erased: Erased, plan: Plan, at: float) -> None:
        """Erase the messages, quotes, facts and conversations of a plan, in short transactions."""
        for some in in_parts(plan.occurrences):
            await self._database.transact(
                partial(erasure.erase_messages, tenant=plan.tenant, occurrences=some, erased=erased)
            )
        # blocks that were made of these messages since the first look, but before they were erased
        await self._database.transact(
            partial(erase_quotes, tenant=plan.tenant, occurrences=plan.occurrences, erased=erased)
        )
        if plan.facts:
            key = tenant_key(self._secret, plan.name)
            await self._database.transact(
                partial(erase_added, key=key, tenant=plan.tenant, rows=plan.facts, at=at, erased=erased)
            )
        for conversation, _ in plan.conversations:
            await self._database.transact(
                partial(erasure.erase_conversation, conversation=conversation, at=at, erased=erased)
            )
        await self._database.transact(partial(erasure.erase_tenant_if_empty, tenant=plan.tenant))

    async def _prove(self, erased: Erased) -> tuple[Remains | None, bool]:
        """
        Clean up and search the disk, up to some times: what is left, and whether the log could be emptied.

        None: a server has the files, and nobody here can look.
        """
        files = self._database.files
        if files is None:
            return None, False
        known = await self._database.ask(partial(known_words, words=erased.words))
        wanted = samples(erased.texts, erased.words - known)
        # the last one twice: where others never stop reading, the log is still full of the pages from before it
        vacuum = partial(self._vacuum_if_small, files)
        is_emptied = True
        for clean in (self._merge, partial(self._database.transact, optimise), vacuum, vacuum):
            await clean()
            # whoever has read on through all attempts is not waited for again
            is_emptied = await files.truncate_log(TRUNCATE_ATTEMPTS if is_emptied else 1)
            left = await self._look(files.path, wanted)
            if left.is_clean and is_emptied:
                break
        return left, is_emptied

    async def _look(self, path: Path, wanted: Sequence[bytes]) -> Remains:
        """
        Search the disk for these samples.

        Others write meanwhile: a row that stood in the file when it was searched, and is gone when it is asked for,
        explains nothing. So what is left is looked for again: what lies there without a row stays where it is.
        """
        asked, searched = wanted, await search(path, wanted)
        left = await self._database.ask(partial(unexplained, searched, wanted, WORDS))
        explained = len(searched.found) - len(left)
        for _ in range(LOOKS_AGAIN):
            if left:
                asked, searched = left, await search(path, left)
                left = await self._database.ask(partial(unexplained, searched, left, WORDS))
        unknown = set(left)
        holding = {file: [asked[number] for number in numbers] for file, numbers in searched.where.items()}
        where = tuple(file for file, held in holding.items() if not unknown.isdisjoint(held))
        return Remains(searched.files, searched.bytes, len(wanted), explained, len(left), where)

    async def _merge(self) -> None:
        """Merge the full-text index into one segment, step by step, so that deleted words go."""
        pages = -MERGE_PAGES
        for _ in range(MAX_MERGES):
            if await self._database.transact(partial(merge_some, pages=pages)) < MERGED:
                return
            pages = MERGE_PAGES

    async def _vacuum_if_small(self, files: Files) -> None:
        if files.path.stat().st_size <= self._vacuum_bytes:
            await files.vacuum()
