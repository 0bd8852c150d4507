"""
Forgetting on request: preview, erase, prove.

Erasing is done in steps, so that requests are written in between: tombstones first, from which on nothing of it comes
back; then the texts and all that was derived; then the full-text index is merged and the log emptied, because deleted
words stand in both; and in the end the files are searched. Other processes see the erasure in the database itself.
"""

from __future__ import annotations

import asyncio
import functools
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import structlog

from proxy.core.archive import chunking, records
from proxy.core.archive.receipt import NOT_COVERED, signed
from proxy.core.archive.tombstones import scope_print
from proxy.core.caller.identity import tenant_key
from proxy.core.history import request_roles
from proxy.core.recall import utterance
from proxy.core.redaction import redaction
from proxy.domain import Json
from proxy.errors import MemoryFault, PolicyError
from proxy.ports import Clock
from proxy.store.connection import Transaction
from proxy.store.database import Database
from proxy.store.erasure import (
    Erased,
    erase_conversation,
    erase_messages,
    erase_quotes,
    erase_tenant_if_empty,
    is_unfinished,
    mark_finished,
    mark_messages,
    mark_scopes,
)
from proxy.store.remains import Remains, known_words, look, samples
from proxy.store.selection import Plan, Target, counts, is_stored_name, last_occurrence, plans, resent
from proxy.store.terms import merge_some, optimise
from proxy.wire import fingerprint, storage_codec

MESSAGES_AT_A_TIME = 500  # some 50 ms of the writer: requests are journalled in between
SETTLE_SECONDS = 0.5  # a request that had read before the erasure is on its way by then, or gave memory up (250 ms)
MAX_ROUNDS = 5  # a proxy may write what it had taken before; more rounds than this never found anything
MERGE_PAGES = 200  # of the full-text index at a time, 800 KB: some 20 ms
MERGED = 2  # changed rows: see `merge_some`
MAX_MERGES = 100_000  # of an index of 80 GB
VACUUM_BYTES = 256 << 20  # the whole file is written anew, and others wait: seconds
LONGEST_NUMBER_DIGITS = 15  # fits into an integer of the database
UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d{1,6})([mhdw])")
TENANTS_NAMED = 10  # in a message; there may be thousands

CACHES_OF_WORDS = (
    fingerprint._of_text,
    fingerprint._of_large,
    redaction._redacted_name,
    storage_codec._name,
    storage_codec._names_secret,
    records._instruction,
    chunking._tags_of,
    chunking._terms_of,
    chunking._beginning_of,
    utterance._read,
    request_roles._first_of_orders,
)
"""Functions that keep words of messages in memory to save time: emptied in every worker after an erasure."""

OBJECTS_OF_WORDS = frozenset({"proxy.embedding.embedder.LocalEmbedder", "proxy.memory.recent_readings.RecentReadings"})
"""Classes whose objects keep words too: `forget_words` is given the `forget` of each."""

