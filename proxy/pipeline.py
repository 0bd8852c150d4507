"""
What happens to one request? Read, who, history, decide, remember, speak; then it is forwarded.

Memory may fail, the request may not: whatever goes wrong here, the client's own bytes go on, a header says why, and a
metric counts it. A turn is archived even where recall failed; where its history could not be read it is archived as a
conversation of its own, and the next request finds it by what it was answered.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from time import perf_counter
from typing import TypeVar

import structlog

from proxy.core.block.explanation import explanation
from proxy.core.block.packing import pack
from proxy.core.block.placement import Replay, insertions, place, replay
from proxy.core.block.pressure import pressure, reply_room
from proxy.core.caller.client_table import Signals
from proxy.core.caller.credentials import forwarded
from proxy.core.caller.identity import identify, is_rotating, tenant_key
from proxy.core.caller.proxy_keys import ProxyKeys
from proxy.core.history import request_roles
from proxy.core.history.lineage import trace
from proxy.core.history.link_keys import (
    CLUE_MESSAGES,
    NEWEST_CLUES,
    clues,
    flags_of,
    further_clues,
    reply_links,
    request_links,
    shape_of,
)
from proxy.core.history.server_history import inherited
from proxy.core.recall.diagnosis import diagnose, newest_question, newly_lost
from proxy.core.redaction.redaction import redacted_name
from proxy.domain import (
    TURN_PREFIX,
    Added,
    Block,
    Chat,
    Diagnosis,
    Ending,
    Fingerprint,
    HeadFlag,
    Json,
    Lineage,
    Mode,
    NewMessage,
    Note,
    Prepared,
    RawHeaders,
    Reach,
    Recalled,
    Role,
    Seen,
    Shape,
    Speaker,
    TooLong,
    Turn,
)
from proxy.errors import MemoryFault, WireError
from proxy.memory.archivist import Archivist
from proxy.metrics import Metrics
from proxy.ports import Clock, Listener, Remembering, Wire
from proxy.settings.policy import Policy
from proxy.store.journal import Journal
from proxy.tokens.counter import TokenCounter
from proxy.tokens.windows import Windows
from proxy.upstream.routing import choose, needs_model
from proxy.wire import messages as messages_wire
from proxy.wire.fingerprint import fingerprint
from proxy.wire.json_body import model_of
from proxy.wire.message import parts_by_id, with_referred
from proxy.wire.model_list import windows_in
from proxy.wire.refusal import speaks_anthropic
from proxy.wire.response_tap import ResponseTap

INLINE_BYTES = 64 * 1024  # more work than this at once stalls every other request: off the event loop
RECALL_LIMIT = 100  # candidates that packing may choose from; a block holds some forty short messages
MODEL_LIST_BYTES = 4 * 1024 * 1024  # the longest list that is known, OpenRouter's, takes a tenth of it
_LISTS_MODELS = re.compile(r"/models(?:/|$)")

T = TypeVar("T")
Headers = tuple[tuple[bytes, bytes], ...]
Told = dict[str, str | int | float]
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Traced:
    """A request with what is known of its past."""

    prints: tuple[Fingerprint, ...]  # of all messages
    shape: Shape
    lineage: Lineage
    conversation: str
    said: Replay
    note: Note | None = None  # why its past could not be read


@dataclass(frozen=True, slots=True)
class Said:
    """What is added to a request."""

    diagnosis: Diagnosis
    own_tokens: int  # of the request as the client sent it, what the provider holds included
    replayed: Replay = field(default_factory=Replay)
    drops_blocks: bool = False  # those of before do not fit any more
    block: Block | None = None
    anchor: int = -1
    note: Note | None = None
    recalled: Recalled | None = None
    cut: Mapping[int, str] = field(default_factory=dict)  # memory id: why it was not packed

    @property
    def added(self) -> Added:
        return Added(self.replayed.tokens + (self.block.tokens if self.block else 0), self.own_tokens)


class Pipeline:
    """One per app; holds no state of any conversation."""

    def __init__(
        self,
        *,
        policy: Policy,
        signals: Signals,
        secret: bytes,
        journal: Journal,
        remembering: Remembering,
        archivist: Archivist,
        tokens: TokenCounter,
        windows: Windows,
        metrics: Metrics,
        keyring: ProxyKeys,
        clock: Clock,
        executor: Executor,
    ) -> None:
        self._policy = policy
        self._signals = signals
        self._secret = secret
        self._journal = journal
        self._remembering = remembering
        self._archivist = archivist
        self._tokens = tokens
        self._windows = windows
        self._metrics = metrics
        self._keyring = keyring
        self._clock = clock
        self._executor = executor
        self._warned_of_no_tenant = False
        self._needs_model = needs_model(policy.upstreams)

    async def prepare(self, headers: RawHeaders, body: bytes | None, wire: Wire) -> Prepared:
        """What to forward for one request of a memory endpoint, and what to say of it; see `Preparing`."""
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        mode = self._mode(named)
        if body is None:
            return _untouched(b"", Note.OFF if mode is Mode.OFF else Note.TOO_LARGE, "")
        if mode is Mode.OFF:
            return _untouched(body, Note.OFF, self._model(body))
        started = perf_counter()
        try:
            prepared = await self._remember(headers, named, body, wire, mode)
        except WireError:  # what we cannot read, the upstream may: it will say so itself
            self._metrics.fault("unreadable")
            prepared = _untouched(body, Note.FAULT, self._model(body))
        except Exception as fault:  # the one broad guard: memory may fail, the request may not
            self._metrics.fault("pipeline")
            log.error("memory failed, the request goes on", where="pipeline", fault=type(fault).__name__, exc_info=True)
            prepared = _untouched(body, Note.FAULT, self._model(body))
        seconds = perf_counter() - started
        self._metrics.observe("memory", seconds)
        return replace(prepared, told={**prepared.told, "memory_ms": round(seconds * 1000)})

    async def _remember(
        self, headers: RawHeaders, named: Mapping[str, str], body: bytes, wire: Wire, mode: Mode
    ) -> Prepared:
        limits = self._policy.limits
        if len(body) > limits.memory_body_bytes:
            return _untouched(body, Note.TOO_LARGE, self._model(body))
        chat = await self._run(len(body), wire.parse, body)  # 1 read
        if len(chat.messages) > limits.memory_messages:
            return _untouched(body, Note.TOO_LARGE, chat.model)
        credentials = forwarded(headers)
        key = self._keyring.find(headers)
        speaker = identify(
            named, credentials, chat.raw, self._signals, self._policy.tenants, self._secret, key
        )  # 2 who
        speaker = replace(speaker, user=self._named(speaker.user), scope=self._named(speaker.scope))
        if not speaker.tenant:
            self._warn_of_no_tenant(credentials)
            return _untouched(body, Note.NO_TENANT, chat.model)
        if self._excluded(chat, speaker):
            return _untouched(body, Note.OFF, chat.model)
        deadline = asyncio.get_running_loop().time() + self._policy.memory.deadline_ms / 1000
        if any(message.refers for message in chat.messages):
            chat = await self._completed(chat, speaker, deadline)
        traced = await self._trace(chat, speaker, named.get("user-agent", ""), deadline)  # 3 history
        if traced.lineage.role in self._policy.memory.off_for_roles:
            return _untouched(body, Note.OFF, chat.model)
        upstream = self._upstream(chat.model, wire, headers)
        said = await self._speak(chat, speaker, traced, upstream, deadline)  # 4 decide, 5 remember
        new = (said.anchor, said.block) if said.block else None
        out = await self._run(len(body), wire.render, chat, insertions(said.replayed, new))  # 6 speak
        listen = turn = None
        if mode is Mode.ON:
            turn = self._turn(chat, speaker, traced, said, upstream)
            self._archivist.note(turn)
            listen = functools.partial(self._archivist.listen, turn, wire)
        note = said.note or (Note.READ_ONLY if mode is Mode.READ_ONLY else None)
        if mode is Mode.ON and self._archivist.is_behind(speaker.tenant):
            note = Note.FAULT  # what was said before is still not on the disk: more urgent than why we are silent
        lineage, added = traced.lineage, said.added
        self._metrics.request(
            lineage.role.value, lineage.event.value, note.value if note else "", added.tokens, added.own_tokens
        )
        without = None
        if out != body:
            without = functools.partial(self._without, chat.model, traced, said, wire, upstream, turn)
        told_headers, told = _said_of(traced, said, turn, note)
        return Prepared(out, told_headers, chat.model, listen, told, without)

    def _without(
        self,
        model: str,
        traced: Traced,
        said: Said,
        wire: Wire,
        upstream: str,
        turn: Turn | None,
        refused: TooLong,
    ) -> Prepared:
        """The request as the client sent it, since the upstream finds it too long with what was added; never raises."""
        try:
            self._metrics.too_long(said.added.tokens)
            window = self._learn_window(model, said, upstream, refused)
            own, reply = said.own_tokens, said.diagnosis.pressure.reply_tokens
            log.warning(
                "too long with what memory added, sent once more without it",
                upstream=upstream,
                added_tokens=said.added.tokens,
                own_tokens=own,
                window_tokens=window,
            )
            now = pressure(own, window, reply, self._policy.pressure)
            bare = Said(replace(said.diagnosis, pressure=now), own, note=Note.TOO_LONG, recalled=said.recalled)
            listen = None
            if turn is not None:
                turn = replace(turn, block=None, quoted=(), tokens=own, is_bare=True, explain=_explained(bare))
                listen = functools.partial(self._archivist.listen, turn, wire)
            headers, told = _said_of(traced, bare, turn, Note.TOO_LONG)
            return Prepared(b"", headers, model, listen, told)
        except Exception as fault:  # a guard, as in `prepare`
            self._metrics.fault("pipeline")
            log.error("memory failed, the request goes on", where="pipeline", fault=type(fault).__name__, exc_info=True)
            return _untouched(b"", Note.FAULT, model)

    def _learn_window(self, model: str, said: Said, upstream: str, refused: TooLong) -> int:
        """
        The window that a refusal shows.

        Where it names none, or one that by our count would have been enough, the client's own prompt is what fits.
        """
        if refused.is_of_model:
            sent = said.own_tokens + said.added.tokens + said.diagnosis.pressure.reply_tokens
            named = refused.window_tokens
            most = named or self._windows.of(upstream, model)
            tokens = most if named and sent > named else min(most, said.own_tokens)
            self._windows.refused(upstream, model, max(1, tokens))
        return self._windows.of(upstream, model)

    def overhears(self, method: str, path: str) -> Callable[[int, RawHeaders], Listener] | None:
        """Who listens to the answer to a request that memory does not act on: lists of models name their windows."""
        if self._policy.memory.mode is Mode.OFF or method != "GET" or not _LISTS_MODELS.search(path):
            return None
        return functools.partial(_ListHeard, self._listed)

    def _listed(self, body: bytes) -> None:
        for model, tokens in windows_in(body).items():
            for is_anthropic in (False, True):
                if (upstream := choose(self._policy.upstreams, model, is_anthropic=is_anthropic)) is not None:
                    self._windows.listed(upstream.name, model, tokens)

    def _upstream(self, model: str, wire: Wire, headers: RawHeaders) -> str:
        """Name of the upstream that such a request goes to; "" where nobody serves it."""
        is_anthropic = wire is messages_wire or speaks_anthropic("", headers)
        upstream = choose(self._policy.upstreams, model, is_anthropic=is_anthropic)
        return upstream.name if upstream else ""

    async def _completed(self, chat: Chat, speaker: Speaker, deadline: float) -> Chat:
        """The request with what it only names by an id; the client's bytes stay as they are."""
        key = tenant_key(self._secret, speaker.tenant)
        named = reply_links((id for message in chat.messages for id in message.refers), key)
        try:
            async with asyncio.timeout_at(deadline):
                answers = await self._journal.answers(speaker.tenant, [print for _, print in named])
        except (TimeoutError, MemoryFault) as fault:
            self._skipped("history", fault)
            return chat
        parts = {id: part for answer in answers for id, part in parts_by_id(answer).items()}
        return replace(chat, messages=tuple(with_referred(message, parts) for message in chat.messages))

    async def _trace(self, chat: Chat, speaker: Speaker, user_agent: str, deadline: float) -> Traced:
        """Who it continues; where that cannot be read in time, a conversation of its own."""
        size = len(chat.body)
        key = tenant_key(self._secret, speaker.tenant)
        prints = await self._run(size, _fingerprints, chat, key)
        past = _past(chat, prints)
        told = [p for p, message in zip(prints, chat.messages, strict=True) if message.is_instruction]
        shape = shape_of(chat, told, user_agent, self._named)
        asked = request_roles.read(chat, self._signals)
        verdict = functools.partial(trace, chat, past, shape, asked, speaker)
        note = None
        said = Replay()
        try:
            async with asyncio.timeout_at(deadline):
                seen = await self._journal.seen(clues(chat, past, speaker, key))
                if not seen.links and len(past) > NEWEST_CLUES:
                    more = await self._run(size, clues, chat, past, speaker, key, CLUE_MESSAGES)
                    seen = await self._journal.seen(more)
                lineage = await self._run(size, verdict, seen, key)
                if (further := await self._run(size, further_clues, chat, lineage, speaker, key)) is not None:
                    if lineage.event.is_compaction and (question := newest_question(chat)):
                        self._remembering.expect(question)
                    verdict = functools.partial(verdict, further=await self._journal.seen(further))
                    lineage = await self._run(size, verdict, seen, key)
                if lineage.role is not Role.SIDE:
                    said = replay(chat, lineage)
        except (TimeoutError, MemoryFault) as fault:
            note = self._skipped("history", fault)
            lineage = trace(chat, past, shape, asked, speaker, Seen(), key, further=Seen())
        shape = inherited(chat, shape, lineage.head)
        return Traced(prints, shape, lineage, self._conversation(speaker, lineage), said, note)

    async def _speak(self, chat: Chat, speaker: Speaker, traced: Traced, upstream: str, deadline: float) -> Said:
        """Decide what to say, look it up, and fit it into the budget."""
        counted = await self._count(chat, traced)
        policy = self._policy
        window = self._windows.of(upstream, chat.model)
        reply = reply_room(counted, window, chat.max_reply_tokens, policy.pressure)
        replayed = traced.said
        drops_blocks = bool(replayed.tokens) and counted + replayed.tokens + reply > window
        if drops_blocks:
            replayed = replace(replayed, said=())
        now = pressure(counted + replayed.tokens, window, reply, policy.pressure)
        diagnosis = diagnose(
            chat,
            _past(chat, traced.prints),
            speaker,
            traced.lineage,
            traced.conversation,
            now,
            replayed.standing_tokens,
            policy,
            replayed.occurrences,
        )
        said = Said(diagnosis, counted, replayed, drops_blocks)
        kind, budget = diagnosis.kind, diagnosis.budget
        if traced.note is not None or diagnosis.query is None or budget is None or kind is None:
            return replace(said, note=traced.note or diagnosis.note)
        try:
            async with asyncio.timeout_at(deadline):
                if diagnosis.ask_journal:
                    diagnosis = await self._with_journal(diagnosis)
                    said = replace(said, diagnosis=diagnosis)
                assert diagnosis.query is not None
                recalled = await self._remembering.recall(diagnosis.query, RECALL_LIMIT)
        except (TimeoutError, MemoryFault) as fault:
            return replace(said, note=self._skipped("recall", fault))
        if not recalled.admitted:
            return replace(said, note=Note.NOTHING_RELEVANT, recalled=recalled)
        anchor, role = place(chat, diagnosis.anchor, policy.recall.placement)
        block, cut = pack(recalled.candidates, budget, kind, diagnosis.query.text)
        if block is None:
            return replace(said, note=Note.NOTHING_RELEVANT, recalled=recalled, cut=cut)
        block = replace(block, role=role, tokens=self._tokens.text(block.text, chat.model))
        if now.prompt_tokens + block.tokens + reply > now.window_tokens:
            return replace(said, note=Note.WINDOW_FULL, recalled=recalled, cut=cut)
        if diagnosis.sheds:
            said = replace(said, replayed=Replay())
        return replace(said, block=block, anchor=anchor, recalled=recalled, cut=cut)

    async def _count(self, chat: Chat, traced: Traced) -> int:
        """Tokens of the prompt without the blocks that are said again; with those that the provider holds."""
        head, prints = traced.lineage.head, traced.prints
        held = head.tokens if head is not None and traced.lineage.held else 0
        if held:  # tools and instructions are counted there
            chat, prints = replace(chat, messages=chat.history, raw={}), _past(chat, prints)
        is_much = self._tokens.uncounted_chars(chat, prints) > INLINE_BYTES
        return held + await self._run(INLINE_BYTES + is_much, self._tokens.prompt, chat, prints)

    async def _with_journal(self, diagnosis: Diagnosis) -> Diagnosis:
        """The last human message is gone from the request: take it from the journal."""
        assert diagnosis.query is not None
        stored = await self._journal.messages(diagnosis.speaker.tenant, diagnosis.ask_journal)
        asked = "\n".join(message.text for message in stored.values())
        return replace(diagnosis, query=replace(diagnosis.query, text=f"{asked}\n{diagnosis.query.text}".strip()))

    def _turn(self, chat: Chat, speaker: Speaker, traced: Traced, said: Said, upstream: str) -> Turn:
        """The request as a diff against the head that it continues, behind what the provider holds of it."""
        lineage, query = traced.lineage, said.diagnosis.query
        head = lineage.head if lineage.role is not Role.SIDE else None
        places = [at for at, message in enumerate(chat.messages) if not message.is_instruction]
        renewed = set(lineage.changed)
        held = [head.occurrences[index] for index in lineage.held] if head is not None else []
        kept = {
            places[at]: head.occurrences[index]
            for at, index in enumerate(lineage.kept)
            if head is not None and index >= 0 and at not in renewed
        }
        summaries = {places[at] for at in lineage.summary_at if 0 <= at < len(places)}
        new = tuple(
            NewMessage(
                message,
                traced.prints[at],
                len(held) + at,
                flags_of(message) | (HeadFlag.SUMMARY if at in summaries else 0),
            )
            for at, message in enumerate(chat.messages)
            if at not in kept
        )
        fresh = [at for at, place in enumerate(places) if place not in kept]
        past = [traced.prints[place] for place in places]
        behind = past[-1].full if past else head.fulls[lineage.held[-1]] if head is not None and held else 0
        links = (
            ()
            if lineage.role is Role.SIDE
            else request_links(chat.history, past, fresh, speaker, tenant_key(self._secret, speaker.tenant))
        )
        return Turn(
            id=TURN_PREFIX + secrets.token_hex(8),
            tenant=speaker.tenant,
            conversation=traced.conversation,
            role=lineage.role,
            event=lineage.event,
            kept=(*enumerate(held), *((len(held) + at, occurrence) for at, occurrence in kept.items())),
            new=new,
            parent_turn=head.turn if head else None,
            parent_conversation=lineage.parent,
            shape=traced.shape,
            links=links,
            model=self._named(chat.model),
            user=speaker.user,
            scope=speaker.scope,
            created_at=self._clock(),
            block=said.block if self._policy.recall.placement == "user" else None,
            quoted=said.block.occurrences if said.block else (),
            reach=query.reach if query else Reach.CONVERSATION,
            anchor=len(held) + said.anchor if said.anchor >= 0 else -1,
            replaces_blocks=said.drops_blocks or (said.diagnosis.sheds and said.block is not None),
            compactions=(head.compactions if head else 0) + lineage.event.is_compaction,
            lost=(*(head.lost if head is not None and held else ()), *newly_lost(lineage)),
            summarises=lineage.summarises,
            last_full=behind,
            tokens=said.added.own_tokens + said.added.tokens,
            upstream=upstream,
            explain=_explained(said),
        )

    def _conversation(self, speaker: Speaker, lineage: Lineage) -> str:
        """The public id: the head's, the parent's for a side request, one made of the client's id, or a new one."""
        known = lineage.parent if lineage.role is Role.SIDE else lineage.head.conversation if lineage.head else ""
        if known:
            return known
        if speaker.client_ids:  # several workers that see it first at once agree
            name = f"{speaker.tenant}\0{speaker.client_ids[0]}"
            named = "c-" + hashlib.blake2b(name.encode(), key=self._secret[:64], digest_size=8).hexdigest()
            if named != lineage.parent:  # a sub-agent may share the id of whom it serves
                return named
        return "c-" + secrets.token_hex(8)

    def _mode(self, named: Mapping[str, str]) -> Mode:
        """The header may restrict what the policy allows, never widen it."""
        policy = self._policy.memory
        if policy.mode is Mode.OFF or any(fnmatchcase(named.get("user-agent", ""), p) for p in policy.off_for_clients):
            return Mode.OFF
        wanted = named.get("x-palimpsest-memory", "").strip().lower()
        modes = (Mode.ON, Mode.READ_ONLY, Mode.OFF)
        return max(policy.mode, Mode(wanted), key=modes.index) if wanted in set(Mode) else policy.mode

    def _named(self, name: str) -> str:
        """A name in the form in which it is stored, and compared with what is stored."""
        return redacted_name(name, self._secret) if name and self._policy.archive.redact else name

    def _excluded(self, chat: Chat, speaker: Speaker) -> bool:
        policy = self._policy.memory
        return any(fnmatchcase(chat.model, p) for p in policy.off_for_models) or any(
            fnmatchcase(speaker.tenant, p) for p in policy.off_for_tenants
        )

    def _model(self, body: bytes) -> str:
        """The model that a body names, where an upstream must be chosen by it and nothing else is to be read."""
        return model_of(body) if self._needs_model else ""

    def _skipped(self, where: str, fault: Exception) -> Note:
        late = isinstance(fault, TimeoutError)
        self._metrics.fault(f"{where}_deadline" if late else where)
        log.warning("memory skipped", where=where, reason="deadline" if late else str(fault))
        return Note.DEADLINE if late else Note.FAULT

    def _warn_of_no_tenant(self, credentials: Sequence[bytes]) -> None:
        """Say once why, and what to do: a newcomer would wonder why nothing is remembered."""
        if self._warned_of_no_tenant:
            return
        if not credentials:
            reason = "a request without a credential names no tenant"
        elif any(map(is_rotating, credentials)):
            reason = "bearers that change by themselves name no tenant"
        else:
            return
        self._warned_of_no_tenant = True
        hint = "set tenants.static, or start with --config personal"
        log.warning("no memory for some requests", note="no-tenant", reason=reason, hint=hint)

    async def _run(self, size: int, function: Callable[..., T], *args: object) -> T:
        """Run pure work here, or off the event loop where it is large."""
        if size <= INLINE_BYTES:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(self._executor, functools.partial(function, *args))


