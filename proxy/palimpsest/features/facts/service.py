"""The fact service: lists, finds, adds, pins and forgets facts, for tools, the command line and the admin API alike."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from palimpsest.core.archive.chunking import query_terms, terms
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.facts.marks import ID_BYTES, added_id
from palimpsest.core.redaction.redaction import redact, stored_name
from palimpsest.domain import Fact, FactCategory, FactScope, FactSource, Reach
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.ports import Clock
from palimpsest.memory.archive import Archive
from palimpsest.settings.policy import Policy
from palimpsest.store.engine import Engine
from palimpsest.store.knowledge import added_facts, fact_extraction
from palimpsest.store.knowledge.facts import FactFilter, current, list_facts

NAME_CHARS = 100  # of a subject or a slot
VALUE_CHARS = 1_000  # one passage: what is longer says more than one thing
WHO_CHARS = 60
FOUND = 20  # facts of one answer to a tool: some 500 tokens
SEARCHED = 2_000  # the newest facts of a user, among which words are looked for
ANY = "*"  # in a pattern

OFF = "facts.policy is off: no facts are stored"


class Facts:
    """The facts of one database. Methods raise `MemoryFault` where that does not answer."""

    def __init__(self, database: Engine, secret: bytes, policy: Callable[[], Policy], clock: Clock) -> None:
        self._database = database
        self._secret = secret
        self._policy = policy
        self._clock = clock

    @classmethod
    def of(cls, archive: Archive) -> Facts:
        return cls(archive.database, archive.secret(), archive.current, archive.clock)

    @property
    def _reach(self) -> Reach:
        return self._policy().memory.reach

    async def list_facts(self, wanted: FactFilter, limit: int, after: tuple[int, int] = (0, 0)) -> list[Fact]:
        """Facts, the newest first, behind that of a place (`place_of`); zeros for the first page."""
        wanted = replace(wanted, reach=self._reach)
        return await self._database.ask(
            partial(list_facts, wanted=wanted, now=self._clock(), limit=limit, after=after), wanted.tenant
        )

    async def by_id(self, tenant: str, id: str) -> Fact | None:
        """The fact of this id, however often it was stated; None: there is none."""
        same = await self._database.ask(
            partial(added_facts.equal_facts, tenant=tenant, id=id, reach=self._reach), tenant
        )
        ids = tuple(one.public for one in same)
        found = await self.list_facts(FactFilter(tenant, ids=ids, has_history=True), 1) if ids else []
        return found[0] if found else None

    async def by_id_of_any_tenant(self, id: str, tenant: str = "") -> Fact | None:
        """The fact of this id, of a tenant or the only one that has it (else `PolicyError`); None: there is none."""
        tenants = [tenant] if tenant else await self._database.ask(partial(added_facts.tenants_of, id=id))
        if len(tenants) > 1:
            raise PolicyError(f"tenant: required, because several have {id}: {', '.join(tenants)}")
        return await self.by_id(tenants[0], id) if tenants else None

    async def recall(
        self, whose: FactScope, pattern: str = "", category: FactCategory | None = None, limit: int = FOUND
    ) -> list[Fact]:
        """
        The facts of a scope, best first: pinned and newest, or those that share most words with the pattern.

        Args:
            pattern: words; or with * a part of "subject slot value"; "": everything.
        """
        glob = as_glob(pattern)
        look = partial(current, whose=whose, now=self._clock(), limit=SEARCHED, pattern=glob, category=category)
        facts = await self._database.ask(look, whose.tenant)
        return (facts if glob else _by_shared_words(facts, pattern))[:limit]

    @property
    def are_kept(self) -> bool:
        return self._policy().facts.is_on

    async def add(self, fact: Fact) -> Fact:
        """
        Store what a program adds, with an id and the time; a value that the same slot had before is superseded.
        Raises `PolicyError`: it is too long or empty, over already, or no facts are kept.
        """
        if not self.are_kept:
            raise PolicyError(OFF)
        added = await self._read(fact)
        key_of = partial(tenant_key, self._secret)
        (id,) = await self._database.transact(partial(added_facts.add_facts, facts=[added], key_of=key_of))
        found = await self.by_id(fact.tenant, id)
        if found is None:
            raise PolicyError("the fact was lost at once, because somebody was erasing; add it again")
        return found

    async def forget(self, tenant: str, id: str) -> int:
        """
        Forget a fact for good, wherever it was stated. Returns the number of statements removed; 0: no such fact.

        The messages stay: `forgetting` erases those.
        """
        key = tenant_key(self._secret, tenant)
        step = partial(added_facts.forget, tenant=tenant, id=id, reach=self._reach, key=key, now=self._clock())
        return await self._database.transact(step)

    async def pin(self, tenant: str, id: str, is_pinned: bool) -> bool:
        """Pin or unpin a fact; False: there is none with this id."""
        step = partial(added_facts.pin, tenant=tenant, id=id, reach=self._reach, is_pinned=is_pinned)
        return await self._database.transact(step)

    async def start_over(self) -> None:
        """Extract the facts of all messages again, in the background of the extracting process."""
        await self._database.transact(fact_extraction.start_over)

    async def _read(self, fact: Fact) -> Fact:
        """A fact to be stored: trimmed and redacted; raises PolicyError where it is not allowed."""
        redacts, now = self._policy().archive.redact, self._clock()

        def text(name: str, most_chars: int) -> str:
            said = " ".join(getattr(fact, name).split())
            if not said or len(said) > most_chars:
                raise PolicyError(f"{name}: must be a text of 1 to {most_chars:,} characters")
            return redact(said) if redacts else said

        if fact.valid_until is not None and fact.valid_until <= now:
            raise PolicyError("valid_until: is in the past")
        subject, slot = text("subject", NAME_CHARS), text("slot", NAME_CHARS)
        user, scope = (stored_name(said, self._secret, redacts) for said in (fact.user, fact.scope))
        return replace(
            fact,
            id=added_id(secrets.randbits(ID_BYTES * 8)),
            user=user,
            scope=scope,
            subject=subject,
            slot=slot,
            value=text("value", VALUE_CHARS),
            said_at=now,
            source=replace(fact.source, who=redact(fact.source.who)[:WHO_CHARS]),
            is_single=not await self._has_many_values(fact.tenant, user, scope, subject, slot),
        )

    async def _has_many_values(self, tenant: str, user: str, scope: str, subject: str, slot: str) -> bool:
        """Whether values of this slot, as messages state them, stand beside each other."""
        wanted = FactFilter(tenant, user=user, scope=scope, subject=escaped(subject))
        return any(fact.slot == slot and not fact.is_single for fact in await self.list_facts(wanted, SEARCHED))


def filter_of(asked: Any) -> FactFilter:
    """The filter that the options of a list mean, from HTTP or the command line."""
    return FactFilter(
        asked.tenant or "",
        user=asked.user or None,
        scope=asked.scope or None,
        conversation=asked.conversation,
        category=asked.category and FactCategory(asked.category),
        subject=asked.subject,
        pattern=f"*{asked.matching}*" if asked.matching else "",
        has_history=asked.history,
    )


def new_fact(asked: Any, tenant: str, source: FactSource, valid_until: float | None, is_pinned: bool) -> Fact:
    """Build a fact from the options of a request or of the command line; `Facts.add` checks it."""
    return Fact(
        tenant=tenant,
        **{name: getattr(asked, name) for name in ("user", "scope", "subject", "slot", "value")},
        category=FactCategory(asked.category),
        source=source,
        valid_until=valid_until,
        is_pinned=is_pinned,
    )


def as_glob(pattern: str) -> str:
    """A pattern with * as the database takes it, for any part of a fact; "" where it has only words."""
    return ANY + escaped(pattern).replace("[*]", ANY) + ANY if ANY in pattern else ""


def escaped(text: str) -> str:
    """A text as a pattern that matches only itself."""
    return re.sub(r"[\[*?]", r"[\g<0>]", text)


def _by_shared_words(facts: Sequence[Fact], pattern: str) -> list[Fact]:
    """Facts that share words with the pattern, most of them first; all where it has none that mean anything."""
    if not (wanted := set(query_terms(pattern))):
        return list(facts)
    scored = [(len(wanted & set(terms(f"{f.subject} {f.slot} {f.value} {f.category}"))), f) for f in facts]
    return [fact for score, fact in sorted(scored, key=lambda one: -one[0]) if score]