CACHES_WITHOUT_WORDS = frozenset(
    {
        "proxy.core.history.request_roles._any_of",
        "proxy.core.history.shingles._constants",
        "proxy.core.caller.identity.tenant_key",
        "proxy.core.redaction.formats.long_formats",
        "proxy.core.redaction.formats.short_formats",
        "proxy.core.redaction.redaction._anchors",
        "proxy.tokens.counter.encoder",
        "proxy.upstream.passthrough._url",
        "proxy.settings.embedding_models.embedding_models",
        "proxy.settings.embedding_models.text_embedding",
        "proxy.settings.providers.providers",
    }
)
"""The others: keys, rules, addresses. A cache that is in neither fails the tests."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Preview:
    """What an erasure would take: rows by store, summed over tenants."""

    tenants: int
    counts: dict[str, int]


def target_of(given: Mapping[str, Any], now: float) -> Target:
    """
    Read what somebody wants forgotten.

    Args:
        given: texts by name: `tenant`, `conversation`, `turn` (what `x-palimpsest-turn` said, or CONVERSATION/N),
            `user`, `scope`, `older_than` (90d, 12h, 4w), `matching`.

    Raises:
        PolicyError: it cannot be read, or nothing is named.
    """
    names = ("tenant", "conversation", "turn", "user", "scope", "older_than", "matching")
    if strange := set(given) - set(names):
        raise PolicyError(f"{', '.join(sorted(strange))}: not known; allowed: {', '.join(names)}")
    texts = {name: given.get(name) for name in names}
    for name, value in texts.items():
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise PolicyError(f"{name}: must be text, not empty")
    if not any(texts.values()):
        raise PolicyError(f"nothing is selected; allowed: {', '.join(names)}")
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
        before=now - _age_seconds(texts["older_than"]) if texts["older_than"] else 0.0,
        matching=texts["matching"] or "",
    )


def _age_seconds(text: str) -> float:
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise PolicyError("older_than: must be a number followed by m, h, d or w, such as 90d")
    return int(match[1]) * UNIT_SECONDS[match[2]]


class Forgetting:
    """Erases from one database; any number of processes may do so beside others that write."""

    def __init__(self, database: Database, secret: bytes, clock: Clock, vacuum_bytes: float = VACUUM_BYTES) -> None:
        """
        Args:
            vacuum_bytes: a file that is no larger is written anew where all else leaves something behind.
        """
        self._vacuum_bytes = vacuum_bytes
        self._database = database
        self._secret = secret
        self._clock = clock
        self._busy = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Forgetting {self._database!r}>"

    async def preview(self, target: Target) -> Preview | None:
        """
        What would go; None: nothing that is stored is meant.

        Raises:
            PolicyError: several tenants could be meant.
        """
        await self._database.open()
        found = await self._plans(await self._as_stored(target), self._clock())
        if not found:
            return None
        summed: Counter[str] = Counter()
        for plan in found:
            summed.update(await self._database.ask(functools.partial(counts, plan=plan)))
        return Preview(len(found), dict(summed))

    async def erase(self, target: Target) -> Json | None:
        """
        Erase, look whether it is gone, and return the signed receipt; None: nothing that is stored is meant.

        Raises:
            MemoryFault: it was not finished; what is erased by then stays so, and it can be asked for again.
            PolicyError: several tenants could be meant.
        """
        async with self._busy:
            await self._database.open()
            target = await self._as_stored(target)
            asked = _asked(target)
            last, at = await self._database.ask(last_occurrence), self._clock()
            found = await self._plans(target, at)
            if not found:
                await self._finish()
                return None
            if len(found) == 1:  # a tenant who comes meanwhile, with a user of the same name, is not meant
                target = replace(target, tenant=found[0].name)
            planned: Counter[str] = Counter()
            for plan in found:
                planned.update(await self._database.ask(functools.partial(counts, plan=plan)))
            erased, names = Erased(), {plan.name for plan in found}
            since = at
            for plan in found:
                await self._mark(target, plan, since, erased)
            until = self._clock()  # what came before, and was not there to be planned for, is erased in the next round
            for _ in range(MAX_ROUNDS):
                for plan in found:
                    await self._erase(plan, since, erased)
                await asyncio.sleep(SETTLE_SECONDS)
                again = functools.partial(resent, names=names, after=last, at=at, until=until)
                found, since = [*await self._plans(target, until), *await self._database.ask(again)], until
                if not found:
                    break
                for plan in found:
                    await self._mark(target, plan, since, erased)
            left, is_emptied = await self._prove(erased)
            if left.is_clean and is_emptied:
                await self._database.transact(mark_finished)
        body = {
            "id": secrets.token_hex(8),
            "what": "erasure",
            "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
            "asked": asked,
            "tenants": len(names),
            "erased": dict(sorted(erased.counts.items())),
            "stays": {
                "texts_that_stand_elsewhere": planned["texts_that_stand_elsewhere"],
                "tombstones": "keyed fingerprints of what was erased, so that a resend is not kept again",
            },
            "check": {**asdict(left), "log_emptied": is_emptied, "clean": left.is_clean and is_emptied},
            "not_covered": list(NOT_COVERED),
        }
        log.info("erased on request", messages=erased.counts["messages"], left=left.left)
        return signed(body, self._secret)

    async def finish(self) -> None:
        """
        Clean up after an erasure that was cut off, here or elsewhere, when its rows were gone already.

        Where that cannot be done now, it is logged; the next start, or the next erasure, tries again.
        """
        try:
            async with self._busy:
                await self._database.open()
                await self._finish()
        except MemoryFault as fault:
            log.warning("an interrupted erasure could not be finished", reason=str(fault))

    async def _finish(self) -> None:
        if not await self._database.ask(is_unfinished):
            return
        await self._merge()
        if await self._database.truncate_log():
            await self._database.transact(mark_finished)
            log.info("an interrupted erasure is finished")

    async def _as_stored(self, target: Target) -> Target:
        """With the names of user and project as they are stored: without credentials, unless redaction was off."""

        async def stored(column: Literal["user", "scope"], name: str) -> str:
            if not name or await self._database.ask(lambda ask: is_stored_name(ask, column, name)):
                return name
            return redaction.redacted_name(name, self._secret)

        return replace(target, user=await stored("user", target.user), scope=await stored("scope", target.scope))

    async def _plans(self, target: Target, until: float) -> list[Plan]:
        found = await self._database.ask(functools.partial(plans, target=target, until=until))
        named = target.conversation or target.user or target.scope
        if len(found) > 1 and named and not target.tenant:
            names = ", ".join(plan.name for plan in found[:TENANTS_NAMED])
            raise PolicyError(f"tenant: required, because {len(found)} tenants match: {names}")
        return found

    async def _mark(self, target: Target, plan: Plan, at: float, erased: Erased) -> None:
        """Lay the tombstones, and take away what quotes these messages: from now on nothing of it is said."""
        key = tenant_key(self._secret, plan.name)
        whole = dict(plan.conversations)

        def mark(transaction: Transaction) -> None:
            mark_scopes(transaction, _prints(target, plan, key), at)
            for conversation in {**whole, **plan.messages}:
                public = plan.publics[conversation]
                chosen = None if conversation in whole else plan.messages[conversation]
                mark_messages(transaction, conversation, scope_print(key, "conversation", public), at, chosen)
            erase_quotes(transaction, plan.tenant, plan.occurrences, erased)

        await self._database.transact(mark)

    async def _erase(self, plan: Plan, at: float, erased: Erased) -> None:
        for some in _parts(plan.occurrences):
            await self._database.transact(
                functools.partial(erase_messages, tenant=plan.tenant, occurrences=some, erased=erased)
            )
        # blocks that were made of these messages since the first look, but before they were erased
        await self._database.transact(
            functools.partial(erase_quotes, tenant=plan.tenant, occurrences=plan.occurrences, erased=erased)
        )
        for conversation, _ in plan.conversations:
            await self._database.transact(
                functools.partial(erase_conversation, conversation=conversation, at=at, erased=erased)
            )
        await self._database.transact(functools.partial(erase_tenant_if_empty, tenant=plan.tenant))

    async def _prove(self, erased: Erased) -> tuple[Remains, bool]:
        """Clean up and look, harder each time that something is left. Whether the log could be emptied, too."""
        known = await self._database.ask(functools.partial(known_words, words=erased.words))
        wanted = samples(erased.texts, erased.words - known)
        path = self._database.path
        for clean in (self._merge, self._optimise, self._vacuum):
            await clean()
            is_emptied = await self._database.truncate_log()
            left = await self._database.ask(functools.partial(look, path, wanted))
            if left.is_clean and is_emptied:
                break
        return left, is_emptied

    async def _merge(self) -> None:
        """Make one segment of the full-text index, a little at a time: words that were deleted go on the way."""
        pages = -MERGE_PAGES
        for _ in range(MAX_MERGES):
            if await self._database.transact(functools.partial(merge_some, pages=pages)) < MERGED:
                return
            pages = MERGE_PAGES

    async def _optimise(self) -> None:
        await self._database.transact(optimise)

    async def _vacuum(self) -> None:
        if self._database.path.stat().st_size <= self._vacuum_bytes:
            await self._database.vacuum()


def forget_words(others: Sequence[Callable[[], None]] = ()) -> None:
    """
    Empty this process's memory of words, as is due after an erasure by any process.

    Args:
        others: the `forget` of each object of `OBJECTS_OF_WORDS`.
    """
    for cache in CACHES_OF_WORDS:
        cache.cache_clear()
    for other in others:
        other()


def _prints(target: Target, plan: Plan, key: bytes) -> list[int]:
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


def _asked(target: Target) -> Json:
    """What was asked for, without the words that were to go."""
    given = {name: value for name, value in asdict(target).items() if value}
    if "matching" in given:
        given["matching"] = "words that are not repeated here"
    if "before" in given:
        given["before"] = datetime.fromtimestamp(target.before, UTC).isoformat(timespec="seconds")
    return given


def _parts(occurrences: Sequence[int]) -> Iterator[Sequence[int]]:
    return (occurrences[at : at + MESSAGES_AT_A_TIME] for at in range(0, len(occurrences), MESSAGES_AT_A_TIME))