def _fingerprints(chat: Chat, key: bytes) -> tuple[Fingerprint, ...]:
    return tuple(fingerprint(message, key) for message in chat.messages)


def _past(chat: Chat, prints: Sequence[Fingerprint]) -> tuple[Fingerprint, ...]:
    """Those of `chat.history`."""
    return tuple(p for p, message in zip(prints, chat.messages, strict=True) if not message.is_instruction)


def _untouched(body: bytes, note: Note, model: str) -> Prepared:
    """A request that passes as it came, and why memory has no part in it."""
    return Prepared(body, _headers(note=note), model, told={"note": note.value})


def _explained(said: Said) -> Json:
    return explanation(said.diagnosis, said.note, said.recalled, said.block, said.cut, said.added)


def _said_of(traced: Traced, said: Said, turn: Turn | None, note: Note | None) -> tuple[Headers, Told]:
    """What the client and the log are told."""
    lineage, added, turn_id = traced.lineage, said.added, turn.id if turn else ""
    headers = _headers(
        conversation=traced.conversation,
        turn=turn_id,
        role=lineage.role.value,
        event=lineage.event.value,
        pressure=f"{said.diagnosis.pressure.ratio:.2f}",
        added_tokens=added.tokens,
        added_share=f"{added.share:.2f}",
        recalled=len(said.block.occurrences) if said.block else 0,
        note=note,
    )
    told: Told = {"request": turn_id} if turn_id else {}
    told |= {"conversation": traced.conversation, "role": lineage.role.value, "history": lineage.event.value}
    if added.tokens:
        told |= {"added_tokens": added.tokens, "added_share": round(added.share, 3)}
    return headers, told | ({"note": note.value} if note else {})


class _ListHeard:
    """A `Listener` to a list of models; holds nothing back."""

    def __init__(self, take: Callable[[bytes], None], status: int, headers: RawHeaders) -> None:
        self._take = take
        self._ear = ResponseTap(headers, MODEL_LIST_BYTES)

    def feed(self, data: bytes) -> int:
        self._ear.feed(data)
        return len(data)

    def finish(self, ending: Ending) -> asyncio.Future[None]:
        if ending is Ending.COMPLETE:
            self._take(b"".join(self._ear.heard()[0]))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


def _headers(
    *,
    conversation: str = "",
    turn: str = "",
    role: str = "",
    event: str = "",
    pressure: str = "",
    added_tokens: int = 0,
    added_share: str = "",
    recalled: int = 0,
    note: Note | None = None,
) -> tuple[tuple[bytes, bytes], ...]:
    values = {
        "conversation": conversation,
        "turn": turn,
        "role": role,
        "event": event,
        "pressure": pressure,
        "added-tokens": str(added_tokens),
        "added-share": added_share,
        "recalled": str(recalled),
        "note": note.value if note else "",
    }
    return tuple((f"x-palimpsest-{name}".encode(), value.encode()) for name, value in values.items() if value)
