"""
How does what passed become a record? Overhear, journal, then index in the background.

The edge hands over synchronously and goes on; one task writes everything that waits in one transaction, another embeds.
Nothing here delays a reply but the commit of its own end, and that for `commit_wait_ms` at most. While the store fails,
turns wait in memory, up to `queue_turns`; beyond, they are counted as lost.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import structlog

from proxy.core.digest import digest
from proxy.core.identity import tenant_key
from proxy.core.lineage import answer_links, flags_of
from proxy.core.redaction import redact
from proxy.domain import Answer, Ending, Entry, HeadFlag, Heard, NewMessage, RawHeaders, Record, Turn
from proxy.errors import MemoryFault
from proxy.policy import ArchivePolicy
from proxy.ports import Clock, Counts, Embedder, Journal
from proxy.store.derived import Derived, is_findable
from proxy.wire.chat import reply
from proxy.wire.fingerprint import fingerprint
from proxy.wire.overhear import Ear
from proxy.wire.stored import dumps, to_stored

FIRST_RETRY_SECONDS = 0.05  # a lock is gone in milliseconds
LAST_RETRY_SECONDS = 5.0  # a full disk is not
LEASE_SECONDS = 120.0  # a batch takes seconds; a worker that died holds it up for so long
LOOK_SECONDS = 5.0  # between looks for passages that another worker or an earlier run left, and for a missing model
REFUSING_STATUS = 400

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Ended:
    """An answer as it was overheard, not yet read."""

    turn: Turn
    payloads: Sequence[bytes]
    streamed: bool
    ending: Ending
    at: float
    committed: asyncio.Future[None]


class Archivist:
    """One per app. Run `write` and `index` in the app's task group, and await `drain` before they are cancelled."""

    def __init__(
        self,
        journal: Journal,
        derived: Derived,
        embedder: Embedder,
        policy: ArchivePolicy,
        counts: Counts,
        secret: bytes,
        clock: Clock,
        on_usage: Callable[[Turn, int], None] = lambda turn, prompt_tokens: None,
    ) -> None:
        """
        Args:
            on_usage: told how many prompt tokens the upstream counted for a turn.
        """
        self._journal = journal
        self._derived = derived
        self._embedder = embedder
        self._policy = policy
        self._counts = counts
        self._secret = secret
        self._clock = clock
        self._on_usage = on_usage
        self._waiting: deque[Turn | _Ended] = deque()
        self._turns = 0  # of those that wait or are being written
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._fresh = asyncio.Event()
        self._failed = 0
        self._worker = secrets.token_hex(8)
        self._thread = ThreadPoolExecutor(1, "archivist")

    def __repr__(self) -> str:
        return f"<Archivist [{len(self._waiting)} queued, {self._turns} turns, {self._failed} failed]>"

    def note(self, turn: Turn) -> None:
        """Take a request to be written; returns at once."""
        if self._turns >= self._policy.queue_turns:
            self._lose(1)
            return
        self._turns += 1
        self._put(turn)

    def listen(self, turn: Turn, status: int, headers: RawHeaders) -> Listening:
        """Overhear the answer to a turn; status 0: nobody answered."""
        return Listening(self, turn, status, headers)

    def hand_over(self, turn: Turn, ear: Ear, ending: Ending) -> _Ended:
        """Take an answer to be written; returns at once."""
        payloads, streamed = ([], False) if ending is Ending.REFUSED or ear.deaf_because else ear.heard()
        committed = asyncio.get_running_loop().create_future()
        ended = _Ended(turn, payloads, streamed, ending, self._clock(), committed)
        self._put(ended)
        return ended

    async def write(self) -> None:
        """Write what waits, all of it at once; forever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch = list(self._waiting)
            self._waiting.clear()
            await self._commit(batch)
            self._turns -= sum(isinstance(item, Turn) for item in batch)
            self._counts.gauge("queued", self._turns)
            if not self._waiting:
                self._idle.set()

    async def index(self) -> None:
        """Embed what has no vector yet; forever. A rebuild that was begun anywhere goes on here."""
        while True:
            try:
                while await self._derived.rebuild():
                    pass
                busy = self._embedder.ready and await self._embed()
            except MemoryFault as fault:
                self._counts.fault("index")
                log.warning("indexing failed, it is tried again", reason=str(fault))
                busy = False
            except Exception:  # a guard: a passage that breaks something must not end the indexing of all others
                self._counts.fault("index")
                log.exception("indexing failed, it is tried again")
                busy = False
            if not busy:
                self._fresh.clear()
                try:
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._fresh.wait()
                except TimeoutError:
                    continue

    async def drain(self, seconds: float) -> None:
        """Wait until everything that was taken is written, but no longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._lose(self._turns)
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _commit(self, batch: Sequence[Turn | _Ended]) -> None:
        pause = FIRST_RETRY_SECONDS
        while True:
            started = perf_counter()
            try:
                await self._write_batch(batch)
            except MemoryFault as fault:
                self._counts.fault("journal")
                self._counts.gauge("store_up", 0)
                log.warning("the journal cannot be written, it is tried again", reason=str(fault), turns=self._turns)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_RETRY_SECONDS)
                continue
            except Exception:  # a guard: one turn that breaks something must not take the others with it
                self._counts.fault("archivist")
                log.exception("a turn could not be archived", turns=len(batch))
                if len(batch) > 1:
                    for item in batch:
                        await self._commit([item])
                else:
                    self._failed += 1
                    self._lose(len(batch))
                return
            self._counts.gauge("store_up", 1)
            self._counts.observe("journal", perf_counter() - started)
            self._fresh.set()
            return

    async def _write_batch(self, batch: Sequence[Turn | _Ended]) -> None:
        loop = asyncio.get_running_loop()
        records, heard = await loop.run_in_executor(self._thread, self._read_batch, batch)
        if records:
            await self._journal.begin(records)
        if heard:
            await self._journal.finish(heard)
        for item in batch:
            if isinstance(item, _Ended) and not item.committed.done():
                item.committed.set_result(None)
        turns = {item.turn.id: item.turn for item in batch if isinstance(item, _Ended)}
        for one in heard:
            if one.answer.prompt_tokens:
                self._on_usage(turns[one.answer.turn_id], one.answer.prompt_tokens)

    def _read_batch(self, batch: Sequence[Turn | _Ended]) -> tuple[list[Record], list[Heard]]:
        """Everything that takes time and no I/O: redaction, passages, answers put together."""
        records = [
            Record(item, tuple(self._entry(item, new) for new in item.new)) for item in batch if isinstance(item, Turn)
        ]
        return records, [self._heard(item) for item in batch if isinstance(item, _Ended)]

    def _entry(self, turn: Turn, new: NewMessage) -> Entry:
        key = tenant_key(self._secret, turn.tenant)
        text, rest = to_stored(new.message, redact if self._policy.redact else str)
        findable = is_findable(turn.role, new.message.role, new.flags)
        return Entry(
            new=new,
            digest=hashlib.blake2b(dumps(new.message.raw).encode(), key=key, digest_size=16).digest(),
            text=text,
            rest=rest,
            passages=digest(text, new.message.role) if findable else (),
        )

    def _heard(self, ended: _Ended) -> Heard:
        turn, ending = ended.turn, ended.ending
        message, prompt_tokens = reply(ended.payloads, ended.streamed) if ended.payloads else (None, None)
        if message is None:
            return Heard(Answer(turn.id, ending, prompt_tokens=prompt_tokens, created_at=ended.at), None)
        key = tenant_key(self._secret, turn.tenant)
        print = fingerprint(message, key)
        flags = flags_of(message) | HeadFlag.OURS
        last = max((at for at, _ in turn.kept), default=-1)
        position = 1 + max([last, *(new.position for new in turn.new)])
        answer = Answer(
            turn_id=turn.id,
            ending=ending,
            message=message,
            print=print,
            flags=flags,
            links=answer_links(message, print, turn, key),
            prompt_tokens=prompt_tokens,
            created_at=ended.at,
        )
        return Heard(answer, self._entry(turn, NewMessage(message, print, position, flags)))

    async def _embed(self) -> bool:
        """One batch; False when nothing waits."""
        embedder = self._embedder
        waiting = await self._derived.claim(self._policy.index_batch, self._worker, LEASE_SECONDS, embedder.name)
        if not waiting:
            return False
        started = perf_counter()
        vectors = await embedder.embed_passages([passage.text for passage in waiting])
        await self._derived.save_vectors(
            embedder.name, {passage.memory: vector for passage, vector in zip(waiting, vectors, strict=True)}
        )
        self._counts.observe("index", perf_counter() - started)
        return True

    def _put(self, item: Turn | _Ended) -> None:
        self._waiting.append(item)
        self._idle.clear()
        self._wake.set()

    def _lose(self, turns: int) -> None:
        for _ in range(turns):
            self._counts.fault("lost_turn")
        if turns:
            log.error("turns are lost: they could not be written", turns=turns)


class Listening:
    """Implements `proxy.ports.Listener` for one answer."""

    def __init__(self, archivist: Archivist, turn: Turn, status: int, headers: RawHeaders) -> None:
        self._archivist = archivist
        self._turn = turn
        self._refused = status == 0 or status >= REFUSING_STATUS
        self._ear = Ear(headers, archivist._policy.answer_bytes)

    def feed(self, data: bytes) -> int:
        """How many leading bytes may be forwarded now."""
        return len(data) if self._refused else self._ear.feed(data)

    def finish(self, ending: Ending) -> Patience:
        """Hand over what was heard; awaiting the result waits for the commit."""
        if self._refused:
            ending = Ending.REFUSED
        elif ending is Ending.COMPLETE and self._ear.overflowed:
            ending = Ending.TOO_LARGE
        ended = self._archivist.hand_over(self._turn, self._ear, ending)
        return Patience(ended.committed, self._archivist._policy.commit_wait_ms / 1000)


class Patience:
    """Wait for a commit, but not for ever; need not be awaited."""

    def __init__(self, committed: asyncio.Future[None], seconds: float) -> None:
        self._committed = committed
        self._seconds = seconds

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await asyncio.wait([self._committed], timeout=self._seconds)
