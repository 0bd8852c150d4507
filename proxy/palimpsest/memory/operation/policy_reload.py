"""
The reload of the policy: the files that it comes from are watched, and what they say takes effect while requests run.

A file that is refused changes nothing, and is named in the log, in the answer and in `/readyz` until another one is
accepted. Every policy that comes into force has a number, on which all processes of one database agree.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog

from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Clock, Counts
from palimpsest.settings import load
from palimpsest.settings.policy import Policy
from palimpsest.settings.source import Source, compare, digest_of
from palimpsest.store.engine import Engine
from palimpsest.store.operation.switches import enter, newest

LOOK_SECONDS = 0.4  # between looks at the files: what is the same twice is applied, within a second of being written

Apply = Callable[[Policy, int], Awaitable[None]]
"""Puts a policy with its number into force, for all requests that begin from then on."""

log = structlog.get_logger()


@frozen
class Reload:
    """What became of one attempt. `refused` says why nothing changed; "" it was accepted."""

    at: float
    refused: str = ""
    changed: tuple[str, ...] = ()  # settings that took effect
    waiting: tuple[str, ...] = ()  # settings that differ, and take effect at the next start


class PolicyReload:
    """Keeps one process's policy as its source says. Run `watch` in the background; `agree` listens to the database."""

    def __init__(
        self,
        source: Source,
        environment: Mapping[str, str],
        policy: Policy,  # in force now
        apply: Apply,  # may raise; then nothing has changed
        database: Engine,
        counts: Counts,
        clock: Clock,
    ) -> None:
        self.source = source
        self.policy = policy
        self.number = 0  # of the policy in force; 0: before the first look at the database
        self.since = clock()
        self.last = Reload(self.since)
        self._environment = environment
        self._kept_in = Path(environment[load.POLICY_FILE_ENV]) if environment.get(load.POLICY_FILE_ENV) else None
        self._token = load.admin_token(environment)
        self._apply = apply
        self._database = database
        self._counts = counts
        self._clock = clock
        self._is_entered = False  # the database knows this policy
        self._tried: bytes | None = None  # content of the files at the last attempt
        self._reloading = asyncio.Lock()
        self._count()

    @property
    def digest(self) -> str:
        """A short hash of the policy in force."""
        return digest_of(self.policy)

    @property
    def trouble(self) -> str:
        """What is wrong, for `/readyz`, which everybody may read: no path, no setting, no value."""
        if not self.last.refused:
            return ""
        return f"the configuration was refused, and policy {self.number} stays in force: the log says why"

    async def watch(self) -> None:
        """Look at the files a few times a second; forever."""
        last = None
        while self.source.files or self._token is not None:
            content = await asyncio.to_thread(self.source.content, self._environment)
            if content == last and content != self._tried:  # the same twice: nobody is in the middle of writing it
                await self.reload()
            last = content
            await asyncio.sleep(LOOK_SECONDS)

    async def reload(self) -> Reload:
        """Read the files now, and put what they say into force. Never raises."""
        async with self._reloading:
            self._tried = await asyncio.to_thread(self.source.content, self._environment)
            try:
                self.last = await self._reload()
            except PolicyError as wrong:
                self.last = Reload(self._clock(), refused=str(wrong))
            except Exception as failure:  # a guard: what is in force must stay so
                self._counts.fault("reload")
                log.error("the configuration could not be applied", exc_info=failure)
                self.last = Reload(self._clock(), refused=f"it could not be applied: {type(failure).__name__}")
            self._say(self.last)
            self._count()
            return self.last

    async def agree(self) -> None:
        """Take the number by which the database knows this policy, or make it known there."""
        async with self._reloading:
            number, digest = await self._database.ask(newest)
            if digest != self.digest:
                if self._is_entered:  # another process has another policy, or read it before us
                    return
                number = await self._enter(self.policy)
            self._is_entered = True
            if number != self.number:
                await self._put_in_force(self.policy, number)
                self._count()

    async def _reload(self) -> Reload:
        """Load the configuration, and put in force what may change while the proxy runs."""
        loaded = await asyncio.to_thread(self.source.load, self._environment)
        token = load.admin_token(self._environment)
        compared = compare(self.policy, loaded)
        if compared.changed or token != self._token:
            await self._put_in_force(compared.policy, await self._enter(compared.policy))
            self._token = token
            if self._kept_in is not None:
                await asyncio.to_thread(_keep, self._kept_in, compared.policy)
        return Reload(self._clock(), changed=compared.changed, waiting=compared.waiting)

    async def _enter(self, policy: Policy) -> int:
        """The number of a policy in the database; where that cannot be asked, the next one, until it can."""
        if self._database.is_healthy:
            with suppress(MemoryFault):
                number = await self._database.transact(partial(enter, digest=digest_of(policy), at=self._clock()))
                self._is_entered = True
                return number
        self._is_entered = False
        return self.number + (policy != self.policy)

    async def _put_in_force(self, policy: Policy, number: int) -> None:
        """Apply a policy, and remember it with its number and time."""
        await self._apply(policy, number)
        if policy != self.policy:
            self.since = self._clock()
        self.policy, self.number = policy, number

    def _say(self, last: Reload) -> None:
        """Log what a reload refused, changed, and left for the next start."""
        if last.refused:
            log.error("the configuration was refused, the policy stays as it was", reason=last.refused)
        if last.changed:
            log.info("the policy was reloaded", reason=", ".join(last.changed), generation=self.number)
        if last.waiting:
            log.warning("some settings take effect at the next start", reason=", ".join(last.waiting))

    def _count(self) -> None:
        """Set the metrics of the last reload."""
        self._counts.gauge("policy_generation", self.number)
        self._counts.gauge("policy_last_reload_successful", not self.last.refused)
        if not self.last.refused:
            self._counts.gauge("policy_last_reload_success_timestamp_seconds", self.last.at)


def _keep(file: Path, policy: Policy) -> None:
    """Write the policy where a worker that starts later finds it, whole or not at all."""
    own = file.with_name(f"{file.name}.{os.getpid()}")
    own.write_text(policy.model_dump_json(), encoding="utf-8")
    own.replace(file)
